"""Logs that a stranger may hand over: valid ones that were changed, and ones made by hand to use up memory or time.

`CASES` maps a name to what changes a table that `base` made. Where the commits are untouched the right answer is known,
and a log that can be read at all has to give it.
"""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core.log import checksum
from tablelog.core.protocol.actions import DeletionVectorDescriptor, DomainMetadata, Protocol, SetTransaction
from tablelog.core.protocol.paths import checkpoint_name, commit_name, compacted_name, crc_name
from tablelog.logstore import LocalLogStore

CHECKPOINT, NEWEST = 6, 8
VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 4)
LARGE = 1 << 42
"""Bytes of a sparse file."""

Change = Callable[[Path], Any]


def base(directory: Path, *, v2: bool = False) -> None:
    """A table of 9 versions with a checkpoint, a hint, a compaction and a checksum."""
    features = frozenset({"deletionVectors", *(["v2Checkpoint"] if v2 else [])})
    builder = LogBuilder(LocalLogStore(), str(directory))
    builder.commit(Protocol(3, 7, features, features), metadata({"delta.checkpointPolicy": "v2"} if v2 else {}))
    for number in range(1, NEWEST):
        stats = (
            f'{{"numRecords":{number},"minValues":{{"id":{number}}},"maxValues":{{"id":{number}}},"nullCount":{{}}}}'
        )
        vector = VECTOR if number == 3 else None
        builder.commit(
            add(f"{number}", size=number, stats=stats, deletion_vector=vector, tags={"k": "v"}),
            SetTransaction("app", number),
            DomainMetadata("d", str(number), False),
        )
    builder.commit(remove("1", size=1), add("last", size=9))
    log = builder.log()
    log.checkpoint(log.snapshot(CHECKPOINT))
    log.compact(1, 3)
    snapshot = log.snapshot()
    totals = snapshot.totals()
    assert totals is not None
    builder.write(crc_name(NEWEST), checksum.serialise(checksum.of(snapshot, totals, most_files=50)))


# --- what is no file --------------------------------------------------------------------------------------------------


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _directory(path: Path) -> None:
    path.mkdir()


def _empty(path: Path) -> None:
    path.touch()


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(LARGE)


def _noise(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(10_000))


NO_FILES = {"pipe": _pipe, "device": _device, "loop": _loop, "directory": _directory}
IN_PLACE: dict[str, str] = {
    "hint": "_last_checkpoint",
    "checksum": crc_name(NEWEST),
    "checkpoint": checkpoint_name(CHECKPOINT),
    "compaction": compacted_name(1, 3),
    "newest": commit_name(NEWEST),
}


def _instead(name: str, make: Change) -> Change:
    def change(log: Path) -> None:
        (log / name).unlink()
        make(log / name)

    return change


# --- commits ----------------------------------------------------------------------------------------------------------


def _line(text: str | bytes) -> Change:
    data = text.encode() if isinstance(text, str) else text
    return lambda log: (log / commit_name(NEWEST)).write_bytes(data + b"\n")


def _actions(*actions: Any) -> Change:
    return _line("\n".join(json.dumps(action) for action in actions))


def _vector(**fields: Any) -> Change:
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 36}
    file = {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return _actions({"add": {**file, "deletionVector": {**vector, "cardinality": 2, **fields}}})


def _schema(text: str) -> Change:
    fields = {"id": "i", "format": {"provider": "parquet"}, "partitionColumns": [], "configuration": {}}
    return _actions({"metaData": {**fields, "schemaString": text}})


DEEP = 100_000
LINES: dict[str, Change] = {
    "many keys": _line("{" + ",".join(f'"k{number}":1' for number in range(100_000)) + "}"),
    "many keys below": _line('{"add":{' + ",".join(f'"k{number}":1' for number in range(100_000)) + "}}"),
    "deep": _line('{"add":' * DEEP + "1" + "}" * DEEP),
    "deep array": _line("[" * DEEP + "]" * DEEP),
    "long number": _line('{"add":{"size":' + "9" * 1_000_000 + "}}"),
    "no UTF-8": _line(b'{"add":{"path":"\xff"}}'),
    "half a surrogate": _line('{"commitInfo":{"operation":"\\ud800"}}'),
    "null bytes": _line(b"\0" * 1000),
    "a vector of 10^12 bytes": _vector(sizeInBytes=10**12),
    "a vector of -1 bytes": _vector(sizeInBytes=-1),
    "a vector far away": _vector(offset=10**15),
    "many deleted rows": _vector(cardinality=-1),
    "an odd path": _actions({"add": {"path": "http://[::1", "partitionValues": {}, "size": -5,
                                     "modificationTime": -(2**63), "dataChange": True}}),
    "deep schema": _schema('{"type":"struct","fields":[{"name":"a","nullable":true,"metadata":{},"type":' * 5_000),
    "no schema": _schema("[]"),
    "protocol of the future": _actions({"protocol": {"minReaderVersion": 2**31 - 1, "minWriterVersion": 1}}),
}  # fmt: skip


# --- names ------------------------------------------------------------------------------------------------------------


def _copied(name: str) -> Change:
    return lambda log: shutil.copy(log / commit_name(NEWEST), log / name)


NAMES: dict[str, Change] = {
    "the last version there can be": _copied(commit_name(2**63 - 1)),
    "a version beyond": _copied(f"{2**63:020}.json"),
    "a compaction of all versions": _copied(compacted_name(1, 2**63 - 1)),
    "a part of many": _copied(f"{NEWEST:020}.checkpoint.0000000001.9999999999.parquet"),
    "a checkpoint of the last version": lambda log: shutil.copy(
        log / checkpoint_name(CHECKPOINT), log / checkpoint_name(2**63 - 1)
    ),
}


def _hint(**fields: Any) -> Change:
    data = json.dumps({"version": CHECKPOINT, "size": 1, **fields}).encode()
    return lambda log: (log / "_last_checkpoint").write_bytes(data)


HINTS: dict[str, Change] = {
    "hint to nowhere": _hint(version=10**30),
    "hint to the end": _hint(version=2**63 - 1),
    "hint below zero": _hint(version=-1),
    "hint of many parts": _hint(parts=10**12),
    "hint of a text": _hint(version="6"),
    "deep hint": lambda log: (log / "_last_checkpoint").write_bytes(b'{"version":' * DEEP),
    "deep checksum": lambda log: (log / crc_name(NEWEST)).write_bytes(b"[" * DEEP),
    "endless hint": _instead("_last_checkpoint", _sparse),
    "endless checksum": _instead(crc_name(NEWEST), _sparse),
}


# --- checkpoints ------------------------------------------------------------------------------------------------------


def _rows(log: Path) -> pa.Table:
    return pq.read_table(log / checkpoint_name(CHECKPOINT))


def _written(log: Path, rows: pa.Table, **options: Any) -> None:
    pq.write_table(rows, log / checkpoint_name(CHECKPOINT), **options)


def _with(log: Path, more: pa.Table, **options: Any) -> None:
    """A checkpoint of the rows that it has, and of others after them."""
    rows = _rows(log)
    kind = more.column_names[0]
    fields = list(more.schema.field(kind).type)
    column = rows.column(kind).combine_chunks()
    children = []
    for field in fields:
        there = column.type.get_field_index(field.name) >= 0
        child = pc.struct_field(column, field.name) if there else pa.nulls(len(column), pa.string())
        if pa.types.is_dictionary(field.type):
            same = more.column(0).chunk(0).field(field.name).dictionary
            children.append(
                pa.DictionaryArray.from_arrays(pa.nulls(len(child), field.type.index_type).fill_null(0), same)
            )
        else:
            children.append(child.cast(field.type))
    own = pa.StructArray.from_arrays(children, names=[field.name for field in fields], mask=column.is_null())
    rows = rows.set_column(rows.column_names.index(kind), kind, own)
    others = [more.column(0) if f.name == kind else pa.nulls(more.num_rows, f.type) for f in rows.schema]
    # With no Arrow schema in it: what is a dictionary here is plain texts to who reads it.
    _written(log, pa.concat_tables([rows, pa.table(others, schema=rows.schema)]), store_schema=False, **options)


def _many_transactions(log: Path) -> None:
    """6 million rows in some hundred kilobytes: runs of one value."""
    count = 6_000_000
    texts = pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int8()).fill_null(0), pa.array(["a"]))
    rows = pa.StructArray.from_arrays([texts, pa.nulls(count, pa.int64()).fill_null(1)], names=["appId", "version"])
    _with(log, pa.table({"txn": rows}), compression="zstd")


def _texts(count: int, length: int) -> pa.Array:
    one = pa.array(["a" * length])
    return pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()).fill_null(0), one)


def _many_texts(count: int, length: int, **options: Any) -> Change:
    def change(log: Path) -> None:
        texts = _texts(count, length)
        if options.get("use_dictionary") is False:
            texts = texts.cast(pa.string())
        names, sizes = pa.array([str(number) for number in range(count)]), pa.array(range(count))
        rows = pa.StructArray.from_arrays([names, sizes, texts], names=["path", "size", "clusteringProvider"])
        _with(log, pa.table({"add": rows}), compression="zstd", **options)

    return change


def _no_utf8(log: Path) -> None:
    rows = pa.StructArray.from_arrays([pa.array([b"\xff\xfe"]).view(pa.string())], names=["path"])
    _with(log, pa.table({"add": rows}))


def _v2(path: str, size: int = 100, make: Change | None = None) -> Change:
    """A V2 checkpoint of the newest version, whose sidecar is `path`."""

    def change(log: Path) -> None:
        (log / "_sidecars").mkdir(exist_ok=True)
        if make is not None:
            make(log / "_sidecars" / path)
        lines = [json.loads(line) for line in (log / commit_name(0)).read_text().splitlines()]
        top = [line for line in lines if "commitInfo" not in line]
        top.append({"txn": {"appId": "app", "version": NEWEST - 1}})
        top.append({"domainMetadata": {"domain": "d", "configuration": str(NEWEST - 1), "removed": False}})
        top.append({"checkpointMetadata": {"version": NEWEST}})
        top.append({"sidecar": {"path": path, "sizeInBytes": size, "modificationTime": 1}})
        name = f"{NEWEST:020}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
        (log / name).write_text("\n".join(map(json.dumps, top)))

    return change


CHECKPOINTS: dict[str, Change] = {
    "6 million transactions": _many_transactions,
    "long texts": _many_texts(80, 4 << 20, use_dictionary=False),
    "one long text many times": _many_texts(20_000, 1 << 20),
    "a path that is no UTF-8": _no_utf8,
    "sidecar /dev/zero": _v2("/dev/zero"),
    "sidecar file:///dev/zero": _v2("file:///dev/zero", 2**63 - 1),
    "sidecar elsewhere": _v2("../00000000000000000000.json"),
    "sidecar in a directory": _v2("a/b.parquet"),
    "sidecar with no name": _v2(""),
    "sidecar of no bytes": _v2("x.parquet", -1),
    "sidecar %2Fdev%2Fzero": _v2("%2Fdev%2Fzero"),
    "sidecar http": _v2("http://169.254.169.254/_delta_log/_sidecars/x"),
    **{f"sidecar is a {name}": _v2("x.parquet", 100, make) for name, make in NO_FILES.items()},
    "endless sidecar": _v2("x.parquet", 100, _sparse),
    "noise as sidecar": _v2("x.parquet", 10_000, _noise),
}


def _wrong_types() -> Iterator[tuple[str, Change]]:
    """Each column of a checkpoint, and each field of its structs, with each of some other types."""
    others: dict[str, Callable[[int], pa.Array]] = {
        "text": lambda count: pa.array(["x"] * count),
        "bytes": lambda count: pa.array([b"\xff"] * count),
        "struct": lambda count: pa.array([{"a": 1}] * count),
        "null": lambda count: pa.nulls(count, pa.int32()),
    }

    def whole(kind: str, make: Callable[[int], pa.Array]) -> Change:
        def change(log: Path) -> None:
            rows = _rows(log)
            _written(log, rows.set_column(rows.column_names.index(kind), kind, make(rows.num_rows)))

        return change

    def one(kind: str, field: str, make: Callable[[int], pa.Array]) -> Change:
        def change(log: Path) -> None:
            rows = _rows(log)
            column = rows.column(kind).combine_chunks()
            names = [child.name for child in column.type]
            children = [make(len(column)) if n == field else c for n, c in zip(names, column.flatten(), strict=True)]
            made = pa.StructArray.from_arrays(children, names=names, mask=column.is_null())
            _written(log, rows.set_column(rows.column_names.index(kind), kind, made))

        return change

    fields = {
        "add": "path partitionValues size dataChange deletionVector tags stats".split(),
        "remove": "path deletionTimestamp deletionVector".split(),
        "metaData": "schemaString partitionColumns configuration format".split(),
        "protocol": "minReaderVersion readerFeatures".split(),
        "txn": "appId version".split(),
        "domainMetadata": "domain removed".split(),
    }
    for name, make in others.items():
        for kind, of_kind in fields.items():
            yield f"{kind} as {name}", whole(kind, make)
            for field in of_kind:
                yield f"{kind}.{field} as {name}", one(kind, field, make)


def _mutation(seed: int) -> tuple[str, Change]:
    """One file of the log changed at random. Of the commits alone what comes out isn't known."""
    random_ = random.Random(seed)
    name = random_.choice([*IN_PLACE.values(), checkpoint_name(CHECKPOINT), commit_name(7)])
    kind = random_.choice(["bit", "bytes", "cut", "twice", "gone"])

    def change(log: Path) -> None:
        data = bytearray((log / name).read_bytes())
        at = random_.randrange(len(data))
        if kind == "bit":
            data[at] ^= 1 << random_.randrange(8)
        elif kind == "bytes":
            data[at : at + 20] = random_.randbytes(20)
        elif kind == "cut":
            del data[at:]
        elif kind == "twice":
            data[at:at] = data[at : at + 100]
        else:
            (log / name).unlink()
            return
        (log / name).write_bytes(data)

    return f"{kind} {seed} of {name}", change


LOGS: dict[str, Change] = {
    "a file as log": lambda log: shutil.rmtree(log) or log.write_text("x"),
    "a pipe as log": lambda log: shutil.rmtree(log) or os.mkfifo(log),
    "a loop as log": lambda log: shutil.rmtree(log) or log.symlink_to(log.name),
}


CASES: dict[str, Change] = {
    **{f"{what} as {name}": _instead(file, make) for what, make in NO_FILES.items() for name, file in IN_PLACE.items()},
    **{f"{what} as {name}": _instead(file, make)
       for what, make in {"empty file": _empty, "noise": _noise}.items() for name, file in IN_PLACE.items()},
    **{f"line: {name}": change for name, change in LINES.items()},
    **NAMES, **HINTS, **CHECKPOINTS, **LOGS,
    **{name: change for name, change in _wrong_types() if name != "add.stats as text"},
    **dict(_mutation(seed) for seed in range(60)),
}  # fmt: skip

CHANGES_COMMITS = {
    *(f"line: {name}" for name in LINES), "the last version there can be", "a checkpoint of the last version",
    *LOGS, *(name for name in CASES if name.endswith(("as newest", *(f"of {commit_name(v)}" for v in (7, NEWEST))))),
}  # fmt: skip
"""The cases of which the right answer is no longer in the commits: an error of ours, or whatever they say now."""
