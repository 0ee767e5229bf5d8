"""Checks that a store gives the guarantees of `tablelog.logstore.LogStore`; they run against any store.

A check is a function of a `Context`: a target (a factory of clients, and a root below which it may write), a level and
a deadline. It adds its evidence to the context and returns, or raises `GuaranteeBrokenError`, or `NotEstablishedError`
if the result can't be determined. `CHECKS` has all checks. In your own test, `try_out(check, factory, root)` runs one::
    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_guarantee(check, tmp_path):
        try_out(check, MyStore, f"myscheme://host{tmp_path}")
"""

from .checks import CHECKS, try_out
from .failures import GuaranteeBrokenError, NotEstablishedError
from .model import Check, Context, Factory, Finding, Level, Target, Verdict

__all__ = [
    "CHECKS",
    "Check",
    "Context",
    "Factory",
    "Finding",
    "GuaranteeBrokenError",
    "Level",
    "NotEstablishedError",
    "Target",
    "Verdict",
    "try_out",
]
