"""Checks the arguments of public methods by their annotations, before the method runs.

`checked` wraps every public method of a class, so that new methods are checked too. The error is an ArgumentTypeError,
which is both a ValueError and a TypeError, because delta.tables raises either of them.
"""

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pyspark.sql import Column, SparkSession

from ..errors import ArgumentTypeError, InvalidArgumentError

_Class = TypeVar("_Class", bound=type)

_NAMES = {str: "a string", int: "an int", bool: "a bool", float: "a number", type(None): "None"}


def checked(cls: _Class) -> _Class:
    """Add argument checks to the public methods of a class, and to the constructor of a dataclass."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and not (name == "__init__" and is_dataclass(cls)):
            continue
        if isinstance(member, classmethod):
            setattr(cls, name, classmethod(_checking(member.__func__)))
        elif inspect.isfunction(member):
            setattr(cls, name, _checking(member))
    return cls


def assignments_of(assignments: Mapping[str, str | Column] | None, name: str) -> dict[str, str | Column]:
    """The assigned columns as a dictionary. Raises InvalidArgumentError if the argument is missing."""
    if assignments is None:
        raise InvalidArgumentError(f"'{name}' must be given: a dictionary of columns and their new values")
    return dict(assignments)


def names_of(columns: tuple[Any, ...]) -> tuple[str, ...]:
    """The names in `*cols`: several arguments, or one list."""
    return tuple(columns[0]) if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns


def _checking(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    kinds = {name: parameter.annotation for name, parameter in list(signature.parameters.items())[1:]}
    for name, kind in kinds.items():
        _described(kind)  # fails at import if an annotation can't be checked
        assert kind is not inspect.Parameter.empty, f"{method.__qualname__}: {name} has no annotation"
    several = {
        parameter.name for parameter in signature.parameters.values() if parameter.kind is parameter.VAR_POSITIONAL
    }

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return method(*args, **kwargs)  # raises Python's own error for missing or extra arguments
        for name, kind in kinds.items():
            if name in arguments:
                for value in arguments[name] if name in several else (arguments[name],):
                    _check(name, value, kind)
        return method(*args, **kwargs)

    return call


def _check(name: str, value: Any, kind: Any) -> None:
    """Raise ArgumentTypeError if the value has another type. The message doesn't show the value: it may be a secret."""
    matching = [candidate for candidate in _kinds(kind) if _is(value, candidate)]
    if not matching:
        raise ArgumentTypeError(f"{name} must be {_described(kind)}, not {_type_of(value)}")
    inside = get_args(matching[0])
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not _any(key, inside[0]):
                raise ArgumentTypeError(f"the keys of {name} must be {_described(inside[0])}, not {_type_of(key)}")
            if not _any(item, inside[1]):
                hint = ". Use pyspark.sql.functions.lit for a constant" if Column in _kinds(inside[1]) else ""
                raise ArgumentTypeError(
                    f"the values of {name} must be {_described(inside[1])}, and that of {key} is {_type_of(item)}{hint}"
                )
    elif isinstance(value, list | tuple) and inside:
        for item in value:
            if not _any(item, inside[0]):
                raise ArgumentTypeError(f"each item of {name} must be {_described(inside[0])}, not {_type_of(item)}")


def _any(value: Any, kind: Any) -> bool:
    return any(_is(value, allowed) for allowed in _kinds(kind))


def _kinds(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _is(value: Any, kind: Any) -> bool:
    """Whether a value has this type; items of a collection are not checked."""
    origin = get_origin(kind)
    if kind is None:
        return value is None
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is SparkSession:  # a Spark Connect session is rejected later, with a better message
        return isinstance(value, SparkSession) or type(value).__name__ == "SparkSession"
    if origin is Literal:
        return isinstance(value, str)
    if origin in (Sequence, Iterable):
        return isinstance(value, origin) and not isinstance(value, str | bytes | bytearray | Mapping)
    return isinstance(value, origin or kind)


def _described(kind: Any) -> str:
    """The expected type for a message; AssertionError for an annotation that isn't supported."""
    return " or ".join(dict.fromkeys(_kind_name(allowed) for allowed in _kinds(kind)))


def _kind_name(kind: Any) -> str:
    origin, inside = get_origin(kind), get_args(kind)
    if kind is None or kind in _NAMES:
        return _NAMES[type(None) if kind is None else kind]
    if origin is Literal:
        return "a string"
    if origin is Mapping:
        return f"a dictionary of {_described(inside[0])} to {_described(inside[1])}"
    if origin in (Sequence, Iterable, list, tuple):
        return f"a list whose items are each {_described(inside[0])}"
    assert origin is None, f"{kind} is an annotation that `checked` doesn't know"
    assert isinstance(kind, type), f"{kind} is an annotation that `checked` doesn't know"
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _type_of(value: Any) -> str:
    return "None" if value is None else _NAMES.get(type(value), f"of the type {type(value).__name__}")
