"""Small ONNX models of sound with vectors known in closed form."""

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, save

_FLOAT, _OPSET, _IR = TensorProto.FLOAT, 17, 8


def write_onnx(path: Path, shape=("n", "samples"), *, frames: int = 0, nodes=(), outputs=("vectors",), **kinds) -> Path:
    """Write a model that returns the mean and the maximum of the absolute samples.

    The statistics are of all samples or of `frames` parts. `shape` is that of the input. Further nodes, outputs and the
    type of the input (`kind`) vary the model.
    """
    inner = [max(1, frames), -1]
    graph = [
        helper.make_node("Cast", ["sound"], ["samples"], to=_FLOAT),
        helper.make_node("Reshape", ["samples", "shape"], ["framed"]),
        helper.make_node("Abs", ["framed"], ["loud"]),
        helper.make_node("ReduceMean", ["loud"], ["mean"], axes=[-1], keepdims=1),
        helper.make_node("ReduceMax", ["loud"], ["max"], axes=[-1], keepdims=1),
        helper.make_node("Concat", ["mean", "max"], ["both"], axis=-1),
    ]
    rank = len(shape)
    to_shape = inner if rank == 1 else [0, *inner]
    if rank == 1 or frames:
        graph.append(helper.make_node("Identity", ["both"], ["vectors"]))
    else:
        graph.append(helper.make_node("Squeeze", ["both", "axis"], ["vectors"]))
    constants = [
        helper.make_tensor("shape", TensorProto.INT64, [len(to_shape)], to_shape),
        helper.make_tensor("axis", TensorProto.INT64, [1], [1]),
    ]
    made = helper.make_graph(
        [*graph, *nodes],
        "loudness",
        [helper.make_tensor_value_info("sound", kinds.get("kind", _FLOAT), shape)],
        [helper.make_tensor_value_info(name, _FLOAT, None) for name in outputs],
        constants,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
    save(model, path)
    return path


def loudness(windows: np.ndarray, frames: int = 1) -> np.ndarray:
    """Return the vectors that the model computes for windows (n, samples)."""
    parts = np.abs(windows.astype(np.float64)).reshape(len(windows), frames, -1)
    return np.stack([parts.mean(axis=2), parts.max(axis=2)], axis=-1).mean(axis=(0, 1))
