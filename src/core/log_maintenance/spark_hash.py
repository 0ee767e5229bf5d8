"""Spark's hash of strings, for whole columns (PROTOCOL.md, "Multi-part checkpoint").

It decides the part of each action in a checkpoint, so that every writer uses the same part.
"""

import pyarrow as pa
import pyarrow.compute as pc

SEED = 42
"""Spark's initial hash, which is also the hash of a row whose columns are all null."""

_U32 = pa.uint32()


def _u32(value: int) -> pa.Scalar:
    return pa.scalar(value, _U32)


def hashed(texts: pa.Array, seeds: pa.Array | None = None) -> pa.Array:
    """Murmur3 of the UTF-8 bytes of each string, as Spark's `hash` computes it, as uint32; a null keeps its seed.

    `seeds` are the hashes of the previous columns; 42 by default.
    """
    count = len(texts)
    if seeds is None:
        seeds = pa.repeat(_u32(SEED), count)
    rows = pc.indices_nonzero(texts.is_valid())
    values = texts.drop_null().cast(pa.binary())
    lengths = pc.binary_length(values)
    places, hashes = [pc.indices_nonzero(texts.is_null())], [seeds.filter(texts.is_null())]
    for length in pc.unique(lengths).to_pylist():
        chosen = pc.equal(lengths, length)
        places.append(rows.filter(chosen))
        hashes.append(_of_one_length(values.filter(chosen), length, seeds.take(places[-1])))
    order = pc.sort_indices(pa.concat_arrays(places))
    return pa.concat_arrays(hashes).take(order)


def parts(hashes: pa.Array, count: int) -> pa.Array:
    """The part (from 0, of `count`) of each hash: the remainder of the signed hash, never negative."""
    signed = hashes.view(pa.int32()).cast(pa.int64())
    lift = pa.scalar((2**31 // count + 1) * count, pa.int64())
    lifted = pc.add(signed, lift)
    return pc.subtract(lifted, pc.multiply(pc.divide(lifted, pa.scalar(count, pa.int64())), pa.scalar(count)))


def _of_one_length(values: pa.Array, length: int, h: pa.Array) -> pa.Array:
    words = length // 4
    for word in range(words):
        h = _mixed(h, _fixed(pc.binary_slice(values, 4 * word, 4 * word + 4), pa.uint32()))
    for at in range(4 * words, length):
        # As Spark does, the remaining bytes are processed one by one, as signed values.
        byte = _fixed(pc.binary_slice(values, at, at + 1), pa.int8())
        h = _mixed(h, byte.cast(pa.int32()).view(_U32))
    h = pc.bit_wise_xor(h, _u32(length))
    h = pc.multiply(_xor_shifted(h, 16), _u32(0x85EBCA6B))
    h = pc.multiply(_xor_shifted(h, 13), _u32(0xC2B2AE35))
    return _xor_shifted(h, 16)


def _fixed(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Binary values of the length of `type_` as little-endian numbers of that type."""
    return values.cast(pa.binary(type_.bit_width // 8)).view(type_)


def _mixed(h: pa.Array, k: pa.Array) -> pa.Array:
    k = pc.multiply(_rotated(pc.multiply(k, _u32(0xCC9E2D51)), 15), _u32(0x1B873593))
    h = _rotated(pc.bit_wise_xor(h, k), 13)
    return pc.add(pc.multiply(h, _u32(5)), _u32(0xE6546B64))


def _rotated(x: pa.Array, by: int) -> pa.Array:
    return pc.bit_wise_or(pc.shift_left(x, _u32(by)), pc.shift_right(x, _u32(32 - by)))


def _xor_shifted(x: pa.Array, by: int) -> pa.Array:
    return pc.bit_wise_xor(x, pc.shift_right(x, _u32(by)))
