"""One Parquet file of a checkpoint, decoded by column; and the errors for files of the log that can't be used."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from ...errors import CorruptLogError
from ...logstore.base import FileStatus, LogStore
from ..protocol.actions import Action
from ..protocol.codec import parse_line
from .column_types import fitted
from .segment import name_of

if TYPE_CHECKING:
    import pyarrow as pa

    from .open_parquet import OpenParquet

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


def opened_listed(store: LogStore, status: FileStatus, most: int) -> bytes | IO[bytes]:
    """The same; a file with more than `most` bytes is open, so that only the parts that are read are in memory."""
    if status.size <= most:
        return read_listed(store, status)
    try:
        file = store.open_file(status.path)
    except FileNotFoundError:
        raise ReplacedError(f"{name_of(status)} no longer exists") from None
    file.seek(0, 2)
    size = file.tell()  # the `seek` of hdfs-native returns None
    if size != status.size:
        file.close()
        raise ReplacedError(f"{name_of(status)} has {size} bytes, but was listed with {status.size}")
    return file


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
        self._opened: OpenParquet | None = None
        self.add_fields: frozenset[str] = frozenset()

    def open(self) -> "OpenParquet":
        from .open_parquet import OpenParquet

        self.fetch()
        assert self._data is not None
        if self._opened is None:
            with Damage(self.name, self.blame):
                self._opened = OpenParquet(self._data)
                self.add_fields = frozenset(self._opened.kinds.get("add", ()))
        return self._opened

    def by_row_group(self) -> "Iterator[ParquetFile]":
        """Each row group that is read, as a file of its own over the same bytes."""
        count = len(self.open().footer.row_groups)
        for index in range(self._share, count, self._of):
            one = ParquetFile(self.name, self._load, self.blame, share=index, of=count)
            one._data, one._opened, one.add_fields = self._data, self._opened, self.add_fields
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
        """Release its bytes if they are more than `keep`, or the open file."""
        if not isinstance(self._data, bytes) or len(self._data) > keep:
            self._data = self._opened = None

    def actions(self, kinds: Sequence[str]) -> list[Action]:
        """The rows of these kinds as actions; not for kinds with millions of rows."""
        file = self.open()
        actions: list[Action] = []
        budget = _HEADER_ROWS + file.footer.size // _BYTES_OF_HEADER_ROW
        with Damage(self.name, self.blame):
            for kind in kinds:
                if kind not in file.kinds:
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
            if kind not in file.kinds:
                return
            present = name in file.kinds[kind]
            for rows in self._batches(file, kind, [f"{kind}.{name if present else _PRESENCE[kind]}"]):
                yield fitted(rows.flatten()[0], pa.string()) if present else pa.nulls(len(rows), pa.string())

    def structs(self, kind: str, names: Sequence[str]) -> "Iterator[pa.StructArray]":
        """The rows of a kind with these columns (or dotted paths below them), in batches; missing columns are left
        out. The bytes are loaded before this returns.
        """
        file = self.open()

        def batches() -> "Iterator[pa.StructArray]":
            with Damage(self.name, self.blame):
                if kind not in file.kinds:
                    return
                yield from self._batches(file, kind, file.existing(kind, names) or [f"{kind}.{_PRESENCE[kind]}"])

        return batches()

    def columns(self, kind: str, names: Sequence[str], leaves: Sequence[str] | None = None) -> "pa.Table":
        """Columns of the rows of a kind. `leaves` limits what is read below them to these dotted paths."""
        import pyarrow as pa

        file = self.open()
        with Damage(self.name, self.blame):
            if kind not in file.kinds:
                return pa.table({name: pa.nulls(0) for name in names})
            fields = file.kinds[kind]
            present = [name for name in names if name in fields]
            paths = file.existing(kind, present if leaves is None else leaves)
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

    def _batches(self, file: "OpenParquet", kind: str, paths: Sequence[str]) -> Iterator["pa.StructArray"]:
        """The struct of `kind` with these columns, in batches; only the rows of this kind."""
        own = range(self._share, len(file.footer.row_groups), self._of)
        groups = file.row_groups(f"{kind}.{_PRESENCE[kind]}", own)
        expected = sum(file.footer.row_groups[index].num_rows for index in groups)
        budget = file.most_decoded
        for batch in file.file.iter_batches(file.batch_rows(groups, paths), row_groups=groups, columns=list(paths)):
            batch.validate(full=True)  # also checks that texts are UTF-8
            expected -= len(batch)
            budget -= batch.nbytes
            if budget < 0:
                raise CorruptLogError(f"it decodes to more than {file.most_decoded} bytes, but has {file.footer.size}")
            rows = batch.column(0)
            if rows.null_count:
                rows = rows.drop_null()
            if len(rows):
                yield rows
        if expected:
            raise CorruptLogError(
                f"it has {abs(expected)} rows {'less' if expected > 0 else 'more'} than its footer says"
            )


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
