"""The page in a real browser: no request, no error, all widths, keyboard, contrast, print."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from report.browser import PROGRAM, Browser, started
from report.messy_table import messy
from report.test_page import hostile
from support.conformance_reports import REPORT
from tablelog.conformance.reports.page import to_html
from tablelog.report import report

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no chromium in the PATH (Debian: apt-get install chromium)")

# The lowest contrast of a text with its background, with that text, by the formula of WCAG 2.2.
_CONTRAST = """(() => {
  const light = (c) => { const v = c / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const parse = (t) => { const m = t.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const background = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c[3] > 0) return c; } return [255, 255, 255, 1]; };
  let worst = [99, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    const e = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE", "title"].includes(e.tagName)) continue;
    const [a, b] = [luminance(parse(getComputedStyle(e).color)), luminance(background(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < worst[0]) worst = [ratio, node.data.trim().slice(0, 60)];
  }
  return worst;
})()"""
_WIDER_THAN_THE_WINDOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("pages")
    texts = {
        "messy": report(messy().log()).to_html(),
        "hostile": report(hostile().log()).to_html(),
        "conformance": to_html(REPORT),
    }
    for name, text in texts.items():
        (directory / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: directory / f"{name}.html" for name in texts}


@pytest.mark.parametrize("name", ["messy", "hostile", "conformance"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (320, True)])
def test_the_page_fits_and_can_be_read(
    browser: Browser, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    browser.open(pages[name], width=width, dark=dark)
    assert browser.requests == [pages[name].as_uri()]
    assert browser.errors == []
    assert browser.evaluate(_WIDER_THAN_THE_WINDOW) <= 0
    browser.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    assert browser.evaluate(_WIDER_THAN_THE_WINDOW) <= 0
    ratio, text = browser.evaluate(_CONTRAST)
    assert ratio >= 4.5, text
    is_dark = browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    assert is_dark == dark


def test_the_keyboard_reaches_a_chart_and_its_values(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["messy"])
    reached = []
    for _ in range(60):
        browser.press("Tab")
        reached.append(
            browser.evaluate("document.activeElement.getAttribute('class') || document.activeElement.tagName")
        )
        if reached[-1] == "plot line s3":
            break
    assert reached[-1] == "plot line s3"
    readout = "document.activeElement.parentNode.querySelector('.readout').textContent"
    assert browser.evaluate(readout).startswith("Version 42, ")
    assert browser.evaluate(readout).endswith(": 39")
    browser.press("ArrowLeft")
    assert browser.evaluate(readout).startswith("Version 41, ")
    browser.press("Home")
    assert browser.evaluate(readout).startswith("Version 0, ")
    assert browser.evaluate("document.querySelectorAll('.mark.on').length") == 1
    browser.press("Escape")
    assert browser.evaluate(readout) == ""
    browser.press("Tab")
    assert browser.evaluate("document.querySelectorAll('.mark.on').length") <= 1


def test_the_pointer_shows_a_value(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["messy"])
    browser.evaluate("document.querySelector('.plot.lanes').scrollIntoView({block: 'center'})")
    x, y = browser.evaluate(
        "(() => { const box = document.querySelector('.plot.lanes .mark').getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2] })()"
    )
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "WRITE: " in browser.evaluate("document.querySelector('.timeline .readout').textContent")


def test_the_page_is_printed_with_its_charts(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["messy"])
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 12
    browser.send("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.evaluate("document.querySelector('.plot').getBoundingClientRect().height") > 50
