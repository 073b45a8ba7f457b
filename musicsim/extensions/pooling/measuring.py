"""A library's contribution: two models on the same queries, and counts in bins."""

import json
import re
from hashlib import sha256

import numpy as np

from musicsim import __version__
from musicsim.audio import FEATURE_VERSION
from musicsim.errors import ModelError
from musicsim.explorer.learning.search_ranking import score_search
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.verdict import RANKED
from musicsim.explorer.models.representations import representations
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.pooling.contribution import (
    NAME,
    Contribution,
    Counts,
    Difference,
    FoldDifference,
    ModelId,
    Program,
    hash_code,
)
from musicsim.extensions.pooling.disclosure import (
    MIN_ARTISTS,
    MIN_SONGS,
    Estimate,
    bin_count,
    bin_shares,
    differences_of,
    hash_names,
    round_error,
    round_to,
)
from musicsim.library import Library
from musicsim.library.stores.models import BUILT_IN, ModelRecord
from musicsim.progress import Progress, no_progress

_MAX_SONGS, _MAX_QUERIES = 20_000, 2_000


def list_comparable(library: Library) -> list[ModelRecord]:
    """Return the models that can be compared with Sound: a model that was trained here knows the query songs."""
    native = library.models.native()
    if native is None:
        return []
    return [one for one in library.models.all() if one.id != native.id and "supervision" not in one.settings]


def needs_name(record: ModelRecord) -> bool:
    """Return whether a model's own name is private, so that a contribution needs a public one."""
    return record.kind not in BUILT_IN


def contribute(
    library: Library, name: str, kind: str, public_name: str = "", progress: Progress = no_progress
) -> Contribution:
    """Compare a model with the model Sound, and return only what may leave the library.

    At most 20,000 songs are ranked for at most 2,000 queries, always with hub reduction. Raises ModelError if the
    models cannot be compared, if the public name is missing or invalid, or if there are too few songs or artists.
    Memory: 6 kB per song.
    """
    progress("reading listener data", 0, 0)
    record, native = library.models.find(name), library.models.native()
    if native is None or record not in list_comparable(library):
        raise ModelError(f"{name!r} cannot be contributed. Use a model that is neither Sound nor trained here.")
    ours, theirs = take_snapshot(library, native.id), take_snapshot(library, record.id)
    models = identify_model(native), identify_model(record, public_name)
    supervision = Supervision(ours, kind)
    rows = ours.rows_of(theirs.row_ids)
    place = np.full(ours.n_indexed, -1, dtype=np.int64)
    place[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    hashes = hash_names(supervision.groups)
    order = np.argsort(hashes, kind="stable")
    order = order[place[order] >= 0][:_MAX_SONGS]
    songs = np.sort(order)
    relevance = supervision.relevance(songs)
    queries = order[relevance.n_relevant()[order] > 0][:_MAX_QUERIES]
    if not len(queries):
        raise _too_few(kind)
    judged = relevance.restrict(queries, songs)
    at = np.searchsorted(songs, queries)
    scores = []
    for number, X in enumerate((ours.X[songs], theirs.X[place[songs]])):
        progress("ranking similar songs", number, 2)
        scores.append(score_search(X, at, np.arange(len(songs)), judged, reduce_hubs=True))
    has_score = np.isfinite(scores[0]["auc"])
    before, after = ({measure: one[measure][has_score] for measure in RANKED} for one in scores)
    artists = [supervision.groups[q] for q in queries[has_score]]
    found = differences_of(before, after, artists)
    if not found:
        raise _too_few(kind)
    genres = ours.columns.genre.take(songs)
    return Contribution(
        musicsim=Program(version=__version__, code=hash_code()),
        ground_truth=kind,
        models=models,
        library=Counts(
            songs=bin_count(len(songs)),
            queries=bin_count(len(artists)),
            artists=bin_count(len({supervision.groups[row] for row in songs})),
            genres=bin_count(sum(n >= MIN_SONGS for n in genres.counts().values())),
            shares=bin_shares(genres.texts()),
        ),
        differences={measure: round_difference(*both) for measure, both in found.items()},
    )


def round_difference(whole: Estimate, cells: list[Estimate]) -> Difference:
    """Round a difference to half of its standard error, which adds at most 1/48 to its variance.

    Folds are rounded to their standard errors. A song then rarely moves a number by more than one step.
    """
    folds = [
        FoldDifference(
            **{
                name: round_to(value, cell.error)
                for name, value in (
                    ("mean", cell.mean),
                    ("low", cell.mean - cell.half),
                    ("high", cell.mean + cell.half),
                )
            }
        )
        for cell in cells
    ]
    mean, error = round_to(whole.mean, whole.error / 2), round_error(whole.error)
    return Difference(mean=mean, standard_error=error, folds=tuple(folds))


def identify_model(record: ModelRecord, public_name: str = "") -> ModelId:
    """Return a model's public name, and a hash that is the same in all libraries with the same kind of model.

    The hash covers the recipe: the representation, its settings, the version of the audio features and, for a learned
    ear, the network. Imported vectors have only the recipe, because their own hash would identify the library.
    """
    settings = record.settings
    representation = representations().get(settings.get("representation", ""))
    recipe = [record.kind, FEATURE_VERSION, *(settings.get(key) for key in ("representation", "n_codewords", "tau"))]
    if representation is not None and representation.is_network:
        recipe.append(settings["vectors"])
    if not needs_name(record):
        public_name = record.name
    elif not re.fullmatch(NAME, public_name):
        raise ModelError(
            "the model's own name may be private. Choose a public name with --as, such as MERT-v1-95M: up to 40 "
            "letters, digits, spaces and . _ + -"
        )
    return ModelId(name=public_name, hash=sha256(json.dumps(recipe).encode()).hexdigest()[:16])


def _too_few(kind: str) -> ModelError:
    return ModelError(
        f"a contribution needs at least {MIN_SONGS} query songs by {MIN_ARTISTS} artists that {kind} covers, so that "
        "it reveals no single song. Add songs, or choose another ground truth."
    )
