"""Counts the requests that reach an S3 service, of the log and of the data files: decisions for a `Proxy` before it."""

import threading
import time
from collections import Counter
from urllib.parse import unquote, urlsplit

from tablelog.conformance.harness.proxy import Exchange, Reply


class RequestCounts:
    """Forwards each request; it and its reply may wait. Requests are counted by what they do, and to what."""

    def __init__(self) -> None:
        self.delay_seconds = 0.0
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def __call__(self, exchange: Exchange) -> Reply:
        kind = kind_of(exchange.request.method, exchange.request.target)
        with self._lock:
            self._counts[kind] += 1
        time.sleep(self.delay_seconds)
        reply = exchange.forward()
        time.sleep(self.delay_seconds)
        return reply

    def taken(self) -> Counter[str]:
        """The requests since the last call."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return counts


def kind_of(method: str, target: str) -> str:
    """For example `log LIST`, `data GET` or `data DELETE MANY`."""
    parts = urlsplit(target)
    if method == "GET" and "prefix=" in parts.query:
        method = "LIST"
    elif method == "POST" and "delete" in parts.query:
        return "data DELETE MANY"
    return f"{'log' if '_delta_log' in unquote(target) else 'data'} {method}"
