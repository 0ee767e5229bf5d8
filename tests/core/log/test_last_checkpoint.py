"""The hint: its checksum, and that nothing wrong with it does harm."""

import hashlib
import json

import pytest

from tablelog.core.log.last_checkpoint import LastCheckpoint, canonical_form, checksum, parse, serialise

# The sample of PROTOCOL.md, "JSON checksum".
SAMPLE = {
    "k0": "'v 0'",
    "checksum": "adsaskfljadfkjadfkj",
    "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
}


def test_the_canonical_form_of_the_protocols_sample() -> None:
    assert canonical_form(SAMPLE) == (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
        '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
    )
    assert checksum(SAMPLE) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_a_hint_survives() -> None:
    hint = LastCheckpoint(7, 120, size_in_bytes=4096, num_of_add_files=100)
    data = serialise(hint)
    assert parse(data) == hint
    assert json.loads(data)["checksum"] == checksum(json.loads(data))


@pytest.mark.parametrize("order", [(0, 10, *range(1, 10)), (0, 1, 10, *range(2, 10))])
def test_arrays_of_eleven_elements(order: tuple[int, ...]) -> None:
    """delta-spark sorts "f"+10=k before "f"+1=b, because it sorts by the whole text; PROTOCOL.md by the path."""
    obj = {"version": 7, "size": 3, "f": list("abcdefghijk")}
    text = ",".join(f'"f"+{place}="{obj["f"][place]}"' for place in order) + ',"size"=3,"version"=7'
    obj["checksum"] = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    assert parse(json.dumps(obj).encode()) == LastCheckpoint(7, 3)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'{"size":3}',
        b'{"version":"3","size":3}',
        b'{"version":true,"size":3}',
        b'{"version":-1,"size":3}',
        b'{"version":3,"version":4,"size":3}',
        b'{"version":3,"size":3,"checksum":"00000000000000000000000000000000"}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_damaged_hint_is_none(data: bytes) -> None:
    assert parse(data) is None


def test_what_is_not_needed_may_be_missing_or_odd() -> None:
    assert parse(b'{"version":3}') == LastCheckpoint(3, 0)
    assert parse(b'{"version":3,"size":"many","parts":null,"tags":{}}') == LastCheckpoint(3, 0)
