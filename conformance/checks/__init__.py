"""All checks, ordered by number. Importing this package registers them.

`CHECKS` contains all checks. `try_out(check, factory, root)` runs a single check, for the tests of a store.
"""

import time
from collections.abc import Callable

from ..failures import GuaranteeBrokenError, NotEstablishedError
from ..model import Check, Context, Factory, Level, Target, Verdict
from ..verdicts import verdict_of
from . import (
    clients,
    crashes,
    declarations,
    forced,
    listings,
    overwrites,
    paths,
    pieces,
    races,
    replies,
    scale,
    visibility,
)
from .suite import registered

__all__ = [
    "CHECKS",
    "clients",
    "crashes",
    "declarations",
    "forced",
    "listings",
    "overwrites",
    "paths",
    "pieces",
    "races",
    "replies",
    "scale",
    "try_out",
    "visibility",
]

CHECKS: tuple[Check, ...] = tuple(sorted(registered, key=lambda check: check.number))
"""All checks, ordered by number."""


def try_out(
    check: Check,
    factory: Factory,
    root: str,
    *,
    level: Level = Level.QUICK,
    seed: int = 0,
    seconds: float = 60.0,
    endpoint: str | None = None,
    through: Callable[[str], Factory] | None = None,
) -> Context:
    """Run one check below `root`, which nothing else may use; returns the context with the evidence.

    Raises `GuaranteeBrokenError` (FAIL) or `NotEstablishedError`. `endpoint` and `through` are those of `Target`.
    The files of the check aren't deleted.
    """
    target = Target(factory, root, "the tested store", endpoint, through)
    context = Context(target, root, level, seed, time.monotonic() + seconds)
    try:
        check.run(context)
    except (GuaranteeBrokenError, NotEstablishedError):
        raise
    except Exception as error:
        verdict, message = verdict_of(error)
        kind = GuaranteeBrokenError if verdict is Verdict.FAIL else NotEstablishedError
        raise kind(message) from error
    return context
