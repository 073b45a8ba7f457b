"""Models with vectors from other programs: read from a file, or computed by running an ONNX model on the library."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="embeddings",
    commands={
        "models add-embedding": Command("cli:add_embedding", "Make a model from another program's vectors."),
        "models add-onnx": Command(
            "cli:add_onnx", "Run an ONNX model on all songs, and make a model from the resulting vectors."
        ),
    },
    sections=(Section("models", "page:draw", title="Your own vectors"),),
    hooks={"representations": "encoder:REPRESENTATIONS"},
)
