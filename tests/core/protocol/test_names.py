"""Names as text."""

import pytest

from tablelog.core.protocol.schema import dotted, quoted, unquoted


@pytest.mark.parametrize(
    ("parts", "text"),
    [(("a",), "`a`"), (("a.b",), "`a.b`"), (("a`b",), "`a``b`"), (("`",), "````"), (("main", "a b"), "`main`.`a b`")],
)
def test_a_quoted_name_keeps_its_parts_apart(parts: tuple[str, ...], text: str) -> None:
    assert quoted(*parts) == text
    assert tuple(map(unquoted, (quoted(part) for part in parts))) == parts


def test_a_part_without_quotes_stays() -> None:
    assert unquoted("a") == "a"


def test_a_name_in_a_message_is_quoted_only_where_it_must_be() -> None:
    assert dotted(("a", "b_1")) == "a.b_1"
    assert dotted(("a", "b.c", "d`e")) == "a.`b.c`.`d``e`"
