"""Models with vectors from other programs: from a file, or from an ONNX model that runs on the library."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="embeddings",
    needs=("onnxruntime",),
    commands={
        "models add-embedding": Command(
            "cli:add_embedding", "Make a model from another program's vectors, for searching and training."
        ),
        "models add-onnx": Command(
            "cli:add_onnx",
            "Run an ONNX model on all songs, and make a model from its vectors, for searching and training.",
        ),
    },
    sections=(Section("train", "Vectors of your own", "page:draw"),),
    hooks={"representations": "encoder:REPRESENTATIONS"},
)
