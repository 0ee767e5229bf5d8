"""A wrong clock for one process: the time functions of Python return a shifted time.

It must be installed before the store's modules are imported, so that they get the shifted functions under every name.
Clocks that a library reads in C or Rust aren't shifted; the evidence of a check says so.
"""

import datetime
import time
from typing import Any


def shift(seconds: float) -> None:
    """Shift this process's wall clock by `seconds`, permanently."""
    real_time, real_time_ns = time.time, time.time_ns
    real_gmtime, real_localtime, real_strftime = time.gmtime, time.localtime, time.strftime

    def now() -> float:
        return real_time() + seconds

    time.time = now
    time.time_ns = lambda: real_time_ns() + int(seconds * 1e9)
    setattr(time, "gmtime", lambda at=None: real_gmtime(now() if at is None else at))  # noqa: B010
    setattr(time, "localtime", lambda at=None: real_localtime(now() if at is None else at))  # noqa: B010
    setattr(time, "strftime", lambda how, at=None: real_strftime(how, time.localtime() if at is None else at))  # noqa: B010

    real_datetime = datetime.datetime

    class Kind(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real_datetime)

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(kind, real_datetime)

    def today(cls: type[datetime.datetime], tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return cls.fromtimestamp(now(), tz)

    def utcnow(cls: type[datetime.datetime]) -> datetime.datetime:
        return cls.fromtimestamp(now(), datetime.UTC).replace(tzinfo=None)

    members = {
        "__module__": "datetime",
        "now": classmethod(today),
        "today": classmethod(today),
        "utcnow": classmethod(utcnow),
    }
    setattr(datetime, "datetime", Kind("datetime", (real_datetime,), members))  # noqa: B010
