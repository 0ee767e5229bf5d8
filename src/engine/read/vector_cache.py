"""A cache of deletion vectors that were read or written."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from ...core.protocol.actions import DeletionVectorDescriptor
from ...core.protocol.deletion_vectors import DeletedRows

OVERHEAD = 1 << 10
"""The memory that a vector takes beside its stored bytes, as measured: a vector of one row has 34 of these."""


class VectorCache:
    """Deletion vectors by table and descriptor, up to about `most_bytes` of memory. Threads may share it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._rows: OrderedDict[tuple[str, DeletionVectorDescriptor], DeletedRows] = OrderedDict()
        self._bytes = 0

    def get(
        self, table: str, wanted: Iterable[DeletionVectorDescriptor]
    ) -> dict[DeletionVectorDescriptor, DeletedRows]:
        """Those of the wanted vectors that are cached."""
        cached = {}
        with self._lock:
            for vector in wanted:
                rows = self._rows.get((table, vector))
                if rows is not None:
                    cached[vector] = rows
                    self._rows.move_to_end((table, vector))
        return cached

    def add(self, table: str, vectors: Mapping[DeletionVectorDescriptor, DeletedRows]) -> None:
        """Add vectors. The least recently used ones are removed; the newest stays, however large it is."""
        with self._lock:
            for vector, rows in vectors.items():
                if (table, vector) not in self._rows:
                    self._bytes += vector.size_in_bytes + OVERHEAD
                self._rows[table, vector] = rows
                self._rows.move_to_end((table, vector))
            while len(self._rows) > 1 and self._bytes > self._most_bytes:
                (_, removed), _ = self._rows.popitem(last=False)
                self._bytes -= removed.size_in_bytes + OVERHEAD

    def clear(self) -> None:
        """Remove all vectors: they are read again."""
        with self._lock:
            self._rows.clear()
            self._bytes = 0


SHARED = VectorCache(128 << 20)
"""The cache of this process."""
