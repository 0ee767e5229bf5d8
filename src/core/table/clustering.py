"""Clustered tables (PROTOCOL.md, "Clustered Table"): the clustering columns, and the files to cluster again.

Files that were clustered together form a cube. As in Delta, their tags identify the cube (`ZCUBE_ID`) and its columns
(`ZCUBE_ZORDER_BY`). A cube that is large enough isn't rewritten, so that the work doesn't grow with the table.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from ...errors import CorruptLogError
from ..protocol.actions import AddFile, DomainMetadata
from ..protocol.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

DOMAIN = "delta.clustering"
PROVIDER = "liquid"
_ID, _COLUMNS, _CURVE = "ZCUBE_ID", "ZCUBE_ZORDER_BY", "ZCUBE_ZORDER_CURVE"


def domain(columns: Sequence[Column]) -> DomainMetadata:
    """The metadata domain of a table that is clustered by `columns` (physical names); empty: clustered by none."""
    return DomainMetadata(DOMAIN, json.dumps({"clusteringColumns": [list(c) for c in columns]}), removed=False)


def columns_of(domains: Mapping[str, DomainMetadata]) -> tuple[Column, ...] | None:
    """The physical names of the clustering columns; `None` for a table that isn't clustered."""
    clustering = domains.get(DOMAIN)
    if clustering is None or clustering.removed:
        return None
    try:
        columns = json.loads(clustering.configuration)["clusteringColumns"]
        return tuple((c,) if isinstance(c, str) else tuple(str(part) for part in c) for c in columns)
    except (ValueError, KeyError, TypeError):
        raise CorruptLogError(
            f"the metadata domain {DOMAIN} doesn't list the clustering columns of the table: "
            f"{clustering.configuration!r}. Set them again (CLUSTER BY), or restore the log from a copy"
        ) from None


def tags_of_new_cube(columns: Sequence[str]) -> dict[str, str]:
    """The tags of the files of one cube, clustered by `columns` (logical names, dotted)."""
    return {_ID: str(uuid4()), _COLUMNS: json.dumps(list(columns)), _CURVE: "zorder"}


def to_cluster(files: Iterable[AddFile], columns: Sequence[str], *, smallest_cube: int, full: bool) -> list[AddFile]:
    """The files to cluster again: first the files without a cube, then cube by cube.

    Unless `full`, files stay as they are if their cube has at least `smallest_cube` bytes, or if another implementation
    clustered them, or if other columns were used. If only one cube remains, there is nothing to do.
    """
    ours: defaultdict[str | None, list[AddFile]] = defaultdict(list)
    foreign: list[AddFile] = []
    for file in files:
        tags = file.tags or {}
        clustered_by = _names(tags.get(_COLUMNS))
        if file.clustering_provider not in (None, PROVIDER) or (
            clustered_by is not None and clustered_by != list(columns)
        ):
            foreign.append(file)
        else:
            ours[tags.get(_ID)].append(file)
    small = {
        cube: members for cube, members in ours.items() if cube is None or sum(f.size for f in members) < smallest_cube
    }
    if not (full and foreign):
        foreign = []
        if len(small) == 1 and None not in small:
            return []
    return [*in_order(file for members in small.values() for file in members), *foreign]


def in_order(files: Iterable[AddFile]) -> list[AddFile]:
    """First the files without a cube, then cube by cube."""
    return sorted(files, key=lambda file: cube_of(file)[0] or "")


Cube = tuple[str | None, str | None, str | None]
"""What `to_cluster` knows of a file's cube: its ID, its columns, and the implementation that clustered it."""


@dataclass(frozen=True, slots=True)
class OneOfEachCube:
    """Selects one file of each cube, with the bytes of all its files: enough for `to_cluster` to choose cubes."""

    def __call__(self, files: "pa.Table") -> "tuple[pa.Table, int]":
        """The selected rows of `Snapshot.files`, and the number of rows before."""
        import pyarrow as pa

        firsts: dict[Cube, int] = {}
        sizes: dict[Cube, int] = defaultdict(int)
        for row, (cube, size) in enumerate(zip(_cubes(files), files.column("size").to_pylist(), strict=True)):
            firsts.setdefault(cube, row)
            sizes[cube] += size
        chosen = files.take(pa.array(firsts.values(), pa.int64()))
        place = chosen.column_names.index("size")
        return chosen.set_column(place, "size", pa.array(sizes.values(), pa.int64())), files.num_rows


@dataclass(frozen=True, slots=True)
class OfCubes:
    """Selects the files of these cubes."""

    cubes: frozenset[Cube]

    def __call__(self, files: "pa.Table") -> "tuple[pa.Table, int]":
        """The selected rows of `Snapshot.files`, and the number of rows before."""
        import pyarrow as pa

        mask = pa.array([cube in self.cubes for cube in _cubes(files)], pa.bool_())
        return files.filter(mask), files.num_rows


def cube_of(file: AddFile) -> Cube:
    """The cube of a file."""
    tags = file.tags or {}
    return tags.get(_ID), tags.get(_COLUMNS), file.clustering_provider


def _cubes(files: "pa.Table") -> "Iterator[Cube]":
    import pyarrow.compute as pc

    ids, columns = (pc.map_lookup(files.column("tags"), key, "last").to_pylist() for key in (_ID, _COLUMNS))
    return zip(ids, columns, files.column("clusteringProvider").to_pylist(), strict=True)


def _names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    try:
        return [str(name) for name in json.loads(text)]
    except (ValueError, TypeError):
        return []  # unknown columns, which are treated as other columns
