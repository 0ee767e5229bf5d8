"""Conflicts between concurrent transactions: the values that are compared, and the rules."""

from .isolation import IsolationLevel, level_for, only_adds
from .rules import check
from .staged import ReadPredicate, ReadSet, Staged
from .winner import Winner

__all__ = ["IsolationLevel", "ReadPredicate", "ReadSet", "Staged", "Winner", "check", "level_for", "only_adds"]
