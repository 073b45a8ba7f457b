"""Names of the array types that annotations use, and where the entries of one array stand in another."""

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
Float16Array = npt.NDArray[np.float16]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
FloatingArray = npt.NDArray[np.floating]
Int16Array = npt.NDArray[np.int16]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Int8Array = npt.NDArray[np.int8]
IntegerArray = npt.NDArray[np.integer]
IntpArray = npt.NDArray[np.intp]
Uint16Array = npt.NDArray[np.uint16]
Uint32Array = npt.NDArray[np.uint32]
Uint64Array = npt.NDArray[np.uint64]
Uint8Array = npt.NDArray[np.uint8]


def places_among(known: Int64Array, wanted: Int64Array) -> Int64Array:
    """Where numbers stand among others, which are all different, int64 (n_wanted,); -1 where they do not."""
    if np.array_equal(known, wanted):
        return np.arange(len(known))
    if not len(known):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(known)
    places = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[places] == wanted, places, -1)
