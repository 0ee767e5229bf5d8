"""Names for columns that the engine and the commands add to a user's. No name is reserved: a user may have any."""

from collections.abc import Iterable, Sequence


def free_names(wanted: Sequence[str], taken: Iterable[str]) -> tuple[str, ...]:
    """The names `wanted`, longer where a column of `taken` has the name already, in whatever case."""
    known = {name.lower() for name in taken}
    found = []
    for name in wanted:
        while name.lower() in known:
            name += "_"
        known.add(name.lower())
        found.append(name)
    return tuple(found)


def free_prefix(wanted: str, taken: Iterable[str]) -> str:
    """The beginning `wanted` for any number of names, longer where a column of `taken` begins with it."""
    known = [name.lower() for name in taken]
    while any(name.startswith(wanted.lower()) for name in known):
        wanted += "_"
    return wanted


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """One name, by the rule of `free_names`."""
    return free_names([wanted], taken)[0]
