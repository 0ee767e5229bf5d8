"""Check 12: overwriting and deleting, alone and against a create."""

from ..failures import require
from ..interleave import outcome
from ..model import Context
from .suite import at, below, check, commit, commit_names, expect, interleavings, names, value_of


@check(12, guarantee=0)
def overwrite_replaces(context: Context) -> None:
    """The last writer's bytes stay, whole, whether there was a file or none, and however long it was."""
    make, root = context.make, context.root
    path = below(root, "_last_checkpoint")
    for data in (b"first", b"a longer one" * 1000, b"short", b""):
        make().write(path, data, overwrite=True)
        require(make().read(path) == data, "an overwritten file doesn't have the last writer's bytes")


@check(12, guarantee=0, lasts=True)
def overwrite_is_atomic_where_declared(context: Context) -> None:
    """A reader sees the old bytes or the new ones, at whatever step the overwriting is, if the store says so."""
    make, root = context.make, context.root
    writer, reader = make(), make()
    if not writer.atomic_overwrite:
        context.evidence["declared"] = "an overwrite isn't atomic"
        return
    path, old, new = below(root, "_last_checkpoint"), b"old" * 3000, b"new" * 5000
    writer.write(path, old, overwrite=True)
    for case in interleavings(
        context, lambda _n: writer.write(path, new, overwrite=True), lambda _n: reader.read(path)
    ):
        found = value_of(case.between, "reading during an overwrite", case)
        require(found in {old, new}, f"a reader saw {len(found)} bytes, neither old nor new {at(case)}")
        writer.write(path, old, overwrite=True)


@check(12, guarantee=2, lasts=True)
def overwrite_and_create_exclude_each_other(context: Context) -> None:
    """A create that comes after an overwrite has landed loses, at whatever step it was."""
    make, root = context.make, context.root
    creator, overwriter = make(), make()
    creator.write(below(root, "_first"), b"")
    for case in interleavings(
        context,
        lambda n: creator.write(commit(root, n), b"created"),
        lambda n: overwriter.write(commit(root, n), b"overwritten", overwrite=True),
    ):
        value_of(case.between, "overwriting", case)
        if case.held.error is not None:
            expect(FileExistsError, case.held, f"creating {at(case)}")
        # In either order: a create never replaces a file.
        data = make().read(commit(root, case.step))
        require(data == b"overwritten", f"a create replaced a file that was there {at(case)}")


@check(12, guarantee=2)
def a_deleted_name_is_won_anew(context: Context) -> None:
    """After a delete one writer wins the name again, and an overwrite takes it again."""
    make, root = context.make, context.root
    for version, overwrite in enumerate((False, True)):
        path = commit(root, version)
        make().write(path, b"old")
        make().delete(path)
        make().write(path, b"new", overwrite=overwrite)
        expect(FileExistsError, outcome(lambda p=path: make().write(p, b"newer")), "writing a file that exists")  # type: ignore[misc]
        require(make().read(path) == b"new", "the file isn't that of the writer who took the name after the delete")
    listed = names(make().list_from(commit(root, 0)))
    require(listed == commit_names(0, 2), f"after deletes and new writes {listed} are listed")


@check(12, guarantee=0)
def delete_is_idempotent(context: Context) -> None:
    """Deleting what isn't there is fine, in a directory that isn't there too, and spares the neighbours."""
    make, root = context.make, context.root
    store = make()
    for version in range(3):
        store.write(commit(root, version), b"x")
    for _ in range(2):
        make().delete(commit(root, 1))
    make().delete(commit(f"{root}/never-made", 0))
    require(names(make().list_from(commit(root, 0))) == [f"{0:020}.json", f"{2:020}.json"], "a delete took too much")
