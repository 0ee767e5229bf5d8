"""Checks that a store keeps the guarantees of `tablelog.logstore.LogStore`, run against any store.

A check is a plain function of a factory of stores and a root below which it may write; it returns nothing, or raises
`GuaranteeBrokenError`. `CHECKS` has them all with the number of the guarantee that each one tests.
"""

from .contract import CHECKS, Check, Factory
from .failures import GuaranteeBrokenError

__all__ = ["CHECKS", "Check", "Factory", "GuaranteeBrokenError"]
