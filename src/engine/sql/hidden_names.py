"""Names of helper columns that the engine and the commands add; they avoid the user's names, as none is reserved."""

from collections.abc import Iterable, Sequence


def free_names(wanted: Sequence[str], taken: Iterable[str]) -> tuple[str, ...]:
    """The names `wanted`; underscores are appended to a name that occurs in `taken`, ignoring case."""
    known = {name.lower() for name in taken}
    names = []
    for name in wanted:
        while name.lower() in known:
            name += "_"
        known.add(name.lower())
        names.append(name)
    return tuple(names)


def free_prefix(wanted: str, taken: Iterable[str]) -> str:
    """The prefix `wanted`; underscores are appended if a column of `taken` starts with it, ignoring case."""
    known = [name.lower() for name in taken]
    while any(name.startswith(wanted.lower()) for name in known):
        wanted += "_"
    return wanted
