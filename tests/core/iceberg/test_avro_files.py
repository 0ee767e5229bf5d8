"""Manifests and manifest lists are read as pyiceberg reads them; damaged ones end in an error, not in a crash."""

import zlib
from typing import Any

import pytest
from pyiceberg.manifest import ManifestFile, read_manifest_list

from tablelog.core.deltalog import DeltaLog
from tablelog.core.iceberg import avro_files
from tablelog.core.iceberg.avro_files import DamagedAvroError
from tablelog.core.iceberg.storage import MetadataDirectory

from .test_convert import commit, create, tagged


@pytest.fixture
def directory() -> MetadataDirectory:
    log: DeltaLog = create("p")
    commit(log, tagged(log, "a", 1), tagged(log, "b", None))
    commit(log, tagged(log, "a", 1).remove(1), tagged(log, "c", 7))
    return MetadataDirectory(log.store, log.table)


@pytest.fixture
def location(directory: MetadataDirectory) -> str:
    """That of the newest manifest list."""
    _, metadata = directory.current()
    assert metadata is not None
    current = metadata.current_snapshot()
    assert current is not None
    return current.manifest_list


def shown(record: Any) -> list[str]:
    return [str(dict(value) if hasattr(value, "items") else value) for value in record._data]


def test_they_are_read_as_pyiceberg_reads_them(directory: MetadataDirectory, location: str) -> None:
    manifests = avro_files.manifest_list(directory.read(location))
    assert [shown(one) for one in manifests] == [
        shown(one) for one in read_manifest_list(directory.new_input(location))
    ]
    assert len(manifests) == 2
    for manifest in manifests:
        entries = avro_files.live_entries(directory.read(manifest.manifest_path), manifest)
        expected = manifest.fetch_manifest_entry(directory)
        assert [entry.data_file.file_path for entry in entries] == [entry.data_file.file_path for entry in expected]
        for one, other in zip(entries, expected, strict=True):
            assert shown(one)[:4] == shown(other)[:4]
            assert shown(one.data_file) == shown(other.data_file)
            assert one.data_file.spec_id == other.data_file.spec_id == manifest.partition_spec_id


def test_each_truncated_file_is_damaged(directory: MetadataDirectory, location: str) -> None:
    whole = directory.read(location)
    ends = [end for end in range(len(whole)) if not _is_damaged(whole[:end])]
    # Cut between its header and its first block, or between two blocks, it is a shorter list.
    assert len(ends) <= 2


def test_each_changed_byte_gives_a_list_or_an_error(directory: MetadataDirectory, location: str) -> None:
    whole = directory.read(location)
    damaged = [_is_damaged(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]) for at in range(len(whole))]
    assert sum(damaged) > len(whole) / 2


def test_a_length_below_zero() -> None:
    """pyiceberg's fast decoder crashes, or raises a SystemError, at such lengths."""
    for data in (b"Obj\x01\x01", b"Obj\x01\x02\x01", b"Obj\x01" + b"\xff" * 12, b""):
        with pytest.raises(DamagedAvroError):
            avro_files.manifest_list(data)


def test_a_block_that_becomes_too_large(
    directory: MetadataDirectory, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro_files, "_MOST_BYTES", 100)
    with pytest.raises(DamagedAvroError, match="more than 100 bytes"):
        avro_files.manifest_list(directory.read(location))
    assert len(avro_files._decompressed(zlib.compress(bytes(90), wbits=-15), "deflate", 100)) == 90
    for codec, message in (("deflate", "more than"), ("snappy", "'snappy' isn't one")):
        with pytest.raises(DamagedAvroError, match=message):
            avro_files._decompressed(zlib.compress(bytes(10_000_000), wbits=-15), codec, 100)


@pytest.mark.parametrize(
    "items",
    ['{"type":"record","name":"r","fields":[]}', '{"type":"fixed","name":"f","size":0}'],
    ids=["record", "fixed"],
)
def test_a_list_of_values_without_bytes(items: str) -> None:
    schema = (
        '{"type":"record","name":"manifest_file","fields":[{"name":"x","field-id":1,'
        f'"type":{{"type":"array","element-id":2,"items":{items}}}}}]}}'
    )
    meta = b"\x02" + _text(b"avro.schema") + _text(schema.encode()) + b"\x00"
    block = b"\x02" + _text(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01")  # an endless list in ten bytes
    with pytest.raises(DamagedAvroError, match="list of an empty type"):
        avro_files.manifest_list(b"Obj\x01" + meta + bytes(16) + block + bytes(16))


def _text(value: bytes) -> bytes:
    length, coded = len(value) * 2, b""
    while length >= 0x80:
        coded, length = coded + bytes([length & 0x7F | 0x80]), length >> 7
    return coded + bytes([length]) + value


def _is_damaged(data: bytes) -> bool:
    try:
        assert all(isinstance(one, ManifestFile) for one in avro_files.manifest_list(data))
    except DamagedAvroError:
        return True
    return False
