"""Make models of vectors from other programs, and of ONNX networks."""

from pathlib import Path

from musicsim.errors import ModelError
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.extensions.embeddings.encoder import OWN
from musicsim.extensions.embeddings.onnx_models import OnnxModel, describe_songs
from musicsim.extensions.embeddings.store import AboutEmbedding, EmbeddingStore, Matched
from musicsim.library import Library
from musicsim.library.disk.csv_cells import shortened
from musicsim.progress import Progress


def add_own_vectors(library: Library, file: Path, name: str, progress: Progress) -> tuple[str, AboutEmbedding, Matched]:
    """Import a file of vectors that another program made, and make a model of it.

    Parameters
    ----------
    file : Path
        See :mod:`musicsim.extensions.embeddings.files` for its format.
    name : str
        Of the model.

    Returns
    -------
    model_id : str
    about : AboutEmbedding
    matched : Matched

    Raises
    ------
    LibraryError
        If the file cannot be read.
    ModelError
        If none of it is of a song of this library.
    StoreLockedError
        If another process is adding to this library.

    Notes
    -----
    Vectors are scaled to length 1: distances are those of the cosine, scaled so that they read as those of other
    models do.
    """
    return _add(library, EmbeddingStore(library).keep(file), name, progress)


def add_onnx(library: Library, onnx: OnnxModel, name: str, progress: Progress) -> tuple[str, AboutEmbedding, Matched]:
    """Run somebody's ONNX model over the songs of a library, store its vectors, and make a model of them.

    A run that was stopped continues with the same file and settings; so does one that is started again after songs
    were added.

    Returns
    -------
    model_id : str
    about : AboutEmbedding
        Its problems are the songs that have no vector, and why.
    matched : Matched

    Raises
    ------
    ModelError
        If the file cannot be run over sound, or gives no song a vector.
    LibraryError
        If the file cannot be read, or onnxruntime is not installed.
    StoreLockedError
        If another process is adding to this library.
    """
    with library.exclusive("running a model over the songs"):
        described = describe_songs(library, onnx, progress)
    if not described.hashes:
        why = described.problems[0] if described.problems else "add some songs first."
        raise ModelError(f"{onnx.path.name}: no song of this library has a vector by it: {why}")
    about = EmbeddingStore(library).keep_vectors(
        described.hashes, described.vectors, onnx.path.name, shortened(described.problems), described.model.words
    )
    return _add(library, about, name, progress)


def _add(library: Library, about: AboutEmbedding, name: str, progress: Progress) -> tuple[str, AboutEmbedding, Matched]:
    settings = RepresentationSettings(OWN, vectors=about.key, label=about.label)
    model_id = add_representation(library, settings, name, progress)
    return model_id, about, EmbeddingStore(library).match(about.key)


def match_words(about: AboutEmbedding, matched: Matched) -> str:
    """Say how many vectors of a file are of songs of this library, and name some of the others."""
    words = (
        f"{about.n_rows:,} vectors of {about.n_dimensions:,} numbers in {about.label}: {len(matched.song_ids):,} are "
        f"of songs of this library, {matched.n_unmatched:,} of none"
    )
    words += f", {matched.n_double:,} of songs that have another" if matched.n_double else ""
    if matched.unmatched:
        words += f" ({', '.join(matched.unmatched[:3])}{', …' if matched.n_unmatched > 3 else ''})"
    return f"{words}. {about.note}".rstrip()
