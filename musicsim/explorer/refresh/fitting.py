"""Fit models without supervision (built-in models and other representations), and publish them in the library."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from musicsim import gaussians
from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import SongFrames
from musicsim.explorer import jobs
from musicsim.explorer.models.artifacts import save_report
from musicsim.explorer.models.encoders import CodewordEncoder, EncoderSettings, FrameEncoder, SoundEncoder
from musicsim.explorer.models.representations import CODEWORDS, representations
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.models.song_features import feature_blocks
from musicsim.explorer.playlists.fit import fit_walk
from musicsim.explorer.playlists.song_labels import read_words
from musicsim.explorer.refresh.placing import SEED, follow_owner, save_clusters_and_map, songs_with_frames
from musicsim.library import CODEWORDS_KIND, NATIVE_KIND, Library, ModelRecord, Song, on_all_cores
from musicsim.library.stores.models import MAX_NAME
from musicsim.library.stores.song_gaussians import part_gaussians, part_length, shape_gaussian
from musicsim.progress import Progress
from musicsim.wording import add_number

NATIVE, CODEWORDS_NAME = "Sound", "Codewords"
REPRESENTATION_KIND = "representation"
SONGS_FOR_AXES = 20_000  # maximum number of songs to which axes are fitted; their features take 141 MB under Sound
_MAX_SONGS = 1_000  # maximum number of songs from which the variation within songs is measured


def publish(
    library: Library,
    model: SimilarityModel,
    record: ModelRecord,
    *,
    fill: Callable[[], None],
    progress: Progress,
    report: Mapping[str, Any] | None = None,
    walk: bool = True,
    activate: bool = False,
) -> str:
    """Write a fitted model with everything that depends on it, and return its id.

    `record` comes from :func:`new_record`. `fill` adds the vectors of songs after the model is registered. `report` has
    JSON values for the model's card. `walk` also fits the playlist walk, and `activate` makes the model active. The
    model becomes visible in the last step. The caller must hold the library's lock, and must always call
    ``models.discard_unfinished`` afterwards.
    """
    folder = library.models.path(record.id)
    model.save(folder)
    if report:
        save_report(folder, report)
    library.models.register(record)
    fill()
    save_clusters_and_map(library, record, progress)
    if walk:
        read_words(library, progress)
        fit_walk(library, record.id, progress)
    library.models.finish(record.id, activate=activate)
    return record.id


@dataclass(frozen=True, slots=True)
class SongParts:
    """Statistics of the parts of a song, and of its spectral shape."""

    timbre: gaussians.SongGaussians  # one Gaussian per part, over the 39 columns of frames
    fluctuation: Float32Array  # (n_parts, 594): mean fluctuation pattern of each part
    shape: gaussians.SongGaussians  # of the whole song, over the 25 coefficients of spectra


def song_parts(library: Library, songs: Sequence[Song], progress: Progress) -> list[SongParts]:
    """Return the parts of a seeded sample of songs of the current feature version; they take 70 MB for 1,000 songs."""
    sample = np.sort(np.random.default_rng(SEED).permutation(len(songs))[:_MAX_SONGS]).tolist()
    hashes = (songs[i].content_hash for i in sample)
    parts: list[SongParts] = []
    with closing(on_all_cores(lambda digest: parts_of(library.frame_files.frames(digest)), hashes)) as results:
        for _ in sample:
            if len(parts) % 16 == 0:
                progress("comparing parts of songs", len(parts), len(sample))
            parts.append(next(results))
    return parts


def parts_of(frames: SongFrames) -> SongParts:
    """Split a song into parts of length :func:`part_length`, and return the statistics."""
    timbre, length = part_gaussians(frames), part_length(len(frames))
    patterns = [frames.part(i * length, (i + 1) * length).mean_fluctuation for i in range(len(timbre))]
    return SongParts(timbre, np.array(patterns), shape_gaussian(frames))


def fit_sound(songs: Sequence[SongParts], *, use_prior: bool = True) -> tuple[SoundEncoder, list[Float64Array]]:
    """Return the encoder of the model Sound, and covariances within songs for timbre and for fluctuation.

    `use_prior` adds musicsim's stored statistics of music, for small libraries. Pass the covariances to
    :meth:`SimilarityModel.fit_space`.
    """
    prior = gaussians.load_prior() if use_prior else None
    frames, spectra = (prior.frames, prior.spectra) if prior else (None, None)
    timbre, within_timbre = gaussians.fit_embedding([song.timbre for song in songs], frames)
    shapes = gaussians.SongGaussians.concatenate([song.shape for song in songs])
    shape = gaussians.GaussianEmbedding(prior=spectra).fit(shapes)
    song_of = np.repeat(np.arange(len(songs)), [len(song.fluctuation) for song in songs])
    patterns = np.concatenate([song.fluctuation for song in songs])
    return SoundEncoder(timbre, shape), [within_timbre, gaussians.pool_covariance(patterns, song_of)]


def songs_to_describe(library: Library, representation: str) -> list[Song]:
    """Return the songs that a representation can use: those with frames if it needs frames, otherwise all songs."""
    if issubclass(representations()[representation].encoder, FrameEncoder):
        return songs_with_frames(library, library.songs())
    return sorted(library.songs(), key=lambda song: song.content_hash)


@dataclass(frozen=True, slots=True)
class RepresentationSettings(EncoderSettings):
    """Settings for a new model of a chosen representation."""

    def __post_init__(self) -> None:
        kind = representations().get(self.representation)
        if kind is None or kind.is_built_in:
            names = ", ".join(name for name, other in representations().items() if not other.is_built_in)
            raise ValueError(f"representation={self.representation!r} must be one of {names}.")

    @property
    def name(self) -> str:
        """Default name of the model."""
        if self.label:
            return self.label.rpartition(".")[0] or self.label
        if self.representation not in CODEWORDS:
            return self.representation
        return f"{self.representation}, {self.n_codewords} codewords, tau {self.tau}"


def new_record(
    kind: str, name: str, model: SimilarityModel, n_songs: int, *, base_id: str | None = None, **settings: Any
) -> ModelRecord:
    """Return a record with a new id for a model."""
    return ModelRecord(
        id=f"{kind}-{uuid.uuid4().hex[:8]}",
        name=name,
        created_at=time.time(),
        n_songs_fitted=n_songs,
        n_features=model.n_features,
        n_dimensions=model.n_dimensions,
        kind=kind,
        base_id=base_id,
        settings=settings,
    )


def fit_native(library: Library, songs: Sequence[Song], progress: Progress) -> None:
    """Fit a new model Sound on the songs; it replaces the previous one everywhere."""
    encoder, within = fit_sound(song_parts(library, songs, progress))
    model = SimilarityModel(SOUND, random_state=SEED).use_encoder(encoder)
    is_first = library.models.active() is None
    # the refresh fits the walks of all models later, when duplicates are known
    _fit_rest(library, model, songs, NATIVE_KIND, NATIVE, {}, progress, within=within, walk=False, activate=is_first)


def fit_codewords(library: Library, songs: Sequence[Song], progress: Progress) -> None:
    """Fit a new codeword model on the songs; it replaces the previous one everywhere."""
    _, encoder = CodewordEncoder.fit(library, songs, EncoderSettings(), progress)
    model = SimilarityModel(random_state=SEED).use_encoder(encoder)
    previous = library.models.codewords()
    name = previous.name if previous is not None else free_name(library, CODEWORDS_NAME)
    _fit_rest(library, model, songs, CODEWORDS_KIND, name, {}, progress, walk=False)


def free_name(library: Library, wanted: str) -> str:
    """Return `wanted`; add a number if a model already has this name, or if a job will create one with this name."""
    names = {record.name for record in library.models.all()}
    names |= {job.arguments.get("name", "") for job in jobs.active(library)}
    wanted = " ".join(wanted.split())[: MAX_NAME - 5] or "my model"
    return add_number(wanted, names)


def fit_representation(
    library: Library, songs: Sequence[Song], settings: RepresentationSettings, name: str, progress: Progress
) -> str:
    """Fit a new model of a chosen representation on the results of :func:`songs_to_describe`; return its id.

    A model with the codebook size and tau of the built-in codeword model shares its codebook and histograms.
    Raises ModelError or LibraryError if the library lacks data for the representation.
    """
    model = SimilarityModel(settings.representation, settings.n_codewords, settings.tau, random_state=SEED)
    built_in = library.models.codewords()
    if built_in is not None and settings.representation in CODEWORDS:
        plain = SimilarityModel.load(library.models.path(built_in.id))
        if (plain.n_codewords, plain.tau) == (settings.n_codewords, settings.tau):
            histograms = library.models.features(built_in.id).X
            model.use_encoder(plain.encoder_).fit_space(histograms[:SONGS_FOR_AXES])
            record = new_record(
                REPRESENTATION_KIND, name, model, len(histograms), base_id=built_in.id, **asdict(settings)
            )
            return publish(library, model, record, fill=lambda: follow_owner(library, record), progress=progress)
    songs, encoder = model.kind.encoder.fit(library, songs, settings, progress)
    return _fit_rest(library, model.use_encoder(encoder), songs, REPRESENTATION_KIND, name, asdict(settings), progress)


def _fit_rest(
    library: Library,
    model: SimilarityModel,
    songs: Sequence[Song],
    kind: str,
    name: str,
    settings: dict[str, Any],
    progress: Progress,
    *,
    within: Sequence[Float64Array] | None = None,
    walk: bool = True,
    activate: bool = False,
) -> str:
    order = [songs[i] for i in np.random.default_rng(SEED).permutation(len(songs))]
    first, rest = order[:SONGS_FOR_AXES], order[SONGS_FOR_AXES:]
    first_features = np.concatenate([f for _, f in feature_blocks(library, model, first, progress)])
    model.fit_space(first_features, within)
    record = new_record(kind, name, model, len(songs), **settings)

    def fill() -> None:
        library.models.append(record.id, [s.id for s in first], first_features, model.vectors(first_features))
        for block, features in feature_blocks(library, model, rest, progress):
            library.models.append(record.id, [s.id for s in block], features, model.vectors(features))

    return publish(library, model, record, fill=fill, progress=progress, walk=walk, activate=activate)
