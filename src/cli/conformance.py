"""`tablelog conformance`: is a transaction log safe on this store?"""

import argparse
import io
import logging
import math
import multiprocessing
import os
import random
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..conformance.checks import CHECKS
from ..conformance.examination import examine
from ..conformance.junit import to_junit
from ..conformance.model import Check, Level
from ..conformance.page import to_html
from ..conformance.report import GUARANTEES, to_json
from ..conformance.runner import UnknownCheckError, chosen
from ..conformance.targets import Asked, WrongTargetError, from_factory, from_url, named, option, setting
from ..conformance.terminal import Paint, Ticker, summary
from ..errors import StorageError, TablelogError
from .version import shown_version

_USAGE_ERROR, _NOT_ESTABLISHED, _INTERRUPTED = 2, 3, 130
_SEEDS = 1_000_000

_EPILOG = """\
examples:
  tablelog conformance /mnt/data/scratch
  tablelog conformance s3://bucket/prefix --option endpoint_url=http://localhost:9000 --html report.html
  tablelog conformance s3a://bucket/prefix --conf fs.s3a.endpoint=... --level thorough --calibrate
  tablelog conformance --store mypackage:MyStore --root my://host/prefix
  tablelog conformance --factory mypackage:factory --root my://host/prefix

exit codes: 0 all PASS; 1 something FAILs; 3 nothing fails, but something is NOT ESTABLISHED; 2 wrong usage
"""


def add_to(commands: Any) -> None:
    """Add the subcommand to argparse's subparsers."""
    parser = commands.add_parser(
        "conformance",
        help="is a transaction log safe on this store?",
        description="Checks that a store keeps the guarantees that a transaction log relies on. Needs a prefix that it "
        "may write below, and leaves nothing there.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", nargs="?", help="where to write: s3://bucket/prefix, /a/directory, ...")
    parser.add_argument("--store", metavar="PACKAGE:CLASS", help="a LogStore of your own; needs --root or a URL")
    parser.add_argument("--factory", metavar="PACKAGE:FUNCTION", help="what makes a LogStore; fresh at each call")
    parser.add_argument("--root", metavar="URL", help="the same as the URL in front")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=_argument(option),
        metavar="NAME=VALUE",
        dest="options",
        help="a storage option in fsspec's names; may be repeated",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_argument(setting),
        metavar="NAME=VALUE",
        help="a key of Hadoop's or Spark's configuration; may be repeated",
    )
    parser.add_argument(
        "--level",
        choices=[level.name.lower() for level in Level],
        default="standard",
        help="how long to look: seconds, a few minutes, more (default: standard)",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME|NUMBER", help="only this check; may be repeated"
    )
    parser.add_argument(
        "--patience",
        type=_argument_above_zero,
        default=1.0,
        metavar="N",
        help="on a busy machine or a slow store: give each check, and all of them, N times the time of the level",
    )
    parser.add_argument("--seed", type=int, help="repeat a run's random choices")
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="also run the broken stores that the checks must catch, here and now; with no store, only those",
    )
    parser.add_argument("--what", metavar="TEXT", help="what the report calls the store: 'MinIO 2025-10-15', say")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write it as JUnit's XML")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write it as one self-contained page")
    parser.add_argument("--list", action="store_true", help="show the checks of the level, and run none")
    parser.add_argument("--version", action="version", version=shown_version())
    parser.set_defaults(run=_run, parser=parser)


def _run(parsed: argparse.Namespace) -> int:
    level = Level[parsed.level.upper()]
    seed = parsed.seed if parsed.seed is not None else random.randrange(_SEEDS)
    # What a client library warns of, when its replies are lost on purpose, would run through the bar.
    logging.getLogger().addHandler(logging.NullHandler())
    outputs = {parsed.json: to_json, parsed.junit: to_junit, parsed.html: to_html}
    try:
        checks = chosen(CHECKS, level, parsed.only)
        if parsed.list:
            _write("".join(_listed(checks)))
            return 0
        for path in filter(None, outputs):
            if not path.parent.is_dir():  # said now, and not after minutes
                raise WrongTargetError(f"{path} can't be written: there is no directory {path.parent}")
        report, stuck = examine(
            _asked(parsed),
            level=level,
            seed=seed,
            only=parsed.only,
            calibrated=parsed.calibrate,
            patience=parsed.patience,
            checking=Ticker(sys.stderr, "checking"),
            calibrating=Ticker(sys.stderr, "calibrating"),
        )
    except (WrongTargetError, UnknownCheckError, TablelogError) as error:
        print(f"tablelog conformance: {error}", file=sys.stderr)
        return _NOT_ESTABLISHED if isinstance(error, StorageError) else _USAGE_ERROR
    except KeyboardInterrupt:
        print("tablelog conformance: interrupted", file=sys.stderr)
        _leave(_INTERRUPTED)
    except Exception:  # of the suite itself: it says nothing about the store
        traceback.print_exc()
        _leave(_NOT_ESTABLISHED)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    _write(summary(report, Paint(sys.stdout), shutil.get_terminal_size().columns))
    code = report.exit_code
    for path, written in outputs.items():
        try:
            if path is not None:
                path.write_text(written(report), encoding="utf-8")
        except OSError as error:
            print(f"tablelog conformance: {path} can't be written: {error.strerror}", file=sys.stderr)
            code = _USAGE_ERROR
    if stuck:
        _leave(code)
    return code


def _asked(parsed: argparse.Namespace) -> Asked | None:
    """The target that the arguments name; None where only the suite itself is to be tried out."""
    if parsed.url and parsed.root:
        raise WrongTargetError("the place is given twice: as an argument and as --root")
    if parsed.store and parsed.factory:
        raise WrongTargetError("--store and --factory exclude each other")
    url = parsed.url or parsed.root
    if parsed.factory:
        if parsed.options or parsed.conf:
            raise WrongTargetError("a --factory takes no --option and no --conf: it configures the store itself")
        return named(from_factory(parsed.factory, url), parsed.what)
    if url is None:
        if parsed.calibrate and not parsed.store:
            return None
        raise WrongTargetError("name the place to test: a URL or a directory, or --store, --factory (see --help)")
    return named(from_url(url, dict(parsed.options), dict(parsed.conf), parsed.store), parsed.what)


def _argument(read: Callable[[str], tuple[str, Any]]) -> Callable[[str], tuple[str, Any]]:
    """`read` as argparse has it: its message is shown, and not the argument, which may be a secret."""

    def argument(text: str) -> tuple[str, Any]:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return argument


def _argument_above_zero(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError("expected a number above 0")
    return number


def _listed(checks: Sequence[Check]) -> Iterator[str]:
    for guarantee, (title, _) in GUARANTEES.items():
        found = [check for check in checks if check.guarantee == guarantee]
        if found:
            yield f"{guarantee}. {title}\n" if guarantee else f"{title}\n"
        for check in found:
            yield f"  {check.number:>2}  {check.name}\n      {check.summary}\n"


def _write(text: str) -> None:
    """Write to standard output. Whoever reads it may have read enough, such as `head`: that is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer goes nowhere, else the interpreter reports the pipe once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave(code: int) -> NoReturn:
    """End the process now: a check that hangs may have left threads that would keep it from its end."""
    for process in multiprocessing.active_children():
        process.kill()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
