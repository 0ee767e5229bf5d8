"""One Parquet file of a checkpoint, decoded by column; and the errors for files of the log that can't be used."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from ...errors import CorruptLogError
from ...logstore.base import FileStatus, LogStore
from ..protocol.actions import Action
from ..protocol.codec import parse_line
from .parquet_footer import Footer, footer_of, most_decoded
from .parquet_pages import pages_of
from .row_groups import RowGroup
from .segment import name_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS = 1 << 16
_HEADER_ROWS, _BYTES_OF_HEADER_ROW = 100_000, 4
"""The limit of rows that aren't files: a constant, plus one row for each of these bytes of the file."""

# A required leaf of each kind of row: if it is null, the row is of another kind.
_PRESENCE = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "sidecar": "path",
    "add": "path",
    "remove": "path",
}
HEADER_KINDS = ("protocol", "metaData", "txn", "domainMetadata", "sidecar")
"""The kinds of rows that every reader of a checkpoint needs; a checkpoint has few of them."""


class DamagedCheckpointError(CorruptLogError):
    """A checkpoint can't be read; an older one, or the commits, may replace it. `names` are its files."""

    def __init__(
        self,
        message: str,
        names: tuple[str, ...] = (),
        *,
        table: str | None = None,
        version: int | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(message, table=table, version=version, path=path)
        self.names = names


class ReplacedError(Exception):
    """A file of the log was removed or replaced since it was listed."""


def read_listed(store: LogStore, status: FileStatus) -> bytes:
    """The content of a listed file; `ReplacedError` if it no longer exists or has another size."""
    try:
        data = store.read(status.path)
    except FileNotFoundError:
        raise ReplacedError(f"{name_of(status)} no longer exists") from None
    if len(data) != status.size:
        raise ReplacedError(f"{name_of(status)} has {len(data)} bytes, but was listed with {status.size}")
    return data


class ParquetFile:
    """One Parquet file of a checkpoint. Not thread-safe: its owner must hold a lock."""

    def __init__(
        self,
        name: str,
        load: Callable[[], bytes | IO[bytes]],
        blame: tuple[str, ...],
        *,
        share: int = 0,
        of: int = 1,
    ) -> None:
        """Args:
        name: The file name, for messages.
        load: Returns the content, or an open file from which only the needed parts are read.
        blame: The names of all files of the checkpoint, for `DamagedCheckpointError`.
        share: Only the row groups whose index modulo `of` is `share` are read.
        of: See `share`.
        """
        self.name = name
        self.blame = blame
        self._load = load
        self._share = share
        self._of = of
        self._data: bytes | IO[bytes] | None = None
        self._footer: Footer | None = None
        self.add_fields: frozenset[str] = frozenset()

    def open(self) -> "pq.ParquetFile":
        import pyarrow as pa
        import pyarrow.parquet as pq

        from .columns import ADD_TYPES

        self.fetch()
        with Damage(self.name, self.blame):
            # Spark writes the timestamps of stats_parsed as INT96: nanoseconds would overflow for the year 9999.
            assert self._data is not None
            if self._footer is None:
                self._footer = footer_of(self._data)
            source = pa.BufferReader(self._data) if isinstance(self._data, bytes) else self._data
            file = pq.ParquetFile(
                source,
                metadata=self._footer.metadata,
                coerce_int96_timestamp_unit="us",
                page_checksum_verification=True,
            )
            schema = file.schema_arrow
            if "add" in schema.names:
                self.add_fields = frozenset(field.name for field in schema.field("add").type)
                # Checked before any column is returned: for later damage the commits can't be used instead.
                for field in schema.field("add").type:
                    if field.name in ADD_TYPES and not _fits(field.type, ADD_TYPES[field.name]):
                        raise CorruptLogError(f"add.{field.name} has the type {field.type}")
            return file

    def by_row_group(self) -> "Iterator[ParquetFile]":
        """Each row group that is read, as a file of its own over the same bytes."""
        file = self.open()
        for index in range(self._share, file.num_row_groups, self._of):
            one = ParquetFile(self.name, self._load, self.blame, share=index, of=file.num_row_groups)
            one._data, one._footer = self._data, self._footer
            yield one

    def fetch(self) -> None:
        if self._data is None:
            try:
                self._data = self._load()
            except CorruptLogError as error:
                raise DamagedCheckpointError(
                    f"the checkpoint {self.name} can't be read: {error}", self.blame, path=self.name
                ) from error

    @property
    def at_hand(self) -> bool:
        return self._data is not None

    def release(self, keep: int) -> None:
        """Release its bytes if they are more than `keep`."""
        if isinstance(self._data, bytes) and len(self._data) > keep:
            self._data = self._footer = None

    def actions(self, kinds: Sequence[str]) -> list[Action]:
        """The rows of these kinds as actions; not for kinds with millions of rows."""
        file = self.open()
        actions: list[Action] = []
        budget = _HEADER_ROWS + self._size // _BYTES_OF_HEADER_ROW
        with Damage(self.name, self.blame):
            for kind in kinds:
                if kind not in file.schema_arrow.names:
                    continue
                batches = []
                for rows in self._batches(file, kind, [kind]):
                    # Checked before the rows become Python objects, which need about a hundred times as much memory.
                    budget -= len(rows)
                    if budget < 0:
                        raise CorruptLogError(f"it has more rows of {kind} than a file of its size can have")
                    batches.append(rows)
                for rows in batches:
                    actions.extend(_action(kind, _plain(value, rows.type)) for value in rows.to_pylist())
        return actions

    def pieces(self, kind: str, name: str) -> Iterator["pa.Array"]:
        """One string column of the rows of a kind, in batches."""
        import pyarrow as pa

        file = self.open()
        with Damage(self.name, self.blame):
            if kind not in file.schema_arrow.names:
                return
            present = file.schema_arrow.field(kind).type.get_field_index(name) >= 0
            for rows in self._batches(file, kind, [f"{kind}.{name if present else _PRESENCE[kind]}"]):
                yield fitted(rows.flatten()[0], pa.string()) if present else pa.nulls(len(rows), pa.string())

    def structs(self, kind: str, names: Sequence[str]) -> "Iterator[pa.StructArray]":
        """The rows of a kind with these columns (or dotted paths below them), in batches; missing columns are left
        out. The bytes are loaded before this returns.
        """
        file = self.open()

        def batches() -> "Iterator[pa.StructArray]":
            with Damage(self.name, self.blame):
                if kind not in file.schema_arrow.names:
                    return
                yield from self._batches(file, kind, _existing(file, kind, names) or [f"{kind}.{_PRESENCE[kind]}"])

        return batches()

    def columns(self, kind: str, names: Sequence[str], leaves: Sequence[str] | None = None) -> "pa.Table":
        """Columns of the rows of a kind. `leaves` limits what is read below them to these dotted paths."""
        import pyarrow as pa

        file = self.open()
        with Damage(self.name, self.blame):
            schema = file.schema_arrow
            if kind not in schema.names:
                return pa.table({name: pa.nulls(0) for name in names})
            fields = {field.name: field.type for field in schema.field(kind).type}
            present = [name for name in names if name in fields]
            paths = _existing(file, kind, present if leaves is None else leaves)
            # If no other column exists, the path is read to get the number of rows.
            batches = list(self._batches(file, kind, paths or [f"{kind}.{_PRESENCE[kind]}"]))
            rows = sum(len(batch) for batch in batches)
            columns: dict[str, Any] = {}
            for name in names:
                if name not in present or not batches or batches[0].type.get_field_index(name) < 0:
                    columns[name] = pa.chunked_array([pa.nulls(rows, fields.get(name, pa.null()))])
                else:
                    index = batches[0].type.get_field_index(name)
                    columns[name] = pa.chunked_array([batch.flatten()[index] for batch in batches])
            return pa.table(columns)

    def _batches(self, file: "pq.ParquetFile", kind: str, paths: Sequence[str]) -> Iterator["pa.StructArray"]:
        """The struct of `kind` with these columns, in batches; only the rows of this kind."""
        presence = f"{kind}.{_PRESENCE[kind]}"
        leaf = next((index for index in range(len(file.schema)) if file.schema.column(index).path == presence), None)
        own_groups = range(self._share, file.num_row_groups, self._of)
        assert self._footer is not None
        groups = [index for index in own_groups if _may_hold(self._footer.row_groups[index], leaf)]
        expected = sum(self._footer.row_groups[index].num_rows for index in groups)
        budget = most_decoded(self._size)
        for batch in file.iter_batches(self._batch_rows(file, groups, paths), row_groups=groups, columns=list(paths)):
            batch.validate(full=True)  # also checks that texts are UTF-8
            expected -= len(batch)
            budget -= batch.nbytes
            if budget < 0:
                raise CorruptLogError(f"it decodes to more than {most_decoded(self._size)} bytes, but has {self._size}")
            rows = batch.column(0)
            if rows.null_count:
                rows = rows.drop_null()
            if len(rows):
                yield rows
        if expected:
            raise CorruptLogError(
                f"it has {abs(expected)} rows {'less' if expected > 0 else 'more'} than its footer says"
            )

    @property
    def _size(self) -> int:
        assert self._footer is not None
        return self._footer.size

    def _batch_rows(self, file: "pq.ParquetFile", groups: Sequence[int], paths: Sequence[str]) -> int:
        """The number of rows to decode at once. CorruptLogError if the pages of these columns decompress to too much.

        Each row may contain the longest text of a dictionary: the longer that can be, the fewer rows at once.
        """
        if not isinstance(self._data, bytes):
            return _BATCH_ROWS
        assert self._footer is not None
        max_bytes = most_decoded(self._size)
        total = longest = 0
        column_indices = [
            index
            for index in range(len(file.schema))
            if any(f"{file.schema.column(index).path}.".startswith(f"{path}.") for path in paths)
        ]
        for group in groups:
            for index in column_indices:
                column = self._footer.row_groups[group].columns[index]
                pages = pages_of(self._data, column.start, column.size)
                total, longest = total + pages.decompressed, max(longest, pages.dictionary)
                if total > max_bytes:
                    raise CorruptLogError(f"it decompresses to more than {max_bytes} bytes, but has {self._size}")
        return max(1, min(_BATCH_ROWS, max_bytes // max(longest, 1)))


def fitted(column: Any, type_: "pa.DataType") -> Any:
    """A column (or a chunk) cast to the type that checkpoints have for it; CorruptLogError for an incompatible type."""
    if column.type.equals(type_):
        return column
    if not _fits(column.type, type_):
        raise CorruptLogError(f"a column has the type {column.type}, but must have {type_}")
    return column.cast(type_)


def _fits(actual: "pa.DataType", expected: "pa.DataType") -> bool:
    import pyarrow as pa

    if pa.types.is_null(actual):
        return True
    for is_kind in (pa.types.is_integer, pa.types.is_boolean, _is_text):
        if is_kind(expected):
            return bool(is_kind(actual))
    if pa.types.is_map(expected):
        return bool(
            pa.types.is_map(actual)
            and _fits(actual.key_type, expected.key_type)
            and _fits(actual.item_type, expected.item_type)
        )
    if not pa.types.is_struct(actual):
        return False
    # A deletion vector without one of its fields must not be read as no vector: deleted rows would reappear.
    return all(
        child.name in _OPTIONAL if index < 0 else _fits(actual.field(index).type, child.type)
        for child, index in ((child, actual.get_field_index(child.name)) for child in expected)
    )


def _is_text(type_: "pa.DataType") -> bool:
    import pyarrow as pa

    kinds = pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary
    return any(kind(type_) for kind in kinds)


_OPTIONAL = frozenset({"offset"})


def _existing(file: "pq.ParquetFile", kind: str, names: Sequence[str]) -> list[str]:
    """The given columns of a kind, or dotted paths below them, that exist in the file."""
    known = [file.schema.column(index).path + "." for index in range(len(file.schema))]
    return [path for path in (f"{kind}.{name}" for name in names) if any(leaf.startswith(path + ".") for leaf in known)]


def _may_hold(group: RowGroup, leaf: int | None) -> bool:
    """Whether a row group may have rows of a kind, by the null count of a leaf that all of them have."""
    nulls = None if leaf is None else group.columns[leaf].nulls
    return nulls is None or nulls < group.num_rows


# The exceptions that wrong column types cause in this module and in Arrow.
_DAMAGE = OSError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, MemoryError, CorruptLogError


class Damage:
    """Context manager that turns the errors of Arrow for a broken file into `DamagedCheckpointError`."""

    def __init__(self, name: str, blame: tuple[str, ...]) -> None:
        self._name = name
        self._blame = blame

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import pyarrow as pa

        if error is None or isinstance(error, FileNotFoundError | ReplacedError | DamagedCheckpointError):
            return
        if isinstance(error, (pa.ArrowException, *_DAMAGE)):
            raise DamagedCheckpointError(
                f"the checkpoint {self._name} is damaged: {error}", self._blame, path=self._name
            ) from error


def _plain(value: Any, type_: "pa.DataType") -> Any:
    """A value in the form of JSON: Arrow returns a map as a list of pairs."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_struct(type_):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    if pa.types.is_map(type_):
        return dict(value)
    return value


def _action(kind: str, value: dict[str, Any]) -> Action:
    action = parse_line(json.dumps({kind: value}))
    assert action is not None
    return action
