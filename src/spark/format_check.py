"""The check that no other format is written into a Delta table: what classic and Connect sessions have in common."""

from collections.abc import Iterator, Mapping

from ..errors import InvalidArgumentError
from ..settings.declarations import FORMAT_CHECK


def locations(path: object, options: Mapping[str, object]) -> Iterator[str]:
    """The directories that a writer names: its path, and its options `path` and `location` (in any case)."""
    named = (value for key, value in options.items() if key.lower() in ("path", "location"))
    for location in (path, *named):
        if isinstance(location, str) and location:
            yield location


def refusal(location: str) -> InvalidArgumentError:
    """The error for a write in another format to a location of a Delta table."""
    return InvalidArgumentError(
        f"There is a Delta table at {location}, or {location} is inside one: files of another format would not be part "
        "of it, VACUUM would delete them, and an overwrite would delete files of the table or all of it. Nothing was "
        'written. Use df.write.format("delta") to write to the table, '
        f"choose another directory, or set {FORMAT_CHECK.key} to false."
    )


MOST_DIRECTORIES = 100
"""How many directories are listed at most before a directory is overwritten."""


def overwrite_refusal(location: str, table: str) -> InvalidArgumentError:
    """The error for an overwrite of a directory that has a Delta table in it."""
    return InvalidArgumentError(
        f"The overwrite of {location} would delete the Delta table {table} in it. Nothing was written. Choose another "
        f"directory, move the table, or set {FORMAT_CHECK.key} to false."
    )


def schema_refusal(name: str, location: str, table: str) -> InvalidArgumentError:
    """The error for DROP SCHEMA without CASCADE if a Delta table is in the directory of the schema."""
    return InvalidArgumentError(
        f"Dropping the schema {name} would delete its directory {location} with the Delta table {table}. Nothing was "
        "dropped. Drop the table first, or move it if the catalog doesn't have it; use CASCADE to delete it with the "
        f"schema; or set {FORMAT_CHECK.key} to false."
    )


def stream_refusal(name: str) -> InvalidArgumentError:
    """The error for a stream of another format into a Delta table of the catalog."""
    return InvalidArgumentError(
        f'The table {name} is a Delta table: use writeStream.format("delta").toTable(name).',
        condition="DELTA_ILLEGAL_USAGE",
        parameters={"option": "format", "operation": "toTable"},
    )


def saved_refusal(name: str) -> InvalidArgumentError:
    """The error for saveAsTable of another format with the name of a Delta table of the catalog."""
    return InvalidArgumentError(
        f"The table {name} is a Delta table, which saveAsTable in another format would replace. Use "
        f'df.write.format("delta").saveAsTable({name!r}), or drop the table before.',
        condition="DELTA_ILLEGAL_USAGE",
        parameters={"option": "format", "operation": "saveAsTable"},
    )
