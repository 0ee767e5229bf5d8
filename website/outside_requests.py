"""Whether a built site asks for anything outside itself: `python -m website.outside_requests build/site`."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

_OUTSIDE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_STYLE = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
_LOADED = {"src", "srcset", "poster", "data"}
"""Attributes whose address a browser loads by itself. The address of a link (`a`) isn't: the reader follows it."""


class _Addresses(HTMLParser):
    """The addresses that a page loads, and whether its policy forbids what scripts could load."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "meta" and values.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = values.get("content", "")
        if tag == "link" and values.get("rel") not in {"canonical", "next", "prev"}:
            self.loaded.append(values.get("href", ""))
        self.loaded += [value for name, value in values.items() if name in _LOADED]
        self.loaded += _addresses_of_style(values.get("style", ""))


def outside_requests(site: Path) -> list[str]:
    """What the pages and style sheets of a site load from elsewhere, and pages without a policy that forbids it.

    Args:
        site: The directory of the site.

    Returns:
        A line for each finding; none if the site is whole.
    """
    findings = []
    for page in sorted(site.rglob("*.html")):
        content = _Addresses()
        content.feed(page.read_text(encoding="utf-8"))
        findings += [f"{page}: loads {address}" for address in content.loaded if _OUTSIDE.match(address)]
        if not content.policy.startswith("default-src 'self'") or "http" in content.policy:
            findings.append(f"{page}: has no content security policy that forbids requests to elsewhere")
    for sheet in sorted(site.rglob("*.css")):
        addresses = _addresses_of_style(sheet.read_text(encoding="utf-8"))
        findings += [f"{sheet}: loads {address}" for address in addresses if _OUTSIDE.match(address)]
    return findings


def _addresses_of_style(style: str) -> list[str]:
    return [first or second for first, second in _STYLE.findall(style)]


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    if not any(directory.rglob("*.html")):
        sys.exit(f"{directory} has no pages")
    sys.exit("\n".join(outside_requests(directory)) or None)
