"""TensorFlow checkpoints with known arrays, and a package that contains one."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

_MAGIC = bytes.fromhex("57fb808b247547db")


def pack_checkpoint(arrays: Mapping[str, np.ndarray]) -> tuple[bytes, bytes]:
    """Return the index and the data file of a checkpoint with float32 arrays, as TensorFlow writes them."""
    data, entries = b"", [(b"", _field(1, 1))]  # the header states one data file
    for name in sorted(arrays):
        array = arrays[name].astype("<f4")
        shape = b"".join(_field(2, _field(1, size)) for size in array.shape)
        entry = _field(1, 1) + _field(2, shape) + _field(4, len(data)) + _field(5, array.nbytes)
        entries.append((name.encode(), entry + _varint(6 << 3 | 5) + bytes(4)))
        data += array.tobytes()
    index = _block(entries)
    position = _varint(0) + _varint(len(index) - 5)
    block = _block([(b"z", position)])
    footer = _varint(0) + _varint(0) + _varint(len(index)) + _varint(len(block) - 5)
    return index + block + footer.ljust(40, b"\0") + _MAGIC, data


def write_wheel(path: Path, arrays: Mapping[str, np.ndarray]) -> Path:
    """Write a package with the files that musicnn's wheel has."""
    index, data = pack_checkpoint(arrays)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("musicnn/MSD_musicnn/.index", index)
        wheel.writestr("musicnn/MSD_musicnn/.data-00000-of-00001", data)
    return path


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
    """Return a block with prefix compression, one restart, its compression type, and an unused checksum."""
    block, last = b"", b""
    for key, value in entries:
        shared = next((i for i, (a, b) in enumerate(zip(key, last, strict=False)) if a != b), min(len(key), len(last)))
        block += _varint(shared) + _varint(len(key) - shared) + _varint(len(value)) + key[shared:] + value
        last = key
    return block + bytes(4) + (1).to_bytes(4, "little") + bytes(5)
