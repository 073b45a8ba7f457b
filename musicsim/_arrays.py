"""Array types for annotations."""

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
