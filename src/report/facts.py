"""What a report knows about a table: values. Sizes are in bytes, times in milliseconds."""

from dataclasses import dataclass

from ..core.log_maintenance.problems import Problem

Values = tuple[tuple[str, str | None], ...]
"""The values of a partition, by column name."""


@dataclass(frozen=True, slots=True)
class Point:
    """The table at one version. `rows` and `size` are `None` if the log doesn't say."""

    version: int
    time_ms: int
    rows: int | None
    size: int | None
    files: int


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: what it did, and how many other commits came between its read version and itself."""

    version: int
    time_ms: int
    operation: str
    added: int
    removed: int
    added_size: int
    overtaken_by: int | None = None
    predicates: tuple[str, ...] = ()
    writer: str = ""


@dataclass(frozen=True, slots=True)
class SizeClass:
    """The files of at least `lower` and less than `upper` bytes; no `upper`: of any larger size."""

    lower: int
    upper: int | None
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The live files. A file is small if it has less than `small` bytes; `after` files remain after OPTIMIZE."""

    target: int
    small: int
    count: int
    size: int
    rows: int | None
    deleted_rows: int
    median: int
    classes: tuple[SizeClass, ...]
    small_files: int
    small_size: int
    after: int


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition: its live files, those that are small, and how many files OPTIMIZE would leave."""

    values: Values
    files: int
    size: int
    small_files: int
    small_size: int
    after: int

    @property
    def fewer(self) -> int:
        """How many files less it has after OPTIMIZE."""
        return self.files - self.after


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The partitions: their number and sizes, the largest ones, and those where OPTIMIZE removes most files."""

    columns: tuple[str, ...]
    count: int
    median: int
    largest: tuple[Partition, ...]
    fragmented: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """How well the files can be skipped by one column. `path` has the names of the structs that contain it, too.

    `known` of the table's files have bounds of this column. A search for one value reads `lookup` files on average.
    """

    path: tuple[str, ...]
    type: str
    is_partition: bool
    known: float
    lookup: float

    @property
    def name(self) -> str:
        """The name for people, with dots."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class SkippingFacts:
    """The columns by which files are skipped. `sampled` files were compared; `left_out` columns weren't."""

    columns: tuple[Column, ...]
    sampled: int
    left_out: int
    clustering: tuple[str, ...] | None
    used: tuple[tuple[str, int], ...]
    """Columns in the conditions of past commands, and the number of commands that had them."""


@dataclass(frozen=True, slots=True)
class VectorFacts:
    """The deletion vectors: files with one, rows that they delete, and the files by the share of deleted rows."""

    files: int
    rows: int
    shares: tuple[int, ...]
    """The number of files of which up to 5, 10, 25, 50 and 100 % of the rows are deleted."""
    heavy_files: int
    heavy_size: int
    freed: int
    """Bytes that a rewrite of the heavy files saves, if all rows have the same size."""


@dataclass(frozen=True, slots=True)
class TombstoneFacts:
    """The removed files in the log. The expired ones may be deleted by VACUUM; `vacuum_ms` is the last VACUUM."""

    files: int
    size: int
    expired_files: int
    expired_size: int
    retention_ms: int
    vacuum_ms: int | None


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The files of the log. `problems` is `None` if the log was too large to be checked."""

    oldest: int
    commits: int
    size: int
    checkpoints: tuple[int, ...]
    checkpoint_size: int
    checkpoint_interval: int
    since_checkpoint: int
    compactions: int
    checksums: int
    retention_ms: int
    problems: tuple[Problem, ...] | None


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of the table. `active`: its metadata uses it."""

    name: str
    needed_by: str
    active: bool
    supported: bool


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Everything that a report knows about a table."""

    location: str
    name: str | None
    description: str | None
    version: int
    time_ms: int
    created_ms: int | None
    now_ms: int
    num_columns: int
    protocol: tuple[int, int]
    features: tuple[Feature, ...]
    properties: tuple[tuple[str, str], ...]
    growth: tuple[Point, ...]
    commits: tuple[Commit, ...]
    files: FileFacts
    partitions: PartitionFacts
    skipping: SkippingFacts
    vectors: VectorFacts
    tombstones: TombstoneFacts
    log: LogFacts
