"""Clustered tables (PROTOCOL.md, "Clustered Table"): by which columns, and which files are to be laid out anew.

Files that were clustered in one go form a cube, which their tags name (as Delta's do): a file's `ZCUBE_ID` says which,
`ZCUBE_ZORDER_BY` by which columns. A cube that is large enough is left alone, so that a growing table isn't rewritten
whole.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import uuid4

from ...errors import CorruptLogError
from ..protocol.actions import AddFile, DomainMetadata
from ..protocol.schema import Column

DOMAIN = "delta.clustering"
PROVIDER = "liquid"
_ID, _COLUMNS, _CURVE = "ZCUBE_ID", "ZCUBE_ZORDER_BY", "ZCUBE_ZORDER_CURVE"


def domain(columns: Sequence[Column]) -> DomainMetadata:
    """The metadata domain of a table that is clustered by `columns`, which are physical names; of none: by nothing."""
    return DomainMetadata(DOMAIN, json.dumps({"clusteringColumns": [list(c) for c in columns]}), removed=False)


def columns_of(domains: Mapping[str, DomainMetadata]) -> tuple[Column, ...] | None:
    """The physical names of the clustering columns; `None` for a table that isn't clustered."""
    found = domains.get(DOMAIN)
    if found is None or found.removed:
        return None
    try:
        columns = json.loads(found.configuration)["clusteringColumns"]
        return tuple((c,) if isinstance(c, str) else tuple(str(part) for part in c) for c in columns)
    except (ValueError, KeyError, TypeError):
        raise CorruptLogError(
            f"the metadata domain {DOMAIN} doesn't say which columns the table is clustered by: {found.configuration!r}"
        ) from None


def tags_of_new_cube(columns: Sequence[str]) -> dict[str, str]:
    """The tags of the files of one cube, clustered by `columns` (logical names, dotted)."""
    return {_ID: str(uuid4()), _COLUMNS: json.dumps(list(columns)), _CURVE: "zorder"}


def to_cluster(files: Iterable[AddFile], columns: Sequence[str], *, smallest_cube: int, full: bool) -> list[AddFile]:
    """Which files are to be laid out anew, those of no cube first, then cube by cube.

    Files of a cube of at least `smallest_cube` bytes stay, and files that another implementation or by other columns
    clustered, unless `full`. Where all that is left is one cube, there is nothing to gain.
    """
    ours: defaultdict[str | None, list[AddFile]] = defaultdict(list)
    foreign: list[AddFile] = []
    for file in files:
        tags = file.tags or {}
        by = _names(tags.get(_COLUMNS))
        if file.clustering_provider not in (None, PROVIDER) or (by is not None and by != list(columns)):
            foreign.append(file)
        else:
            ours[tags.get(_ID)].append(file)
    small = {cube: own for cube, own in ours.items() if cube is None or sum(f.size for f in own) < smallest_cube}
    if not (full and foreign):
        foreign = []
        if len(small) == 1 and None not in small:
            return []
    order = sorted(small, key=lambda cube: cube or "")
    return [*(file for cube in order for file in small[cube]), *foreign]


def _names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    try:
        return [str(name) for name in json.loads(text)]
    except (ValueError, TypeError):
        return []  # by something that nobody can tell: by other columns
