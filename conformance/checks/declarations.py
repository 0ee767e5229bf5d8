"""Check 17: the declarations of the store."""

from tablelog.logstore import LogStore

from ..failures import require
from ..harness.processes import Station, crew
from ..model import Context
from .suite import check


@check(17, guarantee=0)
def declares_what_it_is(context: Context) -> None:
    """The store makes the three declarations, and they allow a log on it."""
    store = context.make()
    require(store.exclusion in {"process", "host", "global"}, f"exclusion is {store.exclusion!r}")
    require(isinstance(store.atomic_overwrite, bool), "atomic_overwrite isn't a bool")
    require(
        store.partial_writes_visible is False,
        "the store declares that partial writes are visible: a log isn't safe on it",
    )


@check(17, guarantee=0)
def declares_the_same_everywhere(context: Context) -> None:
    """Every client, also one in another process, makes the same declarations and resolves a path in the same way."""
    path = f"{context.root}/table/"
    here = declared(context.make(), path)
    require(declared(context.make(), path) == here, "two clients make different declarations")
    context.evidence |= dict(zip(("exclusion", "partial writes visible", "atomic overwrite"), here, strict=False))
    if here[0] == "process":
        return
    with crew(context, 1) as [worker]:
        there = worker.call(declared_here, path)
    require(there == here, f"a client in another process declares {there}, but one in this process {here}")


def declared_here(here: Station, path: str) -> tuple[object, ...]:
    """The declarations of the client of this process."""
    return declared(here.store, path)


def declared(store: LogStore, path: str) -> tuple[object, ...]:
    """The three declarations, and the canonical form of a path."""
    return store.exclusion, store.partial_writes_visible, store.atomic_overwrite, store.resolve(path)
