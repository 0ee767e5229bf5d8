"""The cache of deletion vectors."""

from tablelog.core.protocol.actions import DeletionVectorDescriptor
from tablelog.core.protocol.deletion_vectors import DeletedRows
from tablelog.engine.read.vector_cache import OVERHEAD, VectorCache

ROWS = DeletedRows.of([1])


def vector(name: str, size: int) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("u", name, size, 1, 0)


def test_the_least_recently_used_vectors_are_removed() -> None:
    cache, vectors = VectorCache(100 + 2 * OVERHEAD), [vector(name, 40) for name in "abc"]
    first, second, third = vectors
    cache.add("t", {first: ROWS, second: ROWS})
    assert set(cache.get("t", vectors)) == {first, second}
    cache.get("t", [first])
    cache.add("t", {third: ROWS})
    assert set(cache.get("t", vectors)) == {first, third}
    assert cache.get("other", vectors) == {}


def test_many_small_vectors_take_no_more_memory_than_the_limit() -> None:
    """The objects of a vector with one row take some 30 times its stored bytes."""
    cache, vectors = VectorCache(100 * OVERHEAD), [vector(str(number), 34) for number in range(1_000)]
    cache.add("t", dict.fromkeys(vectors, ROWS))
    kept = cache.get("t", vectors)
    assert set(kept) == set(vectors[-len(kept) :])
    assert 90 < len(kept) < 100


def test_the_newest_stays_however_large_it_is() -> None:
    cache, large, small = VectorCache(100), vector("large", 1_000), vector("small", 1)
    cache.add("t", {small: ROWS})
    cache.add("t", {large: ROWS})
    assert set(cache.get("t", [large, small])) == {large}
    cache.add("t", {small: ROWS})
    assert set(cache.get("t", [large, small])) == {small}


def test_a_vector_that_is_added_again_counts_once() -> None:
    cache, first, second = VectorCache(100 + 2 * OVERHEAD), vector("a", 40), vector("b", 40)
    for _ in range(5):
        cache.add("t", {first: ROWS})
    cache.add("t", {second: ROWS})
    assert set(cache.get("t", [first, second])) == {first, second}
    cache.clear()
    assert cache.get("t", [first, second]) == {}
