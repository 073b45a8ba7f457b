"""A library's contribution: two models on the same queries, and counts in bins."""

import json
import re
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

import musicsim
from musicsim import commit
from musicsim.audio import FEATURE_VERSION
from musicsim.errors import ModelError
from musicsim.explorer import RANKING_MEASURES, Supervision, representations, score_search, take_snapshot
from musicsim.extensions.pooling.contribution import (
    NAME,
    Contribution,
    LibraryCounts,
    ModelId,
    PooledFold,
    ScoreDifference,
)
from musicsim.extensions.pooling.disclosure import (
    MIN_ARTISTS,
    MIN_SONGS,
    Estimate,
    bin_count,
    bin_shares,
    differences_of,
    hash_names,
    round_to,
)
from musicsim.library import BUILT_IN, Library, ModelRecord
from musicsim.progress import Progress, no_progress

_MAX_SONGS, _MAX_QUERIES = 20_000, 2_000


def list_comparable(library: Library) -> list[ModelRecord]:
    """Return the models that can be compared with Sound. A model that was trained here knows the query songs."""
    native = library.models.native()
    return [one for one in library.models.all() if native not in (None, one) and "supervision" not in one.settings]


def contribute(
    library: Library, name: str, kind: str, public_name: str = "", progress: Progress = no_progress
) -> Contribution:
    """Compare a model with the model Sound, and return only what may leave the library.

    At most 20,000 songs are ranked for at most 2,000 queries, with hub reduction. Memory: 6 kB per song. Raises
    ModelError if the models cannot be compared, the public name is invalid, or there is too little music.
    """
    progress("reading listener data", 0, 0)
    record, native = library.models.find(name), library.models.native()
    if native is None or record not in list_comparable(library):
        raise ModelError(f"{name!r} cannot be contributed. Use a model that is neither Sound nor trained here.")
    models = identify_model(native), identify_model(record, public_name)
    ours, theirs = take_snapshot(library, native.id), take_snapshot(library, record.id)
    supervision = Supervision(ours, kind)
    place = theirs.rows_of(ours.row_ids)
    order = np.argsort(hash_names(supervision.groups), kind="stable")
    order = order[place[order] >= 0][:_MAX_SONGS]
    songs = np.sort(order)
    relevance = supervision.relevance(songs)
    queries = order[relevance.n_relevant()[order] > 0][:_MAX_QUERIES]
    artists: list[str] = []
    found = {}
    if len(queries):
        progress("ranking similar songs", 0, 0)
        vectors, judged = (ours.X[songs], theirs.X[place[songs]]), relevance.restrict(queries, songs)
        at, database = np.searchsorted(songs, queries), np.arange(len(songs))
        scores = [score_search(X, at, database, judged, reduce_hubs=True) for X in vectors]
        has_score = np.isfinite(scores[0]["auc"])
        artists = [supervision.groups[q] for q in queries[has_score]]
        before, after = ({name: one[name][has_score] for name in RANKING_MEASURES} for one in scores)
        found = differences_of(before, after, artists)
    if not found:
        raise ModelError(
            f"a contribution needs at least {MIN_SONGS} query songs by {MIN_ARTISTS} artists, so that it reveals no "
            f"single song, but {kind} does not cover as many. Add songs, or choose another ground truth."
        )
    genres = ours.columns.genre.take(songs)
    counts = LibraryCounts(
        songs=bin_count(len(songs)),
        queries=bin_count(len(artists)),
        artists=bin_count(len({supervision.groups[row] for row in songs})),
        genres=bin_count(sum(n >= MIN_SONGS for n in genres.counts().values())),
        shares=bin_shares(genres.texts()),
    )
    differences = {measure: round_difference(*both) for measure, both in found.items()}
    return Contribution(
        commit=commit.commit(musicsim.__path__[0]),
        ground_truth=kind,
        models=models,
        library=counts,
        differences=differences,
    )


def round_difference(whole: Estimate, cells: Sequence[Estimate]) -> ScoreDifference:
    """Round a mean to half of its error, the error to a tenth of itself, and a fold to its error (at most)."""
    folds = []
    for cell in cells:
        ends = {"mean": cell.mean, "low": cell.mean - cell.half, "high": cell.mean + cell.half}
        folds.append(PooledFold(**{name: round_to(value, cell.error) for name, value in ends.items()}))
    mean, error = round_to(whole.mean, whole.error / 2), round_to(whole.error, whole.error / 10)
    return ScoreDifference(mean=mean, standard_error=error, folds=tuple(folds))


def identify_model(record: ModelRecord, public_name: str = "") -> ModelId:
    """Return a model's public name, and a hash of its recipe, which is the same in all libraries.

    The recipe of a learned ear contains its network. A hash of imported vectors would identify the library.
    """
    settings = record.settings
    representation = representations().get(settings.get("representation", ""))
    recipe = [record.kind, FEATURE_VERSION, *(settings.get(key) for key in ("representation", "n_codewords", "tau"))]
    if representation is not None and representation.is_network:
        recipe.append(settings["vectors"])
    is_private = record.kind not in BUILT_IN
    if is_private and not re.fullmatch(NAME, public_name):
        raise ModelError(
            "the model's own name may be private. Choose a public name (--public-name) such as MERT-v1-95M, with up to "
            "40 letters, digits, spaces and . _ + -"
        )
    name = public_name if is_private else record.name
    return ModelId(name=name, hash=sha256(json.dumps(recipe).encode()).hexdigest()[:16])
