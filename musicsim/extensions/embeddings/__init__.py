"""Models with vectors from other programs: read from a file, or computed by running an ONNX model on the library."""

from musicsim.hooks import Command, Extension, Job, Section

EXTENSION = Extension(
    name="embeddings",
    commands={
        "models add-embedding": Command("cli:add_embedding", "Make a model from another program's vectors."),
        "models add-onnx": Command(
            "cli:add_onnx", "Run an ONNX model on all songs, and make a model from the resulting vectors."
        ),
        "models add-ear": Command("ear_cli:add_ear", "Describe all songs with an audio network, together with Sound."),
        "models add-text": Command("ear_cli:add_text", "Find songs by texts, with an audio and a text network (CLAP)."),
    },
    jobs={
        "ear": Job("adding:run_ear_job", "Adding a learned ear", unit="song"),
        "text": Job("adding:run_text_job", "Adding a search by sound", unit="song"),
    },
    sections=(
        Section("models", "page:draw", title="Your own vectors"),
        Section("models", "ear_page:draw", title="A learned ear"),
    ),
    hooks={
        "representations": "representations:REPRESENTATIONS",
        "audio_networks": "networks:LibraryEars",
        "after_snapshot": "ear_start:start_ear",
        "text_ranking": "text_networks:rank_by_text",
    },
)
