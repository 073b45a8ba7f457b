"""Read TensorFlow checkpoints (format V2) without TensorFlow.

The index is a table in LevelDB's format (https://github.com/google/leveldb/blob/main/doc/table_format.md), which maps
the names of arrays to messages of the type BundleEntryProto. The data file contains the arrays. Neither is trusted.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from musicsim._arrays import Float32Array

_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER, _TRAILER = 48, 5  # bytes of the footer, and of the compression type and checksum after each block
_TYPE, _SHAPE, _OFFSET, _N_BYTES = 1, 2, 4, 5  # fields of BundleEntryProto
_DIMENSION = 2  # field of TensorShapeProto
_FLOAT = 1  # DataType.DT_FLOAT


def read_checkpoint(index: bytes, data: bytes) -> dict[str, Float32Array]:
    """Return the float32 arrays of a checkpoint, keyed by name; raises ValueError if it is damaged."""
    if index[-len(_MAGIC) :] != _MAGIC or len(index) < _FOOTER:
        raise ValueError("the index is not a table")
    arrays = {}
    at = len(index) - _FOOTER
    for _ in range(2):  # skip the position and the size of the meta index
        _, at = _varint(index, at)
    try:
        for _, position in _entries(_read_block(index, index, at)):
            for name, entry in _entries(_read_block(index, position, 0)):
                array = _read_array(entry, data) if name else None  # the entry without a name is a header
                if array is not None:
                    arrays[name.decode("utf-8")] = array
    except TypeError as error:  # a field has the wrong type
        raise ValueError("a message in the index is damaged") from error
    return arrays


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the variable-length integer at a position, and the position after it."""
    value = 0
    for shift in range(0, 64, 7):
        if not 0 <= at < len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise ValueError("a number in the index is damaged")


def _read_block(index: bytes, handle: bytes, at: int) -> bytes:
    """Return the block whose start and size are stored at a position of `handle`."""
    start, at = _varint(handle, at)
    size, _ = _varint(handle, at)
    if start + size + _TRAILER > len(index):
        raise ValueError("a block of the index is cut off")
    if index[start + size]:
        raise ValueError("the index is compressed")
    return index[start : start + size]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block; each key is stored without the beginning that it shares with the last."""
    n_restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (1 + n_restarts)
    key, at = b"", 0
    while at < end:
        shared, at = _varint(block, at)
        n_new, at = _varint(block, at)
        n_value, at = _varint(block, at)
        if shared > len(key) or at + n_new + n_value > end:
            raise ValueError("an entry of the index is damaged")
        key = key[:shared] + block[at : at + n_new]
        at += n_new
        yield key, block[at : at + n_value]
        at += n_value


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the numbers and values of the fields of a protobuf message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
        else:
            size, at = {1: (8, at), 5: (4, at)}.get(tag & 7) or _varint(message, at)
            if at + size > len(message):
                raise ValueError("a message in the index is cut off")
            yield tag >> 3, message[at : at + size]
            at += size


def _read_array(entry: bytes, data: bytes) -> Float32Array | None:
    """Return the array that a BundleEntryProto describes, or None for other types than float32."""
    values = dict(_fields(entry))
    if values.get(_TYPE) != _FLOAT:
        return None
    shape = [dict(_fields(size)).get(1, 0) for number, size in _fields(values.get(_SHAPE, b"")) if number == _DIMENSION]
    start, n_bytes = values.get(_OFFSET, 0), values.get(_N_BYTES, 0)
    if 4 * math.prod(shape) != n_bytes or start + n_bytes > len(data):
        raise ValueError("the index does not fit the data file")
    return np.frombuffer(data, "<f4", n_bytes // 4, start).reshape(shape).astype(np.float32)
