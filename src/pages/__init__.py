"""Self-contained HTML pages: their skeleton, their style and the escaping of text, for every report of tablelog."""

from .document import document, escaped
from .style import BASE

__all__ = ["BASE", "document", "escaped"]
