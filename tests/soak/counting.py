"""The tables after a soak, from outside: the raw log, the rows by delta-rs, the files that are there."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

from deltalake import DeltaTable, QueryBuilder

from soak import places
from soak.effects import Row, digest
from soak.journal import Journals
from soak.model import LogEntry, Read, differences, problems
from soak.places import Place, Run
from soak.reader import broken
from tablelog.core.protocol import deletion_vectors

_THREADS = 8


def entries(place: Place, table: str) -> list[LogEntry]:
    """Every commit in the log, in order."""
    log = place.log(table)
    listed = (status.path for status in log.store.list_from(f"{log.log_path}/{0:020}.json"))
    paths = sorted(path for path in listed if path.endswith(".json") and path.rpartition("/")[2][:20].isdigit()
                   and path.count(".", path.rindex("/")) == 1)  # fmt: skip

    def entry(path: str) -> LogEntry:
        actions = [json.loads(line) for line in log.store.read(path).splitlines()]
        (info,) = (action["commitInfo"] for action in actions if "commitInfo" in action)
        return LogEntry(int(path.rpartition("/")[2][:20]), info.get("userMetadata"), info["operation"])

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(entry, paths))


def rows_by_delta_rs(place: Place, table: str) -> list[Row]:
    """The rows as another implementation reads them."""
    options = {
        "aws_endpoint": place.conf["fs.s3a.endpoint"],
        "aws_region": place.conf["fs.s3a.endpoint.region"],
        "aws_access_key_id": place.conf["fs.s3a.access.key"],
        "aws_secret_access_key": place.conf["fs.s3a.secret.key"],
        "aws_allow_http": "true",
    } if place.conf else None  # fmt: skip
    delta = DeltaTable(place.url(table).replace("s3a:", "s3:", 1), storage_options=options)
    found = QueryBuilder().register("t", delta).execute("select id, p, amount from t").read_all()
    columns = [found.column(at).to_pylist() for at in range(3)]
    return [Row(*values) for values in zip(*columns, strict=True)]


def left_over(place: Place) -> list[str]:
    """Files in the directory of `main` that its newest version doesn't need, after a vacuum that keeps nothing."""
    adds = place.log("main").snapshot().add_files()
    needed = {unquote(add.path) for add in adds}
    vectors = (add.deletion_vector for add in adds)
    needed |= {unquote(deletion_vectors.path_of(one)) for one in vectors if one and one.storage_type != "i"}
    there = {name for name in place.files("main").list("") if not name.startswith("_delta_log/")}
    missing = sorted(needed - there)
    more = sorted(there - needed)
    return [f"{len(names)} files are {what}, such as {names[:3]}" for what, names in
            (("missing", missing), ("left over", more)) if names]  # fmt: skip


def place_problems(run: Run, place: Place, journals: Journals, first: list[Row]) -> tuple[list[str], Mapping[str, int]]:
    """What is wrong in one place, and how much there is."""
    found: list[str] = []
    counts = {}
    copies = {}
    for table in ("main", "events"):
        intents = [one for one in journals.intents.values() if (one.place, one.table) == (place.name, table)]
        log = place.log(table)
        last, theirs, known = places.read(log, log.snapshot()), rows_by_delta_rs(place, table), entries(place, table)
        reads = [Read(read["version"], read["digest"], read["by"]) for read in journals.reads
                 if (read["place"], table) == (place.name, "main")]  # fmt: skip
        of_table = problems(intents, known, reads, first if table == "main" else [], last)
        if digest(theirs) != digest(last):
            of_table += [f"delta-rs: {what}" for what in differences(last, theirs)]
        found += [f"{table}: {what}" for what in of_table]
        counts |= {f"commits to {table}": len(known), f"rows of {table}": len(last)}
        copies[table] = last
        if table == "main":
            counts["versions read and compared"] = len(reads)
            found += [f"main: {what}" for what in broken(last) + left_over(place)]
    copied = place.log("copied")
    found += [f"copied: {what}" for what in differences(copies["events"], places.read(copied, copied.snapshot()))]
    counts["commits to copied"] = copied.snapshot().version + 1
    for intent in journals.intents.values():
        if intent.place == place.name and intent.table != "copied" and intent.seconds > run.retention_seconds / 2:
            found.append(f"{intent.op} ({intent.kind}) took {intent.seconds:.0f} s: too long for the retention of "
                         f"{run.retention_seconds} s, so the soak says nothing")  # fmt: skip
    return [f"{place.name}, {what}" for what in found], counts
