"""Models with vectors from other programs: read from a file, or computed by running an ONNX model on the library."""

from musicsim.hooks import Command, Extension, JobKind, Section

EXTENSION = Extension(
    name="embeddings",
    commands={
        "models add-embedding": Command("cli:add_embedding", "Make a model from another program's vectors."),
        "models add-onnx": Command(
            "cli:add_onnx", "Run an ONNX model on all songs, and make a model from the resulting vectors."
        ),
        "models add-ear": Command("cli:add_ear", "Describe all songs with an audio network, together with Sound."),
        "models add-text": Command("cli:add_text", "Find songs by texts, with an audio and a text network (CLAP)."),
    },
    jobs={
        "ear": JobKind("adding:run_ear_job", "Adding a learned ear", unit="song"),
        "text": JobKind("adding:add_text", "Adding a search by sound", unit="song"),
    },
    sections=(
        Section("models", "page:draw", title="Your own vectors"),
        Section("train", "page:draw_ear", title="Better ear", tab="ear", place=25),
    ),
    representations="representations:REPRESENTATIONS",
    hooks={
        "audio_networks": "representations:LibraryEars",
        "after_snapshot": "adding:start_ear",
        "text_ranking": "representations:rank_by_text",
    },
)
