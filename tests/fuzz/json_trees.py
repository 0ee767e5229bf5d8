"""JSON as a tree that can also be written in ways no JSON library writes: a key twice, numbers out of range, NaN."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .choices import Choices

_DEEPEST = 50
_MOST_BITS = 13_000
"""Python writes no integer of more than 4,300 digits."""


class Object(list[tuple[str, Any]]):
    """An object as pairs: a key may occur twice."""


class Raw(str):
    """Text that is written without quotes."""


ODD: Sequence[Any] = (
    None, True, False, 0, 1, -1, 127, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63),
    -(2**63) - 1,
    10**30, 0.5, -0.0, 1e308, 1.0, Raw("NaN"), Raw("Infinity"), Raw("-Infinity"), Raw("1e999"), Raw("1e9999999"),
    Raw("1e99999999999999999999"), Raw("-0"), Raw("01"), Raw("9" * 5000), Raw("1." + "0" * 50), Raw('"\\ud800"'),
    Raw('"\\u0000"'), Raw("'a'"), Raw(""), "", "a", " ", "\0", "é", "\U0001f600", "\u2028", "NaN", "Infinity", "1",
    "-1",
    "1e5", "1e9999999", "9" * 5000, "true", "null", "2024-01-31", "2024-01-31T10:00:00.000Z", "9999-12-31", "x:NaN,y",
    "../a", "/a", "%2F",
    "http://[::1", "a" * 3000, [], [None], [1], ["a", "a"], Object(), Object([("a", 1)]), Object([("a", "b")]),
    Object([("a", None)]), Raw("[" * 300 + "]" * 300), Raw('{"a":' * 300 + "1" + "}" * 300),
)  # fmt: skip


def parsed(data: bytes) -> Any:
    """The tree; ValueError if the bytes aren't JSON, or are nested deeper than the functions here can follow."""
    try:
        tree = json.loads(data, object_pairs_hook=Object)
    except RecursionError:
        raise ValueError("too deep") from None
    if _is_deeper(tree, _DEEPEST):
        raise ValueError("too deep")
    return tree


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, list):
        return False
    items = [pair[1] for pair in value] if isinstance(value, Object) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)


def written(value: Any) -> bytes:
    return _written(value).encode("utf-8", "surrogatepass")


def _written(value: Any) -> str:
    if isinstance(value, Raw):
        return value
    if isinstance(value, Object):
        return "{" + ",".join(f"{json.dumps(key)}:{_written(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if value.bit_length() < _MOST_BITS else "1" + "0" * 4000
    return json.dumps(value, ensure_ascii=False)


def _places(value: Any) -> Iterator[tuple[Any, int]]:
    """Each container and index in it, from the outside to the inside."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from _places(item[1] if isinstance(value, Object) else item)


def edit(choices: Choices, tree: Any, words: Sequence[str]) -> Any:
    """The tree with one place changed; the tree itself may be changed too."""
    places = list(_places(tree))
    if not places or choices.is_one_of(100):
        return value_of(choices, words)
    holder, index = choices.pick(places)
    kind = choices.below(10)
    if kind == 0:
        del holder[index]
    elif kind == 1:
        holder.insert(index, holder[index])
    elif kind == 2 and isinstance(holder, Object):
        holder[index] = (choices.pick(words) if words else "a", holder[index][1])
    elif kind == 3:
        # A value from elsewhere in the tree.
        other, at = choices.pick(places)
        item = other[at][1] if isinstance(other, Object) else other[at]
        _put(holder, index, parsed(written(item)) if _is_json(item) else item)
    elif kind == 4 and isinstance(holder, Object):
        holder.insert(index, (choices.pick(words) if words else "b", value_of(choices, words)))
    else:
        item = holder[index][1] if isinstance(holder, Object) else holder[index]
        _put(holder, index, near(choices, item, words))
    return tree


def _is_json(value: Any) -> bool:
    try:
        parsed(written(value))
    except ValueError:
        return False
    return True


def _put(holder: Any, index: int, value: Any) -> None:
    holder[index] = (holder[index][0], value) if isinstance(holder, Object) else value


def near(choices: Choices, value: Any, words: Sequence[str]) -> Any:
    """A value like this one, or an odd one."""
    if choices.is_one_of(2):
        return value_of(choices, words)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + choices.pick((1, -1, 2**31, 2**32, 2**63, 1000, -1000))
    if isinstance(value, str) and not isinstance(value, Raw):
        inside = _of_text(value)
        if inside is not None:
            # JSON inside a string: statistics, and the columns of a table.
            return written(edit(choices, inside, words)).decode("utf-8", "surrogateescape")
        at = choices.below(len(value) + 1)
        return value[:at] + choices.pick([*words, *"0aé%\\\"'`{}[],:. /\0\n"]) + value[at + choices.below(2) :]
    return value_of(choices, words)


def _of_text(text: str) -> Any:
    if text[:1] not in ("{", "["):
        return None
    try:
        return parsed(text.encode())
    except ValueError:
        return None


def value_of(choices: Choices, words: Sequence[str]) -> Any:
    return choices.pick(words) if words and choices.is_one_of(4) else choices.pick(ODD)
