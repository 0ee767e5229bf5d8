"""The arguments of DeltaTable's methods, checked as delta.tables checks them."""

from typing import Any

from pyspark.sql import Column


def condition_of(given: Any) -> str | Column | None:
    """A condition that may be left out; TypeError."""
    if given is not None and not isinstance(given, str | Column):
        raise TypeError(f"condition must be a string or a Column, not {type(given).__name__}")
    return given


def assignments_of(given: Any, name: str) -> dict[str, str | Column]:
    """Columns with what they are set to; ValueError where they are left out, TypeError for anything else."""
    if given is None:
        raise ValueError(f"'{name}' must be given: a dictionary of columns and their new values")
    if not isinstance(given, dict):
        raise TypeError(f"'{name}' must be a dictionary of columns and their new values, not {type(given).__name__}")
    for column, value in given.items():
        if not isinstance(column, str):
            raise TypeError(f"the keys of '{name}' must be names of columns, not {type(column).__name__}")
        if not isinstance(value, str | Column):
            raise TypeError(
                f"the values of '{name}' must be Columns or strings of SQL, and that of {column} is a "
                f"{type(value).__name__}: {value!r}. Use pyspark.sql.functions.lit for a constant"
            )
    return dict(given)
