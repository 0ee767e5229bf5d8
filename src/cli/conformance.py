"""`tablelog conformance`: tests whether a transaction log is safe on a store."""

import io
import logging
import math
import multiprocessing
import os
import random
import shutil
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import click

from .. import local_file
from ..conformance import words
from ..conformance.checks import CHECKS
from ..conformance.examination import examine
from ..conformance.model import Check, Level
from ..conformance.reports.junit import to_junit
from ..conformance.reports.page import to_html
from ..conformance.reports.report import GUARANTEES, to_json
from ..conformance.reports.terminal import Paint, Ticker, summary
from ..conformance.runner import UnknownCheckError, chosen
from ..conformance.targets import Asked, WrongTargetError, from_factory, from_url, named
from ..errors import InvalidArgumentError, StorageError, TablelogError
from .parameters import Command, store_settings
from .text import one_line
from .version import shown_version

_USAGE_ERROR, _NOT_ESTABLISHED, _INTERRUPTED = 2, 3, 130
_SEEDS = 1_000_000

_EXAMPLES = (
    "tablelog conformance /mnt/data/scratch",
    "tablelog conformance s3://bucket/prefix --option endpoint_url=http://localhost:9000 --html report.html",
    "tablelog conformance s3a://bucket/prefix --conf fs.s3a.endpoint=... --level thorough --calibrate",
    "tablelog conformance --store mypackage:MyStore --root my://host/prefix",
    "tablelog conformance --factory mypackage:factory --root my://host/prefix",
)
_FILE = click.Path(path_type=Path)
_STANDARD_OUTPUT = Path("-")


def _above_zero(ctx: click.Context, parameter: click.Parameter, number: float) -> float:
    if not 0 < number < math.inf:
        raise click.BadParameter("expected a number above 0", ctx, parameter)
    return number


@click.command(
    cls=Command,
    name="conformance",
    examples=_EXAMPLES,
    epilog="\b\nExit codes: 0 all PASS; 1 something FAILs; 2 wrong usage;\n"
    "3 nothing fails, but something is NOT ESTABLISHED",
)
@click.argument("url", required=False)
@click.option("--store", metavar="PACKAGE:CLASS", help="Your own LogStore class; needs --root or a URL.")
@click.option("--factory", metavar="PACKAGE:FUNCTION", help="A function that returns a new LogStore.")
@click.option("--root", metavar="URL", help="The same as the positional URL.")
@store_settings
@click.option(
    "--level",
    type=click.Choice([level.name.lower() for level in Level]),
    default="standard",
    show_default=True,
    help="How long to test: seconds, a few minutes, more.",
)
@click.option("--only", multiple=True, metavar="NAME|NUMBER", help="Run only this check; may be repeated.")
@click.option(
    "--patience",
    type=float,
    default=1.0,
    metavar="N",
    callback=_above_zero,
    help="For a busy machine or a slow store: multiply the time limits of the level by N.",
)
@click.option("--seed", type=int, help="Repeat a run's random choices.")
@click.option(
    "--calibrate",
    is_flag=True,
    help="Also run broken stores that the checks must detect; without a store, run only those.",
)
@click.option("--what", metavar="TEXT", help="The store's name in the report, such as 'MinIO 2025-10-15'.")
@click.option("--json", type=_FILE, metavar="FILE", help="Write the report as JSON; - is standard output.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write the report as JUnit XML.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write the report as one self-contained page.")
@click.option("--list", "lists", is_flag=True, help="List the checks of the level without running them.")
@click.version_option(message=shown_version(), package_name="tablelog")
def command(**arguments: Any) -> int:
    """Test whether a transaction log is safe on a store.

    It checks that a store gives the guarantees that a transaction log relies on. It needs a prefix that it may write
    below, and removes everything that it wrote there.
    """
    return _run(SimpleNamespace(**arguments))


def _run(parsed: SimpleNamespace) -> int:
    level = Level[parsed.level.upper()]
    seed = parsed.seed if parsed.seed is not None else random.randrange(_SEEDS)
    # Warnings about lost replies, which the checks cause, would disturb the progress bar.
    logging.getLogger("tablelog").setLevel(logging.CRITICAL)
    logging.getLogger().addHandler(logging.NullHandler())
    as_json = parsed.json == _STANDARD_OUTPUT
    outputs = {None if as_json else parsed.json: to_json, parsed.junit: to_junit, parsed.html: to_html}
    try:
        checks = chosen(CHECKS, level, parsed.only)
        if parsed.lists:
            _write("".join(_listed(checks)))
            return 0
        for path in filter(None, outputs):
            local_file.check(path)  # before the run, not after minutes
        report, stuck = examine(
            _target_of(parsed),
            level=level,
            seed=seed,
            only=parsed.only,
            calibrated=parsed.calibrate,
            patience=parsed.patience,
            checking=Ticker(sys.stderr, "checking"),
            calibrating=Ticker(sys.stderr, "calibrating"),
        )
    except (WrongTargetError, UnknownCheckError, TablelogError) as error:
        _say(error)
        return _NOT_ESTABLISHED if isinstance(error, StorageError) else _USAGE_ERROR
    except KeyboardInterrupt:
        _say("interrupted")
        _leave(_INTERRUPTED)
    except Exception as error:  # an error of the suite itself, not of the store
        if click.get_current_context().find_root().params.get("verbose"):
            traceback.print_exception(error)
        _say(f"internal error: {type(error).__name__}: {error}. Run it again with `tablelog --verbose`, and report it")
        _leave(_NOT_ESTABLISHED)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    _write(to_json(report) if as_json else summary(report, Paint(sys.stdout), shutil.get_terminal_size().columns))
    code = report.exit_code
    for path, written in outputs.items():
        try:
            if path is not None:
                local_file.write(path, [written(report)])
        except InvalidArgumentError as error:
            _say(error)
            code = _USAGE_ERROR
    if stuck:
        _leave(code)
    return code


def _target_of(parsed: SimpleNamespace) -> Asked | None:
    """The target in the arguments; None if only the suite itself is to be tested."""
    if parsed.url and parsed.root:
        raise WrongTargetError("the URL is set twice, as an argument and as --root: leave out one of them")
    if parsed.store and parsed.factory:
        raise WrongTargetError("--store and --factory can't be combined: leave out one of them")
    url = parsed.url or parsed.root
    if parsed.factory:
        if parsed.options or parsed.conf:
            raise WrongTargetError("--factory can't be combined with --option or --conf: configure the store in it")
        return named(from_factory(parsed.factory, url), parsed.what)
    if url is None:
        if parsed.calibrate and not parsed.store:
            return None
        raise WrongTargetError("set the location to test: a URL or a directory, or --store, --factory (see --help)")
    return named(from_url(url, dict(parsed.options), dict(parsed.conf), parsed.store), parsed.what)


def _listed(checks: Sequence[Check]) -> Iterator[str]:
    for guarantee, (title, _) in GUARANTEES.items():
        group = [check for check in checks if check.guarantee == guarantee]
        if group:
            yield f"{guarantee}. {title}\n" if guarantee else f"{title}\n"
        for check in group:
            yield f"  {check.number:>2}  {words.title(check.name)}\n      {check.name}\n      {check.summary}\n"


def _write(text: str) -> None:
    """Write to standard output. A reader that stops early, such as `head`, isn't an error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The rest of the buffer is discarded, otherwise the interpreter reports the pipe again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(error: object) -> None:
    print(f"tablelog conformance: {one_line(error)}", file=sys.stderr)


def _leave(code: int) -> NoReturn:
    """End the process now: a check that hangs may have threads that would keep the process alive."""
    for process in multiprocessing.active_children():
        process.kill()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
