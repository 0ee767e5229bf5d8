"""Writers that append to one table as fast as they can, on a store in memory whose calls each take some time.

`python -m benchmarks.slow_store [--writers 16] [--seconds 30] [--milliseconds 30]`: how many commits each of them made.
Unlike MinIO on the same machine, such a store costs no processor time: it shows the rules of waiting alone.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tablelog.core import AddFile, DeltaLog, Metadata, Operation
from tablelog.logstore import FileStatus, LogStoreWrapper, MemoryLogStore


class SlowStore(LogStoreWrapper):
    def __init__(self, inner: MemoryLogStore, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds

    def read(self, path: str) -> bytes:
        time.sleep(self._seconds)
        return super().read(path)

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        time.sleep(self._seconds)
        super().write(path, data, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        time.sleep(self._seconds)
        return super().list_from(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--milliseconds", type=float, default=30)
    arguments = parser.parse_args()
    store, writers = MemoryLogStore(), arguments.writers
    transaction = DeltaLog("memory:/table", store).transaction()
    transaction.set_metadata(Metadata("slow-store", '{"type":"struct","fields":[]}'))
    transaction.commit([], Operation("CREATE TABLE"))
    barrier = Barrier(writers)

    def work(number: int) -> tuple[int, float]:
        """(commits in time, the longest time that one took)."""
        log = DeltaLog("memory:/table", SlowStore(store, arguments.milliseconds / 1000))
        log.snapshot()
        barrier.wait()
        commits, longest, ends = 0, 0.0, time.monotonic() + arguments.seconds
        while (began := time.monotonic()) < ends:
            add = AddFile(f"{number}-{commits}.parquet", {}, 1, 1, True)
            log.transaction().commit([add], Operation("WRITE"))
            longest = max(longest, time.monotonic() - began)
            commits += time.monotonic() < ends
        return commits, longest

    with ThreadPoolExecutor(writers) as pool:
        done = list(pool.map(work, range(writers)))
    counts = [commits for commits, _ in done]
    jain = sum(counts) ** 2 / (writers * sum(count * count for count in counts))
    print(
        f"{writers} writers: {sum(counts) / arguments.seconds:.1f} commits a second; of a writer, fewest "
        f"{min(counts)}, median {statistics.median(counts):.0f}, most {max(counts)}; Jain's index {jain:.2f}; the "
        f"longest commit took {max(longest for _, longest in done):.1f} s"
    )


if __name__ == "__main__":
    main()
