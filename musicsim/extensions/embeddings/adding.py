"""Functions that make models from other programs' vectors and from ONNX models."""

from pathlib import Path

from musicsim.errors import ModelError
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.extensions.embeddings.encoder import OWN
from musicsim.extensions.embeddings.onnx_models import OnnxModel, compute_vectors
from musicsim.extensions.embeddings.store import AboutEmbedding, EmbeddingStore, Matched
from musicsim.library import Library
from musicsim.library.disk.csv_cells import shorten_problems
from musicsim.progress import Progress
from musicsim.wording import count


def add_own_vectors(library: Library, file: Path, name: str, progress: Progress) -> tuple[str, AboutEmbedding, Matched]:
    """Import a file of vectors, and make a model called `name` that compares them by cosine similarity."""
    return _add(library, EmbeddingStore(library).keep(file), name, progress)


def add_onnx(library: Library, onnx: OnnxModel, name: str, progress: Progress) -> tuple[str, AboutEmbedding, Matched]:
    """Run an ONNX model on a library's songs, and make a model from its vectors; resume an interrupted run."""
    with library.exclusive("running a model on the songs"):
        described = compute_vectors(library, onnx, progress)
    if not described.hashes:
        reason = described.problems[0] if described.problems else "add some songs first."
        raise ModelError(f"{onnx.path.name}: no song in this library got a vector: {reason}")
    about = EmbeddingStore(library).keep_vectors(
        described.hashes,
        described.vectors,
        onnx.path.name,
        shorten_problems(described.problems),
        described.model.summary,
    )
    return _add(library, about, name, progress)


def _add(library: Library, about: AboutEmbedding, name: str, progress: Progress) -> tuple[str, AboutEmbedding, Matched]:
    settings = RepresentationSettings(OWN, vectors=about.key, label=about.label)
    model_id = add_representation(library, settings, name, progress)
    return model_id, about, EmbeddingStore(library).match(about.key)


def describe_matches(about: AboutEmbedding, matched: Matched) -> str:
    text = (
        f"{about.label} contains {count(about.n_rows, 'vector')} with {count(about.n_dimensions, 'dimension')}: "
        f"{len(matched.song_ids):,} for songs in this library, {matched.n_unmatched:,} for other songs"
    )
    text += f", and {matched.n_double:,} for songs that already have a vector" if matched.n_double else ""
    if matched.unmatched:
        text += f" ({', '.join(matched.unmatched[:3])}{', …' if matched.n_unmatched > 3 else ''})"
    return f"{text}. {about.note}".rstrip()
