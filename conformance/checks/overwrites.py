"""Check 12: overwrites and deletes, alone and in a race with a create."""

from ..failures import require
from ..harness.interleave import outcome
from ..model import Context
from .suite import at, below, check, commit, commit_names, expect, interleavings, names, value_of


@check(12, guarantee=0)
def overwrite_replaces(context: Context) -> None:
    """After an overwrite the file has exactly the new bytes, whether it existed before and whatever its size was."""
    make, root = context.make, context.root
    path = below(root, "_last_checkpoint")
    for data in (b"first", b"a longer one" * 1000, b"short", b""):
        make().write(path, data, overwrite=True)
        require(make().read(path) == data, "an overwritten file doesn't have the last writer's bytes")


@check(12, guarantee=0, lasts=True)
def overwrite_is_atomic_where_declared(context: Context) -> None:
    """If the store declares atomic overwrites, a reader sees the old or the new bytes at each step of an overwrite."""
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
        content = value_of(case.between, "reading during an overwrite", case)
        require(
            content in {old, new}, f"a reader saw {len(content)} bytes, neither the old nor the new file {at(case)}"
        )
        writer.write(path, old, overwrite=True)


@check(12, guarantee=2, lasts=True)
def overwrite_and_create_exclude_each_other(context: Context) -> None:
    """A create never replaces the file of an overwrite that happens at any step of the create."""
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
        # In either order the overwrite is the last one to change the file.
        data = make().read(commit(root, case.step))
        require(data == b"overwritten", f"a create replaced an existing file {at(case)}")


@check(12, guarantee=2)
def a_deleted_name_is_won_anew(context: Context) -> None:
    """After a delete exactly one create of the name wins again, and an overwrite works too."""
    make, root = context.make, context.root
    for version, overwrite in enumerate((False, True)):
        path = commit(root, version)
        make().write(path, b"old")
        make().delete(path)
        make().write(path, b"new", overwrite=overwrite)
        expect(FileExistsError, outcome(lambda p=path: make().write(p, b"newer")), "writing a file that exists")  # type: ignore[misc]
        require(make().read(path) == b"new", "the file doesn't have the data of the first write after the delete")
    listed = names(make().list_from(commit(root, 0)))
    require(listed == commit_names(0, 2), f"after deletes and new writes a listing has {listed}")


@check(12, guarantee=0)
def delete_is_idempotent(context: Context) -> None:
    """Deleting a missing file, or one in a missing directory, is no error; a delete removes no other file."""
    make, root = context.make, context.root
    store = make()
    for version in range(3):
        store.write(commit(root, version), b"x")
    for _ in range(2):
        make().delete(commit(root, 1))
    make().delete(commit(f"{root}/never-made", 0))
    require(
        names(make().list_from(commit(root, 0))) == [f"{0:020}.json", f"{2:020}.json"], "a delete removed another file"
    )
