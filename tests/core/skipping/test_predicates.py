"""Predicates as values: which columns they name, and what of them the partition decides."""

import pickle

import pyarrow as pa
import pytest

from tablelog.core.skipping.predicates import (
    TRUE,
    And,
    Compare,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Not,
    Opaque,
    Or,
    Predicate,
    StartsWith,
    all_of,
    columns,
    conjuncts,
    is_translated,
    partition_only,
    split,
    walk,
)

ONE = pa.scalar(1)
P, Q = Compare("=", ("p",), ONE), IsNull(("q",))
A, B = Compare("<", ("a",), ONE), StartsWith(("s", "b"), "x")


def test_the_columns_of_every_kind_are_named() -> None:
    whole = Or(
        (
            P,
            Not(
                And((Q, A, In(("i",), (ONE,)), IsNotNull(("n", "x")))),
            ),
            B,
            Constant(None),
            Opaque("f()"),
        )
    )
    assert columns(whole) == {("p",), ("q",), ("a",), ("i",), ("n", "x"), ("s", "b")}
    assert columns(Opaque("f(z)", frozenset({("z",)}))) == {("z",)}
    assert [type(node) for node in walk(And((P, Not(Q))))] == [And, Compare, Not, IsNull]


@pytest.mark.parametrize(
    ("predicate", "only"),
    [
        (P, True), (Or((P, Not(Q))), True), (TRUE, True), (A, False), (Or((P, A)), False), (Opaque("rand()"), False),
        (Opaque("f(p)", frozenset({("p",)})), True), (Opaque("f(p, a)", frozenset({("p",), ("a",)})), False),
        (IsNull(("p", "x")), False), (In(("q",), (ONE,)), True), (StartsWith(("p",), "x"), True),
        (IsNotNull(("a",)), False),
    ],
)  # fmt: skip
def test_what_partition_columns_alone_decide(predicate: Predicate, only: bool) -> None:
    assert partition_only(predicate, ["p", "q"]) is only


def test_a_conjunction_is_split_and_put_together_again() -> None:
    assert split(And((P, And((A, Q)), B)), ["p", "q"]) == (And((P, Q)), And((A, B)))
    assert split(Or((P, A)), ["p", "q"]) == (TRUE, Or((P, A)))
    assert split(P, ["p"]) == (P, TRUE)
    assert split(TRUE, ["p"]) == (TRUE, TRUE)
    assert split(Constant(False), ["p"]) == (Constant(False), TRUE)


def test_flat_conjunctions() -> None:
    assert list(conjuncts(And((P, And((A, And(()))))))) == [P, A]
    assert all_of([]) == TRUE
    assert all_of([TRUE, P]) == P
    assert all_of([And((P, A)), B]) == And((P, A, B))


def test_depth_costs_no_recursion() -> None:
    deep: Predicate = P
    for _ in range(50_000):
        deep = Not(deep)
    assert columns(deep) == {("p",)}
    assert partition_only(deep, ["p"])


def test_literals_of_any_year_and_bytes_that_are_no_text_are_pickled() -> None:
    ends = [pa.scalar(at, pa.int64()).cast(pa.timestamp("us", "UTC")) for at in (-(2**63), 0, 2**63 - 1)]
    days = [pa.scalar(day, pa.int32()).cast(pa.date32()) for day in (-(2**31), 2**31 - 1)]
    texts = list(pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string()))
    for values in (ends, days, texts):
        for predicate in (In(("c",), tuple(values)), Not(Compare("<", ("c",), values[1]))):
            back = pickle.loads(pickle.dumps(predicate))
            assert back == predicate
            assert type(back) is type(predicate)


def test_what_only_spark_can_evaluate_is_not_translated() -> None:
    assert is_translated(And((P, Not(A))))
    assert not is_translated(And((P, Not(Opaque("f()")))))
