"""Inputs from valid ones: changed as JSON, as lines, as words, or as bytes."""

import re
from collections.abc import Sequence

from . import json_trees
from .choices import Choices
from .target import Target

LONGEST = 1 << 17
_WORD = re.compile(rb"\w+|\s+|.", re.DOTALL)
_BYTES = (b"\0", b"\xff", b"\x7f", b"\x80", b"\1", b"\n", b'"', b"\\", b"%", b"{", b"}", b"\xed\xa0\x80", b"\xc3\xa9")
_NUMBERS = (
    b"0",
    b"-1",
    b"1",
    b"9223372036854775807",
    b"9223372036854775808",
    b"2147483648",
    b"9" * 5000,
    b"1e999999999",
)


def mutant(choices: Choices, target: Target) -> bytes:
    """A seed of the target after some changes."""
    data = choices.pick(target.seeds)
    for _ in range(1 + choices.below(4)):
        data = changed(choices, data, target)
    return data


def changed(choices: Choices, data: bytes, target: Target) -> bytes:
    """`data` after one change."""
    head, rest = data[: target.keep], data[target.keep :]
    if target.keep and choices.is_one_of(8):
        head = bytes([choices.below(256)]) * target.keep
    form = target.form if not choices.is_one_of(8) else choices.pick(("text", "binary"))
    if form == "json":
        rest = _as_json(choices, rest, target.words)
    elif form == "lines":
        rest = _as_lines(choices, rest, target)
    elif form == "text":
        rest = _as_words(choices, rest, target.words)
    else:
        rest = _as_bytes(choices, rest, target)
    return (head + rest)[:LONGEST]


def _as_json(choices: Choices, data: bytes, words: Sequence[str]) -> bytes:
    try:
        tree = json_trees.parsed(data)
    except ValueError:
        return _as_words(choices, data, words)
    return json_trees.written(json_trees.edit(choices, tree, words))


def _as_lines(choices: Choices, data: bytes, target: Target) -> bytes:
    lines = data.split(b"\n")
    at = choices.below(len(lines))
    kind = choices.below(10)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(choices.below(len(lines) + 1), lines[at])
    elif kind == 2:
        other = choices.below(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 3:
        others = choices.pick(target.seeds)[target.keep :].split(b"\n")
        lines.insert(at, choices.pick(others))
    else:
        lines[at] = _as_json(choices, lines[at], target.words)
    return b"\n".join(lines)


def _as_words(choices: Choices, data: bytes, words: Sequence[str]) -> bytes:
    tokens = _WORD.findall(data)
    at = choices.below(len(tokens) + 1)
    kind = choices.below(6)
    if kind == 0:
        del tokens[at : at + 1 + choices.below(3)]
    elif kind == 1:
        tokens[at:at] = tokens[at : at + 1 + choices.below(8)] * (1 + choices.below(3))
    elif kind == 2:
        tokens.insert(at, choices.pick(_BYTES))
    elif kind == 3 and at < len(tokens) and tokens[at].isdigit():
        tokens[at] = choices.pick(_NUMBERS)
    else:
        word = choices.pick(words).encode("utf-8", "surrogatepass") if words else choices.pick(_NUMBERS)
        tokens[at : at + choices.below(2)] = [word]
    return b"".join(tokens)


def _as_bytes(choices: Choices, data: bytes, target: Target) -> bytes:
    if not data:
        return choices.pick(_BYTES)
    at = choices.below(len(data))
    if choices.is_one_of(2):
        # The end of a Parquet file, and the start of a deletion vector, say how the rest is read.
        near = min(64, len(data))
        at = choices.below(near) if choices.is_one_of(2) else len(data) - 1 - choices.below(near)
    kind = choices.below(7)
    new = bytearray(data)
    if kind == 0:
        new[at] ^= 1 << choices.below(8)
    elif kind == 1:
        new[at] = choices.pick((0, 1, 127, 128, 255, choices.below(256)))
    elif kind == 2:
        del new[at:]
    elif kind == 3:
        del new[at : at + 1 + choices.below(16)]
    elif kind == 4:
        new[at:at] = new[at : at + 1 + choices.below(64)]
    elif kind == 5:
        other = choices.pick(target.seeds)
        start = choices.below(len(other) + 1)
        new[at : at + choices.below(16)] = other[start : start + choices.below(64)]
    else:
        width = choices.pick((2, 4, 8))
        number = choices.pick((0, 1, 2, 255, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1))
        new[at : at + width] = (number % (1 << 8 * width)).to_bytes(width, choices.pick(("little", "big")))
    return bytes(new)
