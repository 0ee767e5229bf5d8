"""Converts actions to JSON lines and back (PROTOCOL.md, "Actions")."""

from .commit_info import operation_parameters
from .parsing import names_action, parse_commit, parse_line
from .serialization import serialise, to_json
from .strict_json import json_text

__all__ = [
    "json_text",
    "names_action",
    "operation_parameters",
    "parse_commit",
    "parse_line",
    "serialise",
    "to_json",
]
