"""Check 13: one path is one file, however it is spelt and whatever it holds."""

import unicodedata
import urllib.parse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tablelog.errors import InvalidArgumentError

from ..failures import require
from ..interleave import outcome
from ..model import Context
from .suite import below, check, commit, commit_names, expect, names

_WRITERS_AT_ONCE = 8


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
    root = context.root
    store = context.make()
    resolved = store.resolve(f"{root}/table")
    require(store.resolve(f"{root}/table/") == resolved, "a trailing slash makes another table")
    require(store.resolve(resolved) == resolved, "resolving a canonical path changes it")
    require(store.resolve(f"{root}/other") != resolved, "two tables have one name")
    context.directories.add(f"{root}/table/_delta_log")
    store.write(commit(f"{root}/table", 0), b"x")
    require(store.read(commit(resolved, 0)) == b"x", "the resolved path is another table")
    require(store.resolve(f"{root}/table") == resolved, "the canonical path changes when the table is made")


_HOSTILE = (
    "a b", "a%20b", "a+b", "a%2Bb", "a#b", "a?b", "a:b", "a&b=c", "a'b", "a\"b", "a\\b", "a*b", "a|b", "a;b", "a,b",
    "a[b]", "a{b}", "a~b", "a!b", "a@b", "a$b", "a^b", "a`b", "a<b>", "%", "%41", "A", "a",
    unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é"), "日本語", "\U0001f600", "ß", "SS", "I", "i",
    "x" * 200,
)  # fmt: skip


@check(13, guarantee=0)
def hostile_names_are_files_of_their_own(context: Context) -> None:
    """Names with spaces, escapes, signs, other scripts, two forms of one letter, and of any case are all different."""
    store = context.make()
    kept = _not_refused(context, lambda name: store.write(below(context.root, name), name.encode()))
    reader = context.make()
    for name in kept:
        require(reader.read(below(context.root, name)) == name.encode(), f"{name!r} is another file")
        expect(
            FileExistsError, outcome(partial(reader.write, below(context.root, name), b"")), f"writing {name!r} again"
        )
    listed = names(reader.list_from(f"{context.root}/_delta_log/"))
    require(listed == sorted(kept, key=str.encode), f"{len(kept)} names were written, and {listed} are listed")
    context.evidence["names"] = len(kept)


def _not_refused(context: Context, write: Callable[[str], None]) -> list[str]:
    """The names that `write` accepted. A store may reject a name with an error, but must not change it."""

    def taken(name: str) -> bool:
        try:
            write(name)
        except InvalidArgumentError:
            return False
        return True

    with ThreadPoolExecutor(_WRITERS_AT_ONCE) as pool:
        answers = dict(zip(_HOSTILE, pool.map(taken, _HOSTILE), strict=True))
    kept = [name for name, answer in answers.items() if answer]
    refused = [name for name, answer in answers.items() if not answer]
    if refused:
        context.evidence["names that are refused"] = ", ".join(refused)
    require(len(refused) < len(kept), f"the store refuses {len(refused)} of {len(_HOSTILE)} names")
    return kept


@check(13, guarantee=0)
def hostile_tables_are_tables_of_their_own(context: Context) -> None:
    """A table's directory may have such a name too."""
    store = context.make()
    roots = {name: f"{context.root}/{urllib.parse.quote(name, safe='')}" for name in _HOSTILE}
    context.directories |= {f"{root}/_delta_log" for root in roots.values()}
    kept = _not_refused(context, lambda name: store.write(commit(roots[name], 0), name.encode()))
    context.directories -= {f"{roots[name]}/_delta_log" for name in set(roots) - set(kept)}
    roots = {name: roots[name] for name in kept}
    resolved = {store.resolve(root) for root in roots.values()}
    require(len(resolved) == len(roots), f"{len(roots)} tables have {len(resolved)} names")
    for name, root in roots.items():
        listed = list(store.list_from(commit(root, 0)))
        require(len(listed) == 1, f"of the table {name!r}, which has one commit, {len(listed)} are listed")
        [found] = listed
        require(store.read(found.path) == name.encode(), f"{name!r} is another table")
        require(found.path == commit(store.resolve(root), 0), f"{name!r} is listed under another name")


_DEPTH, _LONG = 20, 180


@check(13, guarantee=0)
def long_and_deep_paths_are_files_of_their_own(context: Context) -> None:
    """Tables below many directories, and long names, are different also where only the last letter of the path is."""
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
            require(reader.read(path) == table.encode(), f"{path} is another table's file")
            expect(FileExistsError, outcome(partial(reader.write, path, b"")), f"writing {path} again")
        listed = names(reader.list_from(f"{table}/_delta_log/"))
        require(listed == [*commit_names(0, 1), "n" * _LONG], f"of {table} are listed {listed}")
    store.delete(commit(tables[0], 0))
    require(reader.read(commit(tables[1], 0)) == tables[1].encode(), "a delete took the file of another table")
    context.evidence["longest path"] = max(len(below(table, "n" * _LONG)) for table in tables)
