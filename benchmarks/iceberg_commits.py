"""What Iceberg's metadata adds to a commit: `python -m benchmarks.iceberg_commits`, on local disk, without Spark.

Prints for tables of three sizes, with and without the metadata, the time of the commit that adds all files, of one that
adds a file, and of one that replaces a file (medians, in seconds).
"""

import json
import statistics
import tempfile
import time
import uuid
from collections.abc import Sequence

from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import Action, AddFile, Metadata
from tablelog.core.protocol.iceberg_compat import TAG
from tablelog.core.protocol.schema import PrimitiveType, StructField, StructType, to_json
from tablelog.core.txn.operation import Operation

_COLUMNS = 10


def measured(directory: str, files: int, *, iceberg: bool) -> dict[str, float]:
    log = DeltaLog.for_path(directory)
    schema = StructType(tuple(StructField(f"c{i}", PrimitiveType("long")) for i in range(_COLUMNS)))
    properties = {"delta.enableIcebergCompatV2": "true", "delta.checkpointInterval": "1000"}
    if iceberg:
        properties["delta.universalFormat.enabledFormats"] = "iceberg"
    txn = log.transaction()
    txn.set_metadata(Metadata(str(uuid.uuid4()), to_json(schema), (), properties))
    txn.commit([], Operation("CREATE TABLE"))
    names = log.snapshot().mapping.physical.names
    bounds = dict.fromkeys(names, 1)
    stats = json.dumps({"numRecords": 10, "minValues": bounds, "maxValues": bounds, "nullCount": bounds})

    def add(number: int) -> AddFile:
        return AddFile(f"part-{number:08d}.parquet", {}, 1000, 1, True, stats, {TAG: "2"})

    def seconds(actions: Sequence[Action]) -> float:
        began = time.perf_counter()
        log.transaction().commit(list(actions), Operation("WRITE"))
        return time.perf_counter() - began

    first = seconds([add(number) for number in range(files)])
    appends = [seconds([add(files + i)]) for i in range(20)]
    replaced = [seconds([add(files - 1 - i * 7).remove(1), add(10**7 + i)]) for i in range(5)]
    return {"add all": first, "add one": statistics.median(appends), "replace one": statistics.median(replaced)}


def main() -> None:
    for files in (100, 10_000, 100_000):
        for iceberg in (True, False):
            with tempfile.TemporaryDirectory() as directory:
                times = measured(directory, files, iceberg=iceberg)
            texts = ", ".join(f"{name} {value:.3f} s" for name, value in times.items())
            print(f"{files} files, {'with' if iceberg else 'without'} Iceberg's metadata: {texts}", flush=True)


if __name__ == "__main__":
    main()
