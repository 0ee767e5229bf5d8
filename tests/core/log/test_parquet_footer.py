"""The footer of a Parquet file that is read by parts."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tablelog.core.log.parquet_footer import footer_of


class WithoutPosition(io.BytesIO):
    """Like the files of hdfs-native: `seek` returns nothing."""

    def seek(self, offset: int, whence: int = 0) -> int:
        super().seek(offset, whence)
        return None  # type: ignore[return-value]


def test_the_footer_of_a_file_whose_seek_returns_nothing() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2, 3]}), sink)
    data = sink.getvalue()
    footer = footer_of(WithoutPosition(data))
    assert footer.metadata.num_rows == 3
    assert footer.size == len(data)
