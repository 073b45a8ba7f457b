"""MusiCNN: its weights from the package on PyPI, and the ONNX network that is built from them.

The network is from J. Pons and X. Serra, "musicnn: pre-trained convolutional neural networks for music audio tagging",
ISMIR 2019 (late-breaking demo), https://github.com/jordipons/musicnn (ISC license). Its package is found where it is
installed, or installed with pip or uv. The weights are a TensorFlow checkpoint (format V2), read without TensorFlow.
"""

import importlib
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from musicsim import extras
from musicsim._arrays import Float32Array
from musicsim.errors import LibraryError, ModelError
from musicsim.library import shorten_message
from musicsim.progress import Progress, no_progress

DOWNLOAD = "pip download --no-deps musicnn==0.1.0"
ABOUT = "MusiCNN (29 MB, ISC license) and the packages that run it"
_LOCKS = [Path(__file__).parent / "assets" / name for name in ("musicnn.txt", "ear.txt")]  # also for `make app`
_RUN_BY = ("onnx", "onnxruntime")
_LOOK_EVERY_S = 0.25
_HASH_DIFFERS = re.compile("DO NOT MATCH THE HASHES|Hash mismatch")
_NO_CONNECTION = re.compile("NewConnectionError|ConnectTimeout|ProxyError|NameResolutionError|error sending request")
_BY_HAND = f"or run `{DOWNLOAD}` elsewhere and add the file: musicsim models add-ear FILE"
TAGS = (
    "rock", "pop", "alternative", "indie", "electronic", "female vocalists", "dance", "00s", "alternative rock",
    "jazz", "beautiful", "metal", "chillout", "male vocalists", "classic rock", "soul", "indie rock", "mellow",
    "electronica", "80s", "folk", "90s", "chill", "instrumental", "punk", "oldies", "blues", "hard rock", "ambient",
    "acoustic", "experimental", "female vocalist", "guitar", "hip-hop", "70s", "party", "country", "easy listening",
    "sexy", "catchy", "funk", "electro", "heavy metal", "progressive rock", "60s", "rnb", "indie pop", "sad", "house",
    "happy",
)  # fmt: skip
"""Tags that the network predicts, in order."""
N_FRAMES, N_BANDS = 187, 96  # size of a patch; 187 frames are 3 seconds
OUTPUT = "pools_and_tags"  # both outputs in one row
N_POOLED = 753  # channels of the front end and of the three layers after it
_FOLDER, _PARTS = "musicnn/MSD_musicnn/", (".index", ".data-00000-of-00001")
_MAX_BYTES = 64 << 20
_OPSET, _IR = 17, 8
_BLOCK = 16  # channels that onnxruntime computes together
_EPSILON = 1e-3  # of TensorFlow's batch normalization
# of a checkpoint
_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER, _TRAILER = 48, 5  # bytes of the footer, and of the compression type and checksum after each block
_TYPE, _SHAPE, _OFFSET, _N_BYTES = 1, 2, 4, 5  # fields of BundleEntryProto
_DIMENSION = 2  # field of TensorShapeProto
_FLOAT = 1  # DataType.DT_FLOAT


def find_weights() -> Path | None:
    """Return the folder of the installed package musicnn; None if it or a package that runs it is missing."""
    spec = find_spec("musicnn")
    if spec is None or not spec.submodule_search_locations or not has_runtime():
        return None
    return Path(spec.submodule_search_locations[0])


def has_runtime() -> bool:
    """Return whether the packages that run MusiCNN are installed; a library may come from another machine."""
    return all(find_spec(name) is not None for name in _RUN_BY)


def install_weights(progress: Progress = no_progress) -> Path:
    """Install the weights and the packages that run them, and return the folder.

    Nothing is installed before the hashes of all downloaded files were checked. `progress` may cancel the download.
    Raises LibraryError if a file cannot be downloaded, has another hash, or cannot be installed.
    """
    with tempfile.TemporaryDirectory(prefix="musicsim-ear-") as name:
        folder = Path(name)
        wanted = folder / "wanted.txt"
        wanted.write_text("".join(_list_missing()), encoding="utf-8")
        # without the packages that musicnn names: only its code needs TensorFlow
        options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(wanted)]
        if find_spec("pip") is not None:
            pip = [sys.executable, "-m", "pip"]
            files = folder / "files"
            _run([*pip, "download", "--quiet", "--dest", str(files), *options], folder, progress)
            command = [*pip, "install", "--quiet", "--no-index", "--find-links", str(files), *options]
        elif (uv := shutil.which("uv")) is not None:
            command = [uv, "pip", "install", "--quiet", "--python", sys.executable, *options]
        else:
            raise LibraryError(f"MusiCNN cannot be downloaded without pip or uv: install one of them, {_BY_HAND}")
        progress("installing MusiCNN")
        _run(command, folder)  # cannot be canceled, so that no package is half installed
    importlib.invalidate_caches()
    weights = find_weights()
    if weights is None:
        raise LibraryError(f"MusiCNN is installed, but {sys.executable} does not find it: install it again, {_BY_HAND}")
    return weights


def _list_missing() -> Iterator[str]:
    """Yield the entries of the lock files for packages that are not installed; the others keep their versions."""
    for lock in _LOCKS:
        for entry in re.findall(r"^\w.*\n(?:[ ].*\n)*", lock.read_text(encoding="utf-8"), re.MULTILINE):
            if not _is_installed(entry.split("==")[0]):
                yield entry


def _is_installed(name: str) -> bool:
    return any(True for _ in metadata.distributions(name=name))


def _run(command: list[str], folder: Path, progress: Progress | None = None) -> None:
    """Run pip or uv with its temporary files in a folder; `progress` gets the amount that was downloaded so far."""
    environment = os.environ | {"PIP_RETRIES": "1", "UV_HTTP_RETRIES": "1", "TMPDIR": str(folder)}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    with (folder / "errors.txt").open("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, env=environment)
        try:
            while progress is not None and process.poll() is None:
                progress(f"downloading MusiCNN: {_n_bytes(folder) >> 20:,} MB")
                time.sleep(_LOOK_EVERY_S)
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
        said.seek(0)
        if process.returncode:
            raise LibraryError(_explain(said.read()))


def _n_bytes(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):  # leaves out folders that pip has deleted
        for name in names:
            with suppress(OSError):  # pip has moved it
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _explain(said: str) -> str:
    if _HASH_DIFFERS.search(said):
        return f"a downloaded file is not the one that musicsim expects (its hash differs): try again later, {_BY_HAND}"
    if _NO_CONNECTION.search(said):
        reason = "no connection to the package index"
    else:
        reason = shorten_message((said.strip() or "no reason given").splitlines()[-1].removeprefix("ERROR: "))
    return f"MusiCNN cannot be downloaded ({reason}): check the network, {_BY_HAND}"


def is_musicnn(path: Path) -> bool:
    """Return whether a path is the package with the weights: its wheel, or the folder in which it is installed."""
    return path.suffix == ".whl" or path.is_dir()


def convert(path: Path) -> bytes:
    """Return an ONNX network with the weights in musicnn's wheel, or in the folder in which it is installed.

    Its input is `patches` (n, 187, 96). Its output :data:`OUTPUT` (n, 1556) contains the mean of each pooled channel
    over time, the maximum of each, and the probabilities of the tags. `penultimate` is (n, 200). Raises ModelError if
    the file is not this package, and LibraryError if the package `onnx` is missing.
    """
    try:
        return _build(read_checkpoint(*_read_parts(path)))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"{path.name}: the weights of musicnn cannot be read ({error}). Download the package again: {DOWNLOAD}"
        ) from error


def _read_parts(path: Path) -> list[bytes]:
    if path.is_dir():
        return [(path.parent / _FOLDER / name).read_bytes() for name in _PARTS]
    with zipfile.ZipFile(path) as wheel:
        parts = [wheel.getinfo(_FOLDER + name) for name in _PARTS]
        if any(part.file_size > _MAX_BYTES for part in parts):
            raise ValueError("its weights are too large")
        return [wheel.read(part) for part in parts]


def _turn_kernel(weights: Mapping[str, Float32Array], number: int) -> tuple[Float32Array, Float32Array, Float32Array]:
    """Return kernels (channels, 1, time, bands) and biases of a layer, and the sign by which both are multiplied.

    Then the maximum of the sums gives the maximum of the normalized ones, also if normalization changes their sign.
    Channels of zeros fill the last block, because the network takes twice as long with incomplete ones.
    """
    name = f"conv2d_{number}" if number else "conv2d"
    sign = np.where(weights[f"batch_normalization_{number + 1}/gamma"] < 0, -1, 1).astype(np.float32)
    kernel = weights[f"{name}/kernel"].transpose(3, 2, 0, 1) * sign[:, None, None, None]
    n_more = -len(sign) % _BLOCK
    return (
        np.pad(kernel, ((0, n_more), (0, 0), (0, 0), (0, 0))),
        np.pad(weights[f"{name}/bias"] * sign, (0, n_more)),
        sign,
    )


def _build(weights: Mapping[str, Float32Array]) -> bytes:
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise LibraryError(f"musicnn's weights need the package onnx. Run: {extras.install_command('ear')}") from error
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, array: Any) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(kind: str, inputs: list[str], output: str, **options: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **options))
        return output

    def normalize(x: str, number: int) -> str:
        name = f"batch_normalization_{number}" if number else "batch_normalization"
        values = [
            constant(f"{name}/{part}", weights[f"{name}/{part}"])
            for part in ("gamma", "beta", "moving_mean", "moving_variance")
        ]
        return add("BatchNormalization", [x, *values], f"{name}_out", epsilon=_EPSILON)

    def convolve(x: str, number: int) -> str:
        """Convolve the channels of a layer over time, rectify and normalize."""
        name = f"conv2d_{number}"
        kernel = weights[f"{name}/kernel"][:, :, 0].transpose(2, 1, 0)  # stored as (time, inputs, 1, outputs)
        inputs = [x, constant(f"{name}/kernel", kernel), constant(f"{name}/bias", weights[f"{name}/bias"])]
        return normalize(add("Relu", [add("Conv", inputs, f"{name}_sum", pads=[3, 3])], f"{name}_out"), number + 1)

    def loudest_band(x: str, number: int, before: int, after: int) -> str:
        """Convolve an image, rectify and normalize it, and return the maximum over bands, (n, channels, time)."""
        name, (kernel, bias, sign) = f"conv2d_{number}", _turn_kernel(weights, number)
        inputs = [x, constant(f"{name}/kernel", kernel), constant(f"{name}/bias", bias)]
        convolved = add("Conv", inputs, f"{name}_sum", pads=[before, 0, after, 0])
        # first, because it leaves few numbers: to rectify and normalize all takes as long as to convolve them
        pooled = add("MaxPool", [convolved], f"{name}_pooled", kernel_shape=[1, N_BANDS - kernel.shape[3] + 1])
        channels = constant(f"{name}/channels", np.arange(len(sign)))
        loudest = add("Squeeze", [add("Gather", [pooled, channels], f"{name}_all", axis=1), "bands"], f"{name}_loudest")
        turned = add("Mul", [loudest, constant(f"{name}/sign", sign[:, None])], f"{name}_turned")
        return normalize(add("Relu", [turned], f"{name}_out"), number + 1)

    def multiply(x: str, name: str, output: str) -> str:
        values = [constant(f"{name}/{part}", weights[f"{name}/{part}"]) for part in ("kernel", "bias")]
        return add("Gemm", [x, *values], output)

    expanded = add("Unsqueeze", ["patches", constant("one", np.array([1]))], "image")
    normalized = normalize(expanded, 0)
    constant("bands", np.array([3]))
    timbre = [loudest_band(normalized, number, 3, 3) for number in (0, 1)]
    # TensorFlow pads even kernels with one more zero at the end
    sizes = {2: 128, 3: 64, 4: 32}
    rhythm = [loudest_band(normalized, number, size // 2 - 1, size // 2) for number, size in sizes.items()]
    layers = [add("Concat", [*timbre, *rhythm], "front", axis=1)]
    for number in (5, 6, 7):
        layer = convolve(layers[-1], number)
        layers.append(layer if number == 5 else add("Add", [layer, layers[-1]], f"layer_{number}"))
    pooled = add("Concat", layers, "pooled", axis=1)
    mean = add("ReduceMean", [pooled], "mean", axes=[2], keepdims=1)
    loudest = add("ReduceMax", [pooled], "maximum", axes=[2], keepdims=1)
    add("Flatten", [add("Concat", [mean, loudest], "both", axis=1)], "pools")
    # the dense layer reads the maximum and the mean of one channel after the other
    flat = normalize(add("Flatten", [add("Concat", [loudest, mean], "pairs", axis=2)], "flat"), 9)
    penultimate = normalize(add("Relu", [multiply(flat, "dense", "dense_sum")], "dense_out"), 10)
    add("Identity", [penultimate], "penultimate")
    add("Sigmoid", [multiply(penultimate, "dense_1", "logits")], "tags")
    add("Concat", ["pools", "tags"], OUTPUT, axis=1)
    outputs = {OUTPUT: 2 * N_POOLED + len(TAGS), "penultimate": 200}
    graph = helper.make_graph(
        nodes,
        "musicnn",
        [helper.make_tensor_value_info("patches", TensorProto.FLOAT, ["n", N_FRAMES, N_BANDS])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in outputs.items()],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
    return bytes(model.SerializeToString())


def read_checkpoint(index: bytes, data: bytes) -> dict[str, Float32Array]:
    """Return the float32 arrays of a checkpoint, keyed by name; raises ValueError if it is damaged.

    The index is a table in LevelDB's format (https://github.com/google/leveldb/blob/main/doc/table_format.md), which
    maps the names of arrays to messages of the type BundleEntryProto. The data file contains the arrays. Neither is
    trusted.
    """
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
