"""Vectors from elsewhere as models: a file of the user's own, or an ONNX network that runs over the library."""

from musicsim.hooks import Extension

EXTENSION = Extension(name="embeddings", needs=("onnxruntime",))
