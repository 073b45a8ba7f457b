"""Which of two walks draws the better playlists? Asked blind: two lists on the same request, sides by chance."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from musicsim.errors import NotFoundError
from musicsim.explorer.models.artifacts import load_walk
from musicsim.explorer.playlists.steering import allowed_rows
from musicsim.explorer.playlists.walk import DrawnPlaylist, Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.library import Library
from musicsim.library.stores.judgments import Judgment, Opinions, Tally, summarize
from musicsim.library.stores.models import BUILT_IN

KIND = "playlists"
"""Kind of the judgments."""
_MAX_TRIES = 5
_SEEDS = 1 << 31

Choice = Literal["left", "right", "same"]
_CHOSEN: dict[Choice, int | None] = {"left": 0, "right": 1, "same": None}


@dataclass(frozen=True, slots=True)
class Contender:
    """Who draws a list: a model's walk of all playlists, one of its dialects, or the uniform shuffle."""

    model_id: str | None  # None for the shuffle
    model_name: str
    dialect: str | None = None  # category whose walk is followed; None for the walk of all playlists

    @property
    def name(self) -> str:
        """What it is called in answers and tallies."""
        return f"{self.model_name}: {self.dialect}" if self.dialect else self.model_name


SHUFFLE = Contender(None, "shuffle")
"""Every song with the same chance: who does not beat it has nothing to offer."""


@dataclass(frozen=True, slots=True)
class BlindPair:
    """Two lists side by side, and who drew them, which is shown after the answer."""

    left: DrawnPlaylist
    right: DrawnPlaylist
    left_is: Contender
    right_is: Contender
    # what both were asked for, with the first song; each was asked in its own dialect
    request: PlaylistRequest
    seed: int  # gives the same pair again, as long as the library and the models stay as they are

    @property
    def is_equal(self) -> bool:
        """Whether both lists have the same songs in the same order, so that there is nothing to choose."""
        return _ids(self.left) == _ids(self.right)


def describe(tally: Tally) -> str:
    """Describe a tally in a sentence."""
    if not tally.n_decided:
        return "no difference so far"
    if tally.wins_first == tally.wins_second:
        return f"{tally.wins_first} of {tally.n_decided} for each: no lead"
    wins, leader = max((tally.wins_first, tally.first), (tally.wins_second, tally.second))
    share = "less than 1 %" if tally.p_value < 0.005 else f"{100 * tally.p_value:.0f} %"
    return f"{wins} of {tally.n_decided} for “{leader}”; by chance alone this happens in {share} of cases"


def contenders(library: Library) -> list[Contender]:
    """Who can be compared in a library: each model that has its files, with its dialects, and last the shuffle."""
    found: list[Contender] = []
    for model in filter(library.models.is_whole, library.models.all()):
        fitted = load_walk(library.models.path(model.id))
        kinds = [kind["name"] for kind in fitted.facts["dialects"]] if fitted is not None else []
        found += [Contender(model.id, model.name, dialect) for dialect in (None, *kinds)]
    return [*found, SHUFFLE]


def opponent_of(library: Library, model_id: str | None) -> Contender:
    """Against whom a model is asked about first.

    The native model, which nobody has taught; for that one itself the newest of those that are not built in, or the
    shuffle where there are none.
    """
    others = [model for model in library.models.all() if model.kind not in BUILT_IN and model.id != model_id]
    native = library.models.native()
    if native is not None and native.id != model_id:
        return Contender(native.id, native.name)
    return Contender(others[-1].id, others[-1].name) if others else SHUFFLE


def draw_pair(
    sides: tuple[Contender, Contender],
    walks: tuple[Walk, Walk],
    request: PlaylistRequest,
    random_state: int | None = None,
) -> BlindPair:
    """Let two contenders draw a list each on the same request, and put them on their sides by chance.

    Parameters
    ----------
    walks : two Walks
        Theirs, in the same order: :class:`Walk` of the model's snapshot, :class:`ShuffleWalk` for the shuffle.
    request : PlaylistRequest
        Without a first song one is drawn, the same for both. Its dialect is left to the contenders.

    Returns
    -------
    BlindPair
        Two equal lists are drawn again a few times; :attr:`BlindPair.is_equal` says where that did not help.

    Raises
    ------
    ValueError
        If both contenders are the same one.
    NotFoundError
        If no song is known to both and as it was asked for, or as :meth:`Walk.draw` does.
    """
    if sides[0] == sides[1]:
        raise ValueError(f"both lists would be by “{sides[0].name}”: choose two different ones.")
    seed = int(np.random.default_rng().integers(_SEEDS)) if random_state is None else random_state
    rng = np.random.default_rng(seed)
    order = (1, 0) if rng.random() < 0.5 else (0, 1)
    asked = replace(request, dialect=None)
    if request.first is None and 0 not in request.keep:
        asked = replace(asked, first=_first_song(walks, request, rng))
    for _ in range(_MAX_TRIES):
        left, right = (
            walks[side].draw(replace(asked, dialect=sides[side].dialect), int(rng.integers(_SEEDS))) for side in order
        )
        if _ids(left) != _ids(right):
            break
    return BlindPair(left, right, sides[order[0]], sides[order[1]], asked, seed)


def _first_song(walks: tuple[Walk, Walk], request: PlaylistRequest, rng: np.random.Generator) -> int:
    """A song that both know and the request allows, each with the same chance."""
    allowed = [set(walk.snapshot.row_ids[allowed_rows(walk.snapshot, request)].tolist()) for walk in walks]
    # a song that has its place further on is none to begin with
    known = sorted((allowed[0] & allowed[1]) - {*request.through, *request.keep.values()})
    if not known:
        raise NotFoundError("no song known to both matches your request: loosen it.")
    return known[int(rng.integers(len(known)))]


def _ids(drawn: DrawnPlaylist) -> list[int]:
    return [song.id for song in drawn.songs]


# --- answers --------------------------------------------------------------------------------------


def record(opinions: Opinions, pair: BlindPair, chosen: Choice) -> int:
    """Store an answer with the songs of both lists, the seed and the request.

    Returns its id, for ``opinions.judgments.forget``. Raises ValueError if `chosen` is none of "left", "right" and
    "same".
    """
    if chosen not in _CHOSEN:
        raise ValueError(f"chosen={chosen!r} must be one of {', '.join(_CHOSEN)}.")
    sides = (pair.left_is, pair.right_is)
    options = [side.name for side in sides]
    if options[0] == options[1]:  # a model may have the name of another one's dialect, or of the shuffle
        options = [f"{side.name} ({side.model_id or 'no model'})" for side in sides]
    return opinions.judgments.add(
        "",
        KIND,
        (),
        _CHOSEN[chosen],
        options=options,
        songs=[_ids(pair.left), _ids(pair.right)],
        models=[[side.model_id, side.dialect] for side in sides],
        seed=pair.seed,
        request=_as_json(pair.request),
    )


def _as_json(request: PlaylistRequest) -> dict[str, Any]:
    values = asdict(replace(request, keep=dict(request.keep)))
    return dict(json.loads(json.dumps(values, default=sorted)))  # sets, in their order


def tally(library: Library, opinions: Opinions | None = None) -> list[Tally]:
    """Summarize the answers in a library, or others about its models, by pair.

    A renamed model keeps its answers. Answers about a deleted model keep its name. A new model with that name adds to
    them.
    """
    names = {model.id: model.name for model in library.models.all()}

    def rename(answer: Judgment) -> tuple[str, str]:
        models = answer.context.get("models", ((None, None),) * 2)
        first, second = (
            Contender(model_id, names[model_id], dialect).name if model_id in names else name
            for name, (model_id, dialect) in zip(answer.options, models, strict=True)
        )
        return (first, second) if first != second else answer.options

    return summarize((opinions or library).judgments.all(KIND), rename)
