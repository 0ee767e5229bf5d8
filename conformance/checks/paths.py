"""Check 13: names with special characters, and different spellings of one path."""

import unicodedata
import urllib.parse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tablelog.errors import InvalidArgumentError

from ..failures import require
from ..harness.interleave import outcome
from ..model import Context
from .suite import below, check, commit, commit_names, expect, names

_WRITERS_AT_ONCE = 8


@check(13, guarantee=3)
def listed_paths_are_the_files(context: Context) -> None:
    """A listed path is canonical, and reading it returns the file with that name."""
    make, root = context.make, context.root
    store = make()
    for name in ("00000000000000000000.json", "a b%20+é.json", "c#d?e.json"):
        store.write(below(root, name), name.encode())
    for status in make().list_from(f"{root}/_delta_log/"):
        require(
            store.read(status.path).decode() == names(iter([status]))[0],
            f"reading the listed path {status.path} returns another file",
        )
        require(store.resolve(status.path) == status.path, f"the listed path {status.path} isn't canonical")


@check(13, guarantee=0)
def resolves_spellings(context: Context) -> None:
    """Spellings of one path resolve to one canonical path; different paths stay different."""
    root = context.root
    store = context.make()
    resolved = store.resolve(f"{root}/table")
    require(store.resolve(f"{root}/table/") == resolved, "a path with a trailing slash resolves to another table")
    require(store.resolve(resolved) == resolved, "resolving a canonical path changes it")
    require(store.resolve(f"{root}/other") != resolved, "two tables resolve to one path")
    context.directories.add(f"{root}/table/_delta_log")
    store.write(commit(f"{root}/table", 0), b"x")
    require(store.read(commit(resolved, 0)) == b"x", "the canonical path is another table")
    require(store.resolve(f"{root}/table") == resolved, "the canonical path changes when the table is created")


_HOSTILE = (
    "a b", "a%20b", "a+b", "a%2Bb", "a#b", "a?b", "a:b", "a&b=c", "a'b", "a\"b", "a\\b", "a*b", "a|b", "a;b", "a,b",
    "a[b]", "a{b}", "a~b", "a!b", "a@b", "a$b", "a^b", "a`b", "a<b>", "%", "%41", "A", "a",
    unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é"), "日本語", "\U0001f600", "ß", "SS", "I", "i",
    "x" * 200,
)  # fmt: skip


@check(13, guarantee=0)
def hostile_names_are_files_of_their_own(context: Context) -> None:
    """Names with spaces, escapes, symbols, other scripts, Unicode forms and upper or lower case are different files."""
    store = context.make()
    accepted = _accepted(context, lambda name: store.write(below(context.root, name), name.encode()))
    reader = context.make()
    for name in accepted:
        require(reader.read(below(context.root, name)) == name.encode(), f"reading {name!r} returns another file")
        expect(
            FileExistsError, outcome(partial(reader.write, below(context.root, name), b"")), f"writing {name!r} again"
        )
    listed = names(reader.list_from(f"{context.root}/_delta_log/"))
    require(
        listed == sorted(accepted, key=str.encode), f"{len(accepted)} names were written, but a listing has {listed}"
    )
    context.evidence["names"] = len(accepted)


def _accepted(context: Context, write: Callable[[str], None]) -> list[str]:
    """The names that `write` accepted. A store may reject a name with an error, but must not change it."""

    def accepts(name: str) -> bool:
        try:
            write(name)
        except InvalidArgumentError:
            return False
        return True

    with ThreadPoolExecutor(_WRITERS_AT_ONCE) as pool:
        is_accepted = dict(zip(_HOSTILE, pool.map(accepts, _HOSTILE), strict=True))
    accepted = [name for name, result in is_accepted.items() if result]
    refused = [name for name, result in is_accepted.items() if not result]
    if refused:
        context.evidence["names that are refused"] = ", ".join(refused)
    require(len(refused) < len(accepted), f"the store refuses {len(refused)} of {len(_HOSTILE)} names")
    return accepted


@check(13, guarantee=0)
def hostile_tables_are_tables_of_their_own(context: Context) -> None:
    """Table directories with the same special names are different tables."""
    store = context.make()
    roots = {name: f"{context.root}/{urllib.parse.quote(name, safe='')}" for name in _HOSTILE}
    context.directories |= {f"{root}/_delta_log" for root in roots.values()}
    accepted = _accepted(context, lambda name: store.write(commit(roots[name], 0), name.encode()))
    context.directories -= {f"{roots[name]}/_delta_log" for name in set(roots) - set(accepted)}
    roots = {name: roots[name] for name in accepted}
    resolved = {store.resolve(root) for root in roots.values()}
    require(len(resolved) == len(roots), f"{len(roots)} tables resolve to {len(resolved)} paths")
    for name, root in roots.items():
        listed = list(store.list_from(commit(root, 0)))
        require(len(listed) == 1, f"the table {name!r} has one commit, but a listing has {len(listed)}")
        [status] = listed
        require(store.read(status.path) == name.encode(), f"reading from {name!r} returns a file of another table")
        require(status.path == commit(store.resolve(root), 0), f"the file of {name!r} is listed under another path")


_DEPTH, _LONG = 20, 180


@check(13, guarantee=0)
def long_and_deep_paths_are_files_of_their_own(context: Context) -> None:
    """Deep directories and long names are different files, even if only the last character of the path differs."""
    deep = "/".join(["directory-of-a-table"] * _DEPTH)
    tables = [f"{context.root}/{deep}/{end}" for end in ("table-a", "table-b")]
    tables += [f"{context.root}/{'x' * _LONG}{end}" for end in "ab"]
    store, reader = context.make(), context.make()
    context.directories |= {f"{table}/_delta_log" for table in tables}
    for table in tables:
        store.write(commit(table, 0), table.encode())
        store.write(below(table, "n" * _LONG), table.encode())
    for table in tables:
        for path in (commit(table, 0), below(table, "n" * _LONG)):
            require(reader.read(path) == table.encode(), f"reading {path} returns a file of another table")
            expect(FileExistsError, outcome(partial(reader.write, path, b"")), f"writing {path} again")
        listed = names(reader.list_from(f"{table}/_delta_log/"))
        require(listed == [*commit_names(0, 1), "n" * _LONG], f"a listing of {table} has {listed}")
    store.delete(commit(tables[0], 0))
    require(reader.read(commit(tables[1], 0)) == tables[1].encode(), "a delete removed the file of another table")
    context.evidence["longest path"] = max(len(below(table, "n" * _LONG)) for table in tables)
