"""Functions and jobs that make models from other programs' vectors and from ONNX models."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from musicsim.errors import ModelError, StorageError
from musicsim.explorer import (
    FIRST_MAP,
    JOINED_KIND,
    JobProgress,
    RepresentationSettings,
    Snapshot,
    add_representation,
    free_name,
    jobs,
    join_models,
    stale_reason,
)
from musicsim.extensions.embeddings import musicnn
from musicsim.extensions.embeddings.networks import OnnxModel, compute_vectors, try_audio, try_network
from musicsim.extensions.embeddings.representations import (
    EAR,
    OWN,
    OWN_EUCLIDEAN,
    Distance,
    Network,
    TextNetwork,
    keep_network,
)
from musicsim.extensions.embeddings.vectors import AboutEmbedding, EmbeddingStore, Matched
from musicsim.library import NATIVE_KIND, Library, ModelRecord, shorten_problems
from musicsim.progress import Progress
from musicsim.wording import count

_MAX_TRIES = 3  # a job whose process crashes is not started for ever


def add_own_vectors(
    library: Library, file: Path, name: str, progress: Progress, *, distance: Distance = Distance.COSINE
) -> tuple[str, AboutEmbedding, Matched]:
    """Import a file of vectors, and make a model called `name` that compares them by a distance."""
    return _add(
        library,
        EmbeddingStore(library).keep(file),
        name,
        progress,
        OWN_EUCLIDEAN if distance == Distance.EUCLIDEAN else OWN,
    )


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


def _add(
    library: Library, about: AboutEmbedding, name: str, progress: Progress, representation: str = OWN
) -> tuple[str, AboutEmbedding, Matched]:
    settings = RepresentationSettings(representation, vectors=about.key, label=about.label)
    model_id = add_representation(library, settings, name, progress)
    return model_id, about, EmbeddingStore(library).match(about.key)


def add_ear(
    library: Library, file: Path, progress: Progress, *, front_end: str = "", output: str = "", every: int = 6,
    model_name: str = "", use: bool | None = True,
) -> tuple[str, str]:  # fmt: skip
    """Describe all songs with an audio network, and join it with the model Sound; return the ids of both models.

    `file` is the package musicnn, or an ONNX network whose input is the mel spectrogram called `front_end`. `use` makes
    the model of both active; None does so only if Sound is active when the network has described all songs. An
    interrupted run resumes, and models that a former call added are kept. Raises ModelError if the network cannot be
    read, or fails.
    """
    native = _check_songs(library)
    label = file.name
    with tempfile.TemporaryDirectory() as folder:
        tags: tuple[str, ...] = ()
        if musicnn.is_musicnn(file):
            progress(f"reading {file.name}")
            converted = Path(folder) / "musicnn.onnx"
            converted.write_bytes(musicnn.convert(file))
            file, front_end, output, tags = converted, "musicnn", musicnn.OUTPUT, musicnn.TAGS
            model_name = model_name or "MusiCNN"
        elif not front_end:
            raise ModelError(f"{label}: choose the front end that this network was trained with.")
        with library.exclusive("reading a network"):
            model, width = try_audio(library, OnnxModel.on_patches(file, front_end, output, every), progress)
            key = keep_network(library, model, width, label, tags)
    ear = _find_ear(library, key, model_name) or library.models.get(
        add_representation(
            library, RepresentationSettings(EAR, vectors=key, label=label),
            free_name(library, model_name or Path(label).stem), progress,
        )
    )  # fmt: skip
    use = library.models.get().kind == NATIVE_KIND if use is None else use
    joined = _find_joined(library, native, ear)
    if joined is None or stale_reason(library, joined) is not None:
        sources = [native.name, ear.name]
        name = free_name(library, " and ".join(sources)) if joined is None else joined.name
        return ear.id, join_models(library, sources, name, progress, use=use)
    if use:
        library.models.activate(joined.id)
    return ear.id, joined.id


def _check_songs(library: Library) -> ModelRecord:
    """Return the model Sound; raises ModelError if there are no songs to describe."""
    native = library.models.native()
    if native is None:
        raise ModelError("this library has no songs to describe yet: add a folder first.")
    return native


def _find_ear(library: Library, key: str, name: str) -> ModelRecord | None:
    """Return the model of a network alone, with this name if one is given."""
    return next(
        (record for record in list_ears(library) if record.settings["vectors"] == key and name in ("", record.name)),
        None,
    )


def _find_joined(library: Library, *sources: ModelRecord) -> ModelRecord | None:
    """Return the model that joins these sources, or sources of the same names that were replaced since."""
    names, ids = [source.name for source in sources], [source.id for source in sources]
    joined = (record for record in library.models.all() if record.kind == JOINED_KIND)
    return next((r for r in joined if r.settings["sources"] == names or r.settings["model_ids"] == ids), None)


def add_text(
    library: Library, audio: Path | str, text: Path | str, tokenizer: Path | str, progress: Progress, *,
    every: int = 3, model_name: str = "",
) -> str:  # fmt: skip
    """Describe all songs with the audio network of a CLAP pair, and keep its text network; return the model's id.

    An interrupted run resumes. Raises ModelError or LibraryError if a file cannot be used, or the networks do not fit.
    """
    _check_songs(library)
    with library.exclusive("reading two networks"):
        audio, text = Path(audio), Path(text)
        network = TextNetwork.at(text, Path(tokenizer))
        n_text = try_network(library, network, progress)
        model, n_audio = try_audio(library, OnnxModel.on_patches(audio, "clap", every=every), progress)
        if n_text != n_audio:
            raise ModelError(
                f"{audio.name} gives vectors of {n_audio:,} numbers, but {text.name} gives {n_text:,}. "
                "Use two networks of one pair."
            )
        key = keep_network(library, model, n_audio, audio.name)
        network.keep(Network(library.folder, key).folder)
    name = free_name(library, model_name or audio.stem)
    return add_representation(library, RepresentationSettings(EAR, vectors=key, label=audio.name), name, progress)


def run_ear_job(library: Library, *, path: str = "", progress: JobProgress, **options: Any) -> None:
    """Run :func:`add_ear` as a job, and delete the file if it was uploaded.

    Without a path, the network is MusiCNN, which is downloaded if it is not installed.
    """
    _check_songs(library)  # before a download
    file = Path(path) if path else musicnn.find_weights() or musicnn.install_weights(progress)
    _, joined_id = add_ear(library, file, progress, **options)
    joined = library.models.get(joined_id)
    progress.outcome = (
        f"{joined.name} is now in use. To return to Sound, choose it on the Teach page, under Models."
        if joined.is_active
        else f"{joined.name} was added."
    )
    if file.parent == uploads_of(library):
        file.unlink(missing_ok=True)


def list_ears(library: Library) -> list[ModelRecord]:
    """Return the models of audio networks alone."""
    return [record for record in library.models.all() if record.settings.get("representation") == EAR]


def uploads_of(library: Library) -> Path:
    """Return the folder for networks that were uploaded and wait for their job."""
    return library.folder / "cache" / "networks"


def describe_matches(about: AboutEmbedding, matched: Matched) -> str:
    text = (
        f"{about.label} contains {count(about.n_rows, 'vector')} with {count(about.n_dimensions, 'dimension')}: "
        f"{len(matched.song_ids):,} for songs in this library, {matched.n_unmatched:,} for other songs"
    )
    text += f", and {matched.n_double:,} for songs that already have a vector" if matched.n_double else ""
    if matched.unmatched:
        text += f" ({', '.join(matched.unmatched[:3])}{', …' if matched.n_unmatched > 3 else ''})"
    return f"{text}. {about.note}".rstrip()


def start_ear(snapshot: Snapshot) -> None:
    """Start the job that adds MusiCNN, if it is installed, once per library that has a map.

    The job runs after the running jobs, and does not replace a model that the user has chosen.
    """
    library = snapshot.library
    if (
        os.environ.get("MUSICSIM_EAR") != "0"
        and library.settings["learned_ear"]
        and snapshot.n_indexed >= FIRST_MAP
        and musicnn.find_weights() is not None
        and _is_untried(library)
    ):
        with suppress(StorageError):  # the library is read-only
            jobs.start(library, "ear", {"use": None})


def _is_untried(library: Library) -> bool:
    """Return whether there is no ear, and no job has tried to add one; interrupted jobs do not count at first."""
    states = [job.state for job in library.jobs.recent(_MAX_TRIES, "ear")]
    if len(states) == _MAX_TRIES or any(state != "interrupted" for state in states):
        return False
    # a restored library has models, but no jobs
    return not list_ears(library)
