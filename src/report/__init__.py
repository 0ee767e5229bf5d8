"""`tablelog report`: the health of a table as one self-contained page, from its log alone, without Spark."""

from .advice import Advice, Severity
from .examine import Report, report
from .facts import TableFacts

__all__ = ["Advice", "Report", "Severity", "TableFacts", "report"]
