"""The suite as pytest items::

    pytest -p tablelog.conformance.plugin --pyargs tablelog.conformance --logstore mypackage:factory

This plugin creates an item for each check: there is no class to derive from, so the tests of a store can't leave out or
replace a check. NOT ESTABLISHED is a separate outcome, shown with its reason at the end.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .checks import CHECKS
from .model import Check, Finding, Level, Target, Verdict
from .runner import SHARE_SECONDS, Obstacle, chosen, first_touch, place_of_its_own, run_check
from .targets import WrongTargetError, from_factory

_HERE = Path(__file__).parent
_NAME = "tablelog.conformance"
_NOT_RUN = "not run"
_SEEDS = 1_000_000
_target = pytest.StashKey[Target]()
_place = pytest.StashKey[str]()
_obstacle = pytest.StashKey[Obstacle | None]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tablelog", "conformance of a store with tablelog's LogStore")
    group.addoption(
        "--logstore", metavar="PACKAGE:FACTORY", help="the class or function that creates the store to test"
    )
    group.addoption("--root", metavar="URL", help="the location to write to (default: the factory's attribute `root`)")
    group.addoption("--conformance-level", choices=[level.name.lower() for level in Level], default="standard")
    group.addoption("--conformance-seed", type=int, metavar="N", help="repeat a run's random choices")


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return _Suite.from_parent(parent, path=path, nodeid=_NAME) if path == _HERE else None


def pytest_report_header(config: pytest.Config) -> str | None:
    name = config.getoption("--logstore")
    return f"conformance of {name}, seed {_seed(config)}" if name else None


def pytest_report_teststatus(report: Any) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    if getattr(report, "wasxfail", "").startswith(str(Verdict.NOT_ESTABLISHED)) and report.skipped:
        return "not established", "?", ("NOT ESTABLISHED", {"yellow": True})
    return None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    not_established = terminalreporter.stats.get("not established", [])
    obstacle = config.stash.get(_obstacle, None)
    if obstacle is not None:
        terminalreporter.section("no check was run")
        terminalreporter.write_line(obstacle.message)
    elif not_established:
        terminalreporter.section("not established")
        for report in not_established:
            terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {report.wasxfail}")
    properties = [
        dict(report.user_properties)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
    ]
    left = [path for of_report in properties for path in of_report.get("leftovers", ())]
    if left:
        terminalreporter.section("not deleted, because of an error")
        terminalreporter.write_line("\n".join(left))


class _Suite(pytest.Directory):
    """Replaces the collector of this package's directory; its items are the checks."""

    def collect(self) -> Iterator[pytest.Item]:
        name = self.config.getoption("--logstore")
        if name is None:
            raise pytest.UsageError("name the store to test: --logstore mypackage:factory")
        try:
            self.stash[_target] = from_factory(name, self.config.getoption("--root")).target
        except WrongTargetError as error:
            raise pytest.UsageError(str(error)) from None
        for check in chosen(CHECKS, _level(self.config)):
            yield _Item.from_parent(self, name=check.name, check=check)

    def setup(self) -> None:
        place = place_of_its_own(self.stash[_target].root)
        self.stash[_place] = place.__enter__()
        self.addfinalizer(lambda: place.__exit__(None, None, None))
        self.config.stash[_obstacle], _ = first_touch(self.stash[_target], self.stash[_place])


class _Item(pytest.Item):
    """One check."""

    def __init__(self, *, check: Check, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._check = check

    def runtest(self) -> None:
        suite, level = self.parent, _level(self.config)
        assert suite is not None
        obstacle = self.config.stash[_obstacle]
        if obstacle is not None:  # the summary shows the reason once
            if obstacle.finding(self._check).verdict is Verdict.FAIL:
                raise _CheckFailed(replace(obstacle.finding(self._check), message=_NOT_RUN))
            pytest.xfail(f"{Verdict.NOT_ESTABLISHED}: {_NOT_RUN}")
        place = f"{suite.stash[_place]}/{self.name}"
        finding, leftovers, _ = run_check(
            self._check, suite.stash[_target], place, level, _seed(self.config), SHARE_SECONDS[level]
        )
        self.user_properties += [("evidence", dict(finding.evidence)), ("leftovers", leftovers)]
        if finding.verdict is Verdict.NOT_ESTABLISHED:
            pytest.xfail(f"{Verdict.NOT_ESTABLISHED}: {finding.message}")
        if finding.verdict is Verdict.FAIL:
            raise _CheckFailed(finding)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, _CheckFailed):
            finding = excinfo.value.finding
            return "\n".join([self._check.summary, finding.message, *(f"  | {line}" for line in finding.timeline)])
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return _HERE, None, self.name


class _CheckFailed(Exception):
    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def _level(config: pytest.Config) -> Level:
    return Level[config.getoption("--conformance-level").upper()]


def _seed(config: pytest.Config) -> int:
    if config.option.conformance_seed is None:
        config.option.conformance_seed = random.randrange(_SEEDS)
    seed: int = config.option.conformance_seed
    return seed
