"""The public names of tablelog with their parameters, as text: `python -m support.public_api` writes the kept copy.

Annotations are left out, because their texts depend on the versions of Python and PySpark.
"""

import importlib
import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import click

from tablelog.cli import exit_codes
from tablelog.cli.group import root

KEPT = Path(__file__).resolve().parents[1] / "golden" / "public_api.txt"

MODULES: dict[str, tuple[str, ...] | None] = {
    "tablelog": None,
    "tablelog.spark": None,
    "tablelog.spark.exceptions": None,
    "tablelog.errors": None,
    "tablelog.core": None,
    "tablelog.logstore": None,
    "tablelog.report": None,
    "tablelog.observe": ("COUNTERS", "TIMINGS", "Counter", "Fields", "Observer", "Timing", "set_observer"),
    "tablelog.opentelemetry": ("OpenTelemetryObserver",),
    "tablelog.conformance": None,
}
"""The public modules, and their public names where the module has no `__all__`."""
MADE_BY_METHODS = {
    *("DeltaTable", "DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTableBuilder"),
    *("DeltaLog", "Snapshot", "Transaction", "Committed", "LogHealth", "Report", "TableFacts", "Advice"),
}
"""Classes whose constructors aren't public: methods and functions make their objects."""


def described() -> str:
    """A line for each public name of Python, for each option of the command, and for each exit code."""
    lines: list[str] = []
    for name, names in MODULES.items():
        module = importlib.import_module(name)
        for public in sorted(names or getattr(module, "__all__", None) or _classes(module)):
            lines += _described(f"{name}.{public}", getattr(module, public))
    lines += _commands(root)
    lines += [f"exit code {code}" for code in exit_codes.MEANINGS]
    return "\n".join(lines) + "\n"


def _classes(module: Any) -> list[str]:
    """The names of the classes that a module defines."""
    return [name for name, one in vars(module).items() if isinstance(one, type) and one.__module__ == module.__name__]


def _described(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, type):
        is_made = value.__name__ in MADE_BY_METHODS or issubclass(value, Enum)
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield name + ("" if is_made else _parameters(value)) + (f" is a {bases}" if bases else "")
        for member in sorted(vars(value) | _inherited(value)):
            if not member.startswith("_"):
                yield from _member(f"{name}.{member}", inspect.getattr_static(value, member))
    elif callable(value) and hasattr(value, "__name__"):
        yield f"{name}{_parameters(value)}"
    else:
        yield name


def _inherited(kind: type) -> dict[str, object]:
    """The members that a class has from other classes of tablelog."""
    ours = [base for base in kind.__mro__[1:] if base.__module__.startswith("tablelog")]
    return {name: member for base in ours if not issubclass(kind, Exception) for name, member in vars(base).items()}


def _member(name: str, member: Any) -> Iterator[str]:
    if isinstance(member, classmethod | staticmethod):
        yield f"{name}{_parameters(member.__func__)}, a {type(member).__name__}"
    elif callable(member):
        yield f"{name}{_parameters(member)}"
    else:
        yield name


def _parameters(function: Any) -> str:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    parameters = []
    for one in signature.parameters.values():
        default = one.default
        if default is not one.empty and not isinstance(default, str | int | float | tuple | frozenset | None):
            default = _Something()
        parameters.append(one.replace(annotation=one.empty, default=default))
    return str(inspect.Signature(parameters))


class _Something:
    """A default that isn't a constant."""

    def __repr__(self) -> str:
        return "..."


def _commands(group: click.Group) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = [" ".join(sorted({*one.opts, *one.secondary_opts})) for one in command.params]
        yield f"tablelog {name}: {', '.join(sorted(words))}"


if __name__ == "__main__":
    KEPT.write_text(described(), encoding="utf-8")
