"""Fitting models that no listener has taught anything: the built-in ones, and other representations of sound."""

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from musicsim import mixtures
from musicsim._arrays import Float32Array, Float64Array
from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.models.encoders import (
    ASPECTS,
    FRAMES,
    LYRICS,
    TAGS,
    VECTORS,
    AspectEncoder,
    LyricEncoder,
    MixtureEncoder,
    SemanticEncoder,
    TagEncoder,
    VectorEncoder,
)
from musicsim.explorer.models.representations import CODEWORDS, OFFERED, OWN, REPRESENTATIONS
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.models.song_features import feature_blocks
from musicsim.explorer.progress import Tell
from musicsim.explorer.refresh.placing import SEED, follow_owner, songs_with_frames
from musicsim.explorer.refresh.publish import publish
from musicsim.explorer.refresh.sound import fit_sound, song_parts
from musicsim.extensions.embeddings.store import EmbeddingStore
from musicsim.extensions.lyrics.reading import read_lyrics
from musicsim.library import Library, Song
from musicsim.library.stores.models import CODEWORDS_KIND, MAX_NAME, NATIVE_KIND, ModelRecord

NATIVE, CODEWORDS_NAME = "Sound", "Codewords"
REPRESENTATION_KIND = "representation"
_TRAINING_FRAMES = 200_000  # 31 MB; 195 a codeword at 1,024 codewords
_MIN_FRAMES_A_SONG = 50  # beyond 4,000 songs a seeded sample of the songs is used
SONGS_FOR_AXES = 20_000  # 113 MB of features of Sound
_SONGS_FOR_MIXTURES = 1_000
_MAX_TAGS, _MAX_WORDS = 300, 1_000
_MIN_SONGS_A_TAG = 2


def songs_to_describe(library: Library, representation: str) -> list[Song]:
    """Songs that a representation may describe: where it listens those with frames, else all."""
    if REPRESENTATIONS[representation].encoder.needs == FRAMES:
        return songs_with_frames(library, library.songs())
    return sorted(library.songs(), key=lambda song: song.content_hash)


@dataclass(frozen=True, slots=True)
class RepresentationSettings:
    """A representation to compare with."""

    representation: str = "ppk"  # by its name in `REPRESENTATIONS`
    # of those that are made of codewords
    n_codewords: int = 1024
    tau: int = 4
    vectors: str = ""  # of vectors of the listener's own, the key of EmbeddingStore
    label: str = ""  # what these are called

    def __post_init__(self) -> None:
        if self.representation not in (*OFFERED, OWN):
            raise ValueError(f"representation={self.representation!r} should be one of {', '.join((*OFFERED, OWN))}.")

    @property
    def name(self) -> str:
        """What the model is called unless a person names it."""
        if self.representation == OWN:
            return self.label.rpartition(".")[0] or self.label
        if self.representation not in CODEWORDS:
            return self.representation
        return f"{self.representation}, {self.n_codewords} codewords, tau {self.tau}"


def new_record(
    kind: str, name: str, model: SimilarityModel, n_songs: int, *, base_id: str | None = None, **settings: Any
) -> ModelRecord:
    """A record of a model with an id of its own."""
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


def fit_native(library: Library, songs: Sequence[Song], tell: Tell) -> None:
    """Fit a new native model on the songs; it replaces the one before, and is used if that one was."""
    encoder, within = fit_sound(song_parts(library, songs, tell))
    model = SimilarityModel(SOUND, random_state=SEED).use_encoder(encoder)
    first_of_all = library.models.active() is None
    # the refresh fits the walks of all models, once it knows which songs are copies
    _fit_rest(library, model, songs, NATIVE_KIND, NATIVE, {}, tell, within=within, walk=False, activate=first_of_all)


def fit_codewords(library: Library, songs: Sequence[Song], tell: Tell) -> None:
    """Fit a new model of codewords on the songs; it replaces the one before, and is used if that one was."""
    model = SimilarityModel(random_state=SEED).fit_codebook(_sample_frames(library, songs, tell))
    before = library.models.codewords()
    name = before.name if before is not None else free_name(library, CODEWORDS_NAME)
    _fit_rest(library, model, songs, CODEWORDS_KIND, name, {}, tell, walk=False)


def free_name(library: Library, wanted: str) -> str:
    """The name, or the name with a number where it is taken."""
    taken = {record.name for record in library.models.all()}
    wanted = " ".join(wanted.split())[: MAX_NAME - 5] or "my model"
    numbered = (f"{wanted} {n}" for n in range(2, len(taken) + 3))
    return wanted if wanted not in taken else next(name for name in numbered if name not in taken)


def fit_representation(
    library: Library, songs: Sequence[Song], settings: RepresentationSettings, name: str, tell: Tell
) -> str:
    """Make a model of another representation, of :func:`songs_to_describe`; returns its id.

    Codewords of the size and tau of the built-in model of codewords are that model's, and so are the histograms.
    Raises ModelError or LibraryError if the library lacks what the representation is made of.
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
            return publish(library, model, record, fill=lambda: follow_owner(library, record), tell=tell)
    if model.kind.encoder.needs in _BESIDE:
        songs, model = _BESIDE[model.kind.encoder.needs](library, songs, model, settings, tell)
    elif settings.representation in CODEWORDS:
        model.fit_codebook(_sample_frames(library, songs, tell))
    else:
        model.use_encoder(_mixture_encoder(library, songs, settings.representation, tell))
    return _fit_rest(library, model, songs, REPRESENTATION_KIND, name, asdict(settings), tell)


def _mixture_encoder(
    library: Library, songs: Sequence[Song], representation: str, tell: Tell
) -> MixtureEncoder | SemanticEncoder:
    """An encoder by Gaussian mixtures, fitted on an even sample of the songs."""
    if representation == "semantic":
        tags = library.tags()
        songs = [song for song in songs if song.id in tags]
        if not songs:
            raise ModelError("no song of this library has a tag to learn words from: import tags first.")
    chosen = np.random.default_rng(SEED).permutation(len(songs))[:_SONGS_FOR_MIXTURES]
    some = [songs[i] for i in np.sort(chosen)]

    def frames() -> Iterator[Iterator[Float32Array]]:
        for done, song in enumerate(some):
            if done % 16 == 0:
                tell("fitting mixtures of Gaussians", done, len(some))
            yield library.frame_files.blocks(song.content_hash)

    if representation == "semantic":
        lists = [[tag for tag, _ in tags[song.id]] for song in some]
        return SemanticEncoder(mixtures.SemanticMultinomials(random_state=SEED).fit(frames(), lists))
    fitted = mixtures.fit_mixtures(frames(), random_state=SEED)
    return MixtureEncoder(mixtures.MixtureSpace(random_state=SEED).fit(fitted))


# --- what is beside the sound: songs that have it, and the model with its encoder -----------------


def _tagged(
    library: Library, songs: Sequence[Song], model: SimilarityModel, _settings: object, _tell: Tell
) -> tuple[list[Song], SimilarityModel]:
    """With the tags that at least two songs have."""
    tags = library.tags()
    counts: dict[str, int] = {}
    for song in songs:
        for tag, _ in tags.get(song.id, ()):
            counts[tag] = counts.get(tag, 0) + 1
    common = sorted((t for t, n in counts.items() if n >= _MIN_SONGS_A_TAG), key=lambda t: (-counts[t], t))
    vocabulary = TagEncoder(tuple(common[:_MAX_TAGS]))
    known = set(vocabulary.tags)
    tagged = [song for song in songs if any(tag in known for tag, _ in tags.get(song.id, ()))]
    if not tagged:
        raise ModelError(
            "no two songs of this library share a tag that people gave: import tags first (Library, Listening)."
        )
    return tagged, model.use_encoder(vocabulary)


def _with_lyrics(
    library: Library, songs: Sequence[Song], model: SimilarityModel, _settings: object, tell: Tell
) -> tuple[list[Song], SimilarityModel]:
    """With the words that most songs say, but for those that more than half of them do."""
    read_lyrics(library, tell=tell)
    table = library.lyrics.table(min_songs=_MIN_SONGS_A_TAG)
    n_songs = np.asarray((table.counts > 0).sum(axis=0)).ravel()
    chosen = np.sort(np.argsort(-n_songs, kind="stable")[:_MAX_WORDS])
    says = np.asarray((table.counts > 0)[:, chosen].sum(axis=1)).ravel() > 0
    known = set(table.song_ids[says].tolist())
    singing = [song for song in songs if song.id in known]
    if not singing:
        raise ModelError("no two songs of this library share a word: there are no lyrics in its files or next to them.")
    return singing, model.use_encoder(LyricEncoder(tuple(table.vocabulary[i] for i in chosen.tolist())))


def _with_aspect(
    library: Library, songs: Sequence[Song], model: SimilarityModel, settings: RepresentationSettings, _tell: Tell
) -> tuple[list[Song], SimilarityModel]:
    kept = library.frame_files.kept_aspects()
    described = [song for song in songs if song.content_hash in kept]
    if not described:
        raise FeatureVersionError(
            f"{library.folder}: harmony and rhythm of its songs were not stored. Turn on “Store audio "
            "features” (Library > Settings; keep_frames on the command line) and add the folders again."
        )
    return described, model.use_encoder(AspectEncoder(settings.representation))


def _with_vectors(
    library: Library, songs: Sequence[Song], model: SimilarityModel, settings: RepresentationSettings, _tell: Tell
) -> tuple[list[Song], SimilarityModel]:
    store = EmbeddingStore(library)
    matched = set(store.match(settings.vectors).song_ids.tolist())
    described = [song for song in songs if song.id in matched]
    about = store.about(settings.vectors)
    if not described:
        raise ModelError(
            f"none of the {about.n_rows:,} vectors of {about.label} is of a song of this library: songs are found by "
            f"id, by path, or by the hash of their file."
        )
    return described, model.use_encoder(VectorEncoder(about.key, about.n_dimensions))


_BESIDE = {TAGS: _tagged, LYRICS: _with_lyrics, ASPECTS: _with_aspect, VECTORS: _with_vectors}


def _fit_rest(
    library: Library,
    model: SimilarityModel,
    songs: Sequence[Song],
    kind: str,
    name: str,
    settings: dict[str, Any],
    tell: Tell,
    *,
    within: Sequence[Float64Array] | None = None,
    walk: bool = True,
    activate: bool = False,
) -> str:
    """Fit the space behind a fitted encoder and publish the model."""
    order = [songs[i] for i in np.random.default_rng(SEED).permutation(len(songs))]
    first, rest = order[:SONGS_FOR_AXES], order[SONGS_FOR_AXES:]
    first_features = np.concatenate([f for _, f in feature_blocks(library, model, first, tell)])
    model.fit_space(first_features, within)
    record = new_record(kind, name, model, len(songs), **settings)

    def fill() -> None:
        library.models.append(record.id, [s.id for s in first], first_features, model.vectors(first_features))
        for block, features in feature_blocks(library, model, rest, tell):
            library.models.append(record.id, [s.id for s in block], features, model.vectors(features))

    return publish(library, model, record, fill=fill, tell=tell, walk=walk, activate=activate)


def _sample_frames(library: Library, songs: Sequence[Song], tell: Tell) -> Float32Array:
    """Frames drawn evenly over the songs, at most :data:`_TRAINING_FRAMES`, seeded."""
    rng = np.random.default_rng(SEED)
    most = _TRAINING_FRAMES // _MIN_FRAMES_A_SONG
    chosen = rng.permutation(len(songs))[:most]
    quota = _TRAINING_FRAMES // len(chosen)
    sample = []
    for done, i in enumerate(sorted(chosen)):
        if done % 64 == 0:
            tell("learning codewords", done, len(chosen))
        frames = library.frame_files.frames(songs[i].content_hash)
        sample.append(frames.rows(np.sort(rng.permutation(len(frames))[:quota])))
    return np.concatenate(sample)
