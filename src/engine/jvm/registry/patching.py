"""Replaces and restores attributes of PySpark: those that `internals.PATCHES` declares. No other module does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any, TypeAlias

from .python_internals import PATCHES, Patch

Make: TypeAlias = Callable[[Any], Any]
"""Makes the replacement from the original."""


@dataclass(frozen=True)
class _Replaced:
    owner: Any
    attribute: str
    original: Any
    replacement: Any
    inherited: bool


class Applied:
    """Replaced attributes, for `remove`."""

    def __init__(self, replaced: list[_Replaced]) -> None:
        self._replaced = replaced

    def has(self, replacement: object) -> bool:
        """Whether the object is one of the replacements."""
        return any(replaced.replacement is replacement for replaced in self._replaced)


def targets(patch: Patch) -> list[str]:
    """The attributes that a patch replaces, as `Class.attribute` or `module.attribute`.

    `*` means each public method without its own patch.
    """
    if patch.attribute != "*":
        return [patch.name]
    owner = _owner(patch)
    own = {other.attribute for other in PATCHES if (other.module, other.owner) == (patch.module, patch.owner)}
    public = (name for name in vars(owner) if not name.startswith("_") and callable(getattr(owner, name)))
    return [f"{patch.owner}.{name}" for name in public if name not in own]


def apply(makes: Mapping[str, Make]) -> Applied:
    """Replace attributes of PySpark. The keys are names as `targets` returns them; KeyError for an undeclared one."""
    declared = {name: patch for patch in PATCHES if not patch.on_instances for name in targets(patch)}
    owners = {name: _owner(declared[name]) for name in makes}
    replaced = []
    for name, make in makes.items():
        owner, attribute = owners[name], name.rpartition(".")[2]
        original = getattr(owner, attribute)
        replacement = make(original)
        replaced.append(_Replaced(owner, attribute, original, replacement, attribute not in vars(owner)))
    for item in replaced:
        setattr(item.owner, item.attribute, item.replacement)
    return Applied(replaced)


def remove(applied: Applied) -> None:
    """Restore the originals, except of attributes that another library has replaced in the meantime."""
    for item in applied._replaced:
        if vars(item.owner).get(item.attribute) is not item.replacement:
            continue
        if item.inherited:
            delattr(item.owner, item.attribute)
        else:
            setattr(item.owner, item.attribute, item.original)


def _owner(patch: Patch) -> Any:
    module = import_module(patch.module)
    return attrgetter(patch.owner)(module) if patch.owner else module
