"""Vectors from elsewhere as models: a file of the user's own, or an ONNX network that runs over the library."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="embeddings",
    needs=("onnxruntime",),
    commands={
        "models add-embedding": Command(
            "cli:add_embedding", "Make a model from vectors of another program, to search with and to train on."
        ),
        "models add-onnx": Command(
            "cli:add_onnx",
            "Run somebody's ONNX model over all songs, and make a model of its vectors, to search with and to train "
            "on.",
        ),
    },
    sections=(Section("train", "Vectors of your own", "page:draw"),),
    hooks={"representations": "encoder:REPRESENTATIONS"},
)
