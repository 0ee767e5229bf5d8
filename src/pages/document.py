"""The skeleton of a page. A browser that shows it sends no request: the page's own policy forbids it."""

import base64
import hashlib
import re
from html import escape

# Controls, and invisible characters that hide text or change its direction. A report shows them as escapes.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)


def escaped(text: object) -> str:
    """Text for HTML, in an element or in an attribute: no markup, no control characters."""
    return escape(_UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", str(text)), quote=True)


def document(title: str, style: str, body: str, *, script: str = "") -> str:
    """A whole page.

    Args:
        title: The title, as plain text.
        style: The style sheet.
        body: The content of the element `main`, as HTML.
        script: The only script that the page may run.
    """
    runs = f"<script>{script}</script>\n" if script else ""
    allowed = f"; script-src 'sha256-{_digest(script)}'" if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'{allowed}; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"{body}</main>\n{runs}</body>\n</html>\n"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
