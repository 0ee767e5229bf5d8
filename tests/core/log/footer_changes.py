"""A program that reads a Parquet file after each change of one byte of its footer, as a checkpoint is read.

It prints how many changes it tried, after how many the file could be read, and after how many there was a typed error.
"""

import sys
from pathlib import Path

from tablelog.core.log.checkpoint_file import ParquetFile
from tablelog.errors import CorruptLogError


def main(path: str) -> None:
    data = Path(path).read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    tried = read = refused = 0
    for at in range(len(data) - 8 - length, len(data) - 8):
        for value in (data[at] ^ 1, data[at] ^ 16, 0, 255):
            changed = data[:at] + bytes([value]) + data[at + 1 :]
            file = ParquetFile(path, lambda changed=changed: changed, ())  # type: ignore[misc]
            tried += 1
            try:
                file.actions(["txn"])
                file.columns("add", ["path", "size"])
                read += 1
            except CorruptLogError:
                refused += 1
    print(tried, read, refused)


if __name__ == "__main__":
    main(sys.argv[1])
