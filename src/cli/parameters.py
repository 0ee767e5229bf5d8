"""The parameters that several commands have: the table, the settings of its store, a version, JSON output."""

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from .output import Output

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..core.deltalog import DeltaLog
    from ..core.table.snapshot import Snapshot

Function = Callable[..., Any]
_LOG_DIRECTORY = "_delta_log"


class Command(click.Command):
    """A command whose help has examples, and whose usage errors name it."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.examples = tuple(examples)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples below the options."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        super().format_epilog(ctx, formatter)


@dataclass(frozen=True)
class Location:
    """The table that the user named, and the settings of its store, which may be secrets."""

    uri: str
    options: Mapping[str, Any] = field(repr=False)
    conf: Mapping[str, str] = field(repr=False)

    def log(self) -> "DeltaLog":
        """The log of the table; whether there is a table isn't checked."""
        from ..core.deltalog import DeltaLog

        return DeltaLog.for_path(self.uri, storage_options=self.options, conf=self.conf)


def absolute(table: str) -> str:
    """The URI or absolute path of a table as the user wrote it: relative, or with its log directory."""
    from ..logstore.common.uri import scheme_of

    stripped = table.rstrip("/")
    if stripped == _LOG_DIRECTORY or stripped.endswith(f"/{_LOG_DIRECTORY}"):
        table = stripped[: -len(_LOG_DIRECTORY)] or "."
    if scheme_of(table) == "file" and table and table[:5].lower() != "file:":
        return os.path.abspath(table)
    return table


def pairs(parse: str) -> Callable[[click.Context, click.Parameter, Sequence[str]], Mapping[str, Any]]:
    """A callback that parses repeated NAME=VALUE with a function of `conformance.targets`.

    No message quotes the text, which may be a secret.
    """

    def read(ctx: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> Mapping[str, Any]:
        from ..conformance import targets

        values: dict[str, Any] = {}
        for text in texts:
            try:
                name, value = getattr(targets, parse)(text)
            except ValueError as error:
                raise click.BadParameter(str(error), ctx, parameter) from None
            if name in values and values[name] != value:
                raise click.BadParameter(f"{name} is set twice, to different values", ctx, parameter)
            values[name] = value
        return values

    return read


def store_settings(function: Function) -> Function:
    """Add `--option` and `--conf`."""
    for decorate in (
        click.option(
            "--conf",
            multiple=True,
            metavar="NAME=VALUE",
            callback=pairs("setting"),
            help="A key of Hadoop's or Spark's configuration, such as fs.s3a.endpoint; may be repeated.",
        ),
        click.option(
            "--option",
            "options",
            multiple=True,
            metavar="NAME=VALUE",
            callback=pairs("option"),
            help="A storage option with fsspec's name, such as endpoint_url; may be repeated.",
        ),
    ):
        function = decorate(function)
    return function


def directories(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Let the shell complete the directory of a table; the rest of a URL is unknown to it."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def on_table(function: Function) -> Function:
    """Add the argument TABLE and the settings of its store; the function gets a `Location` as its first argument."""

    @click.argument("table", shell_complete=directories)
    @store_settings
    @functools.wraps(function)
    def command(table: str, options: Mapping[str, Any], conf: Mapping[str, str], **rest: Any) -> Any:
        return function(Location(absolute(table), options, conf), **rest)

    return command


def writes_output(function: Function) -> Function:
    """Add `--json`; the function gets an `Output` as `output`."""

    @click.option("--json", "as_json", is_flag=True, help="Write one JSON document with stable keys.")
    @functools.wraps(function)
    def command(*arguments: Any, as_json: bool, **rest: Any) -> Any:
        return function(*arguments, output=Output(as_json=as_json), **rest)

    return command


def limit_option(function: Function) -> Function:
    """Add `--limit`."""
    return click.option(
        "--limit",
        type=click.IntRange(min=1),
        metavar="N",
        help="Show at most N rows (default: 50 on a terminal, all in a pipe and with --json).",
    )(function)


def at_option(function: Function) -> Function:
    """Add `--at`."""
    return click.option(
        "--at",
        metavar="VERSION|TIME",
        help="A version of the table, or a time such as '2026-11-23 10:00:00' (UTC unless it has a zone).",
    )(function)


def version_of(log: "DeltaLog", at: str) -> int:
    """The version that the text of `--at` names.

    Args:
        log: The log of the table.
        at: A version number, also with a leading `v`, or a time.

    Raises:
        click.BadParameter: The text is neither.
        TimestampOutOfRangeError: The table had no version then.
    """
    text = at.strip()
    digits = text[1:] if text[:1] in ("v", "V") else text
    if digits.isascii() and digits.isdecimal() and len(digits) < 20:
        return int(digits)
    milliseconds = _milliseconds(text)
    return log.version_at(milliseconds)


def _milliseconds(text: str) -> int:
    from ..core.protocol.partition_values import parse_timestamp

    # The time of a partition value always has seconds.
    with_seconds = re.sub(r"^(\S{10}[ T]\d\d:\d\d)(?=$|[Z+-])", r"\1:00", text)
    try:
        return parse_timestamp(with_seconds, None) // 1000
    except ValueError:
        raise click.BadParameter(
            "expected a version such as 7, or a time such as 2026-11-23 or '2026-11-23 10:00:00'", param_hint="version"
        ) from None


def snapshot_at(log: "DeltaLog", at: str | None) -> "Snapshot":
    """The snapshot of the newest version, or of the one that `--at` names."""
    return log.snapshot() if at is None else log.snapshot(version_of(log, at))
