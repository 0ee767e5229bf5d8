"""Check 13: one path is one file, however it is spelt and whatever it holds."""

from ..failures import require
from ..model import Context
from .suite import below, check, commit, names


@check(13, guarantee=3)
def listed_paths_are_the_files(context: Context) -> None:
    """A listed path is canonical, and reads as the file that it names."""
    make, root = context.make, context.root
    store = make()
    for name in ("00000000000000000000.json", "a b%20+é.json", "c#d?e.json"):
        store.write(below(root, name), name.encode())
    for status in make().list_from(f"{root}/_delta_log/"):
        require(store.read(status.path).decode() == names(iter([status]))[0], f"{status.path} reads as another file")
        require(store.resolve(status.path) == status.path, f"{status.path} is not canonical")


@check(13, guarantee=0)
def resolves_spellings(context: Context) -> None:
    """Two spellings of one path are one; resolving again changes nothing; different paths stay different."""
    make, root = context.make, context.root
    store = make()
    resolved = store.resolve(f"{root}/table")
    require(store.resolve(f"{root}/table/") == resolved, "a trailing slash makes another table")
    require(store.resolve(resolved) == resolved, "resolving a canonical path changes it")
    require(store.resolve(f"{root}/other") != resolved, "two tables have one name")
    context.directories.add(f"{root}/table/_delta_log")
    store.write(commit(f"{root}/table", 0), b"x")
    require(store.read(commit(resolved, 0)) == b"x", "the resolved path is another table")
    require(store.resolve(f"{root}/table") == resolved, "the canonical path changes when the table is made")
