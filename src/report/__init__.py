"""`tablelog report`: the health of a table as one self-contained page, from its log alone, without Spark."""

from .advice import Advice, Severity
from .facts import TableFacts
from .report import Report, report

__all__ = ["Advice", "Report", "Severity", "TableFacts", "report"]
