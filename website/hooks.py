"""What mkdocs calls for each page."""

import re
from typing import Any

_CELL_CODE = re.compile(r"(?<=<code>)[^<]{12,}(?=</code>)")
_CELL = re.compile(r"<td.*?</td>", re.DOTALL)
_BREAK = re.compile(r"(?<=[./,])(?=\w)|(?<=[a-z])(?=[A-Z])")


def on_page_content(html: str, **_: Any) -> str:
    """Let long names in the cells of tables, such as keys of settings, break after dots and before capitals."""
    return _CELL.sub(lambda cell: _CELL_CODE.sub(lambda code: _BREAK.sub("<wbr>", code[0]), cell[0]), html)
