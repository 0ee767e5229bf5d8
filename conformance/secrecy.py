"""The parts of a command line that may be shown: the names of settings, and few values."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tablelog.logstore.common.uri import shown

ELIDED = "…"

# All other values are left out: a setting with an unknown name may be a secret.
_HARMLESS = re.compile(
    r"(^|[._])(endpoint|endpoint_url|endpoint\.region|region|region_name|path\.style\.access|anon|use_ssl|ssl\.enabled"
    r"|account_name|project|impl|class|addressing_style|version_aware|table|tableName|provider|requester_pays|defaultFS|replication)$"
)
_USER_INFORMATION = re.compile(r"(?<=://)[^/@\s]+:[^@\s]+@")
_LEAST_LENGTH = 5
_PLAIN_WORDS = frozenset({"false", "true", "none", "null", "default"})


def shown_setting(name: str, value: Any) -> str:
    """`name=value`, without the value if it may be a secret."""
    if not _HARMLESS.search(name):
        return f"{name}={ELIDED}"
    return f"{name}={shown(value) if isinstance(value, str) else json.dumps(value)}"


def replay_command(words: Sequence[str]) -> str:
    """Command-line words as one line for a shell."""
    return " ".join(word if ELIDED in word and " " not in word else shlex.quote(word) for word in words)


def secrets_among(settings: Mapping[str, Any]) -> frozenset[str]:
    """The values that must not appear in any output of a run."""
    values: set[str] = set()
    for name, value in settings.items():
        if isinstance(value, Mapping):
            values |= secrets_among(value)
        elif isinstance(value, list | tuple):
            for item in value:
                values |= secrets_among({name: item})
        elif not _HARMLESS.search(name):
            values.add(str(value))
    return frozenset(word for word in values if len(word) >= _LEAST_LENGTH and word.lower() not in _PLAIN_WORDS)


class Scrubber:
    """Removes secrets from texts, and user information from URIs."""

    def __init__(self, secrets: Iterable[str]) -> None:
        longest_first = sorted(secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, value: Any) -> Any:
        """`value`, a text or a container of texts, without the secrets."""
        if isinstance(value, str):
            value = _USER_INFORMATION.sub(f"{ELIDED}@", value)
            return self._pattern.sub(ELIDED, value) if self._pattern else value
        if isinstance(value, Mapping):
            return {self(key): self(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return tuple(self(item) for item in value)
        return value
