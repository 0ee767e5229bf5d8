"""`Snapshot.file_stats`: all files or some, from texts and from the structs of a checkpoint."""

import json

import pytest

from support.log_builder import LogBuilder, add


@pytest.mark.parametrize("structs", ["true", "false"])
def test_the_statistics_of_some_files_are_those_of_all_of_them(structs: str) -> None:
    log = LogBuilder()
    log.create(configuration={"delta.checkpoint.writeStatsAsStruct": structs})
    for i in range(6):
        stats = {"numRecords": i, "minValues": {"id": i}, "maxValues": {"id": 10 * i}, "nullCount": {"id": 0}}
        log.commit(add(str(i), stats=json.dumps(stats)))
        if i == 3:
            log.log().checkpoint()
    snapshot = log.log().snapshot()
    assert snapshot.base_version == 4
    paths = snapshot.files.column("path").to_pylist()
    whole = snapshot.file_stats([("id",)])
    assert whole.num_records.to_pylist() == [int(path) for path in paths]
    rows = [5, 0, 3]
    some = snapshot.file_stats([("id",)], rows)
    leaf = some.leaves[("id",)]
    assert leaf.min is not None
    assert leaf.max is not None
    assert leaf.min.to_pylist() == [int(paths[row]) for row in rows]
    assert leaf.max.to_pylist() == [10 * int(paths[row]) for row in rows]
