"""Blind test of two playlist generators: two playlists for the same request, on random sides."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from musicsim._checks import check_choice
from musicsim.errors import NotFoundError
from musicsim.explorer.models.artifacts import load_walk
from musicsim.explorer.playlists.steering import find_allowed_rows
from musicsim.explorer.playlists.walk import GeneratedPlaylist, Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.library import Library
from musicsim.library.stores.judgments import Judgment, Opinions, Tally, summarize
from musicsim.library.stores.models import BUILT_IN

KIND = "playlists"  # kind of the judgments
_MAX_TRIES = 5
_SEEDS = 1 << 31

Choice = Literal["left", "right", "same"]
_CHOSEN: dict[Choice, int | None] = {"left": 0, "right": 1, "same": None}


@dataclass(frozen=True, slots=True)
class Contender:
    """A generator of playlists: a model's walk of all playlists, one of its dialects, or the uniform shuffle."""

    model_id: str | None  # None for the shuffle
    model_name: str
    dialect: str | None = None  # None for the walk of all playlists

    @property
    def name(self) -> str:
        return f"{self.model_name}: {self.dialect}" if self.dialect else self.model_name


SHUFFLE = Contender(None, "shuffle")  # every song with the same probability: the baseline


@dataclass(frozen=True, slots=True)
class BlindPair:
    """Two playlists side by side, and their contenders, which are hidden until the answer."""

    left: GeneratedPlaylist
    right: GeneratedPlaylist
    left_is: Contender
    right_is: Contender
    request: PlaylistRequest  # with the common first song, without the dialects
    seed: int  # reproduces the pair until the library or a model changes

    @property
    def is_equal(self) -> bool:
        """True if both playlists have the same songs in the same order, so that comparing them is useless."""
        return _ids(self.left) == _ids(self.right)


def describe(tally: Tally) -> str:
    if not tally.n_decided:
        return "no difference so far"
    if tally.wins_first == tally.wins_second:
        return f"{tally.wins_first} of {tally.n_decided} for each: no lead"
    wins, leader = max((tally.wins_first, tally.first), (tally.wins_second, tally.second))
    share = "less than 1%" if tally.p_value < 0.005 else f"{100 * tally.p_value:.0f}%"
    return f"{wins} of {tally.n_decided} for “{leader}”; by chance alone this happens in {share} of cases"


def contenders(library: Library) -> list[Contender]:
    """Return the models whose files exist, each followed by its dialects, and the shuffle at the end."""
    result: list[Contender] = []
    for model in filter(library.models.is_whole, library.models.all()):
        walk = load_walk(library.models.path(model.id))
        dialects = [kind["name"] for kind in walk.facts["dialects"]] if walk is not None else []
        result += [Contender(model.id, model.name, dialect) for dialect in (None, *dialects)]
    return [*result, SHUFFLE]


def opponent_of(library: Library, model_id: str | None) -> Contender:
    """Return the default opponent: the Sound model; for Sound, the newest model not built in, or the shuffle."""
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
    """Generate a playlist with each contender for the same request, and put them on random sides.

    `walks` are in the order of the contenders. Without a first song in the request, a common one is drawn. Equal
    playlists are generated again a few times; check :attr:`BlindPair.is_equal`. Raises NotFoundError if no song that
    both know matches.
    """
    if sides[0] == sides[1]:
        raise ValueError(f"both lists would be by “{sides[0].name}”: choose two different ones.")
    seed = int(np.random.default_rng().integers(_SEEDS)) if random_state is None else random_state
    rng = np.random.default_rng(seed)
    order = (1, 0) if rng.random() < 0.5 else (0, 1)
    common = replace(request, dialect=None)
    if request.first is None and 0 not in request.keep:
        common = replace(common, first=_first_song(walks, request, rng))
    for _ in range(_MAX_TRIES):
        left, right = (
            walks[side].generate(replace(common, dialect=sides[side].dialect), int(rng.integers(_SEEDS)))
            for side in order
        )
        if _ids(left) != _ids(right):
            break
    return BlindPair(left, right, sides[order[0]], sides[order[1]], common, seed)


def _first_song(walks: tuple[Walk, Walk], request: PlaylistRequest, rng: np.random.Generator) -> int:
    """Draw a song that both walks know and the request allows, with uniform probability."""
    allowed = [set(walk.snapshot.row_ids[find_allowed_rows(walk.snapshot, request)].tolist()) for walk in walks]
    # songs with a fixed later place cannot be first
    known = sorted((allowed[0] & allowed[1]) - {*request.through, *request.keep.values()})
    if not known:
        raise NotFoundError("no song that both know matches your request. Loosen the request.")
    return known[int(rng.integers(len(known)))]


def _ids(drawn: GeneratedPlaylist) -> list[int]:
    return [song.id for song in drawn.songs]


def record(opinions: Opinions, pair: BlindPair, chosen: Choice) -> int:
    """Store an answer with the songs of both playlists, the seed and the request; return its id."""
    check_choice("chosen", chosen, _CHOSEN)
    sides = (pair.left_is, pair.right_is)
    options = [side.name for side in sides]
    if options[0] == options[1]:  # a model may have the name of another model's dialect, or of the shuffle
        options = [f"{side.name} ({side.model_id or 'no model'})" for side in sides]
    request = asdict(replace(pair.request, keep=dict(pair.request.keep)))
    return opinions.judgments.add(
        "",
        KIND,
        (),
        _CHOSEN[chosen],
        options=options,
        songs=[_ids(pair.left), _ids(pair.right)],
        models=[[side.model_id, side.dialect] for side in sides],
        seed=pair.seed,
        request=json.loads(json.dumps(request, default=sorted)),  # sets become sorted lists
    )


def tally(library: Library, opinions: Opinions | None = None) -> list[Tally]:
    """Summarize the answers by pair of contenders; those of `opinions` about models of the library, if given."""
    names = {model.id: model.name for model in library.models.all()}

    def current_names(answer: Judgment) -> tuple[str, str]:
        models = answer.context.get("models", ((None, None),) * 2)
        first, second = (
            Contender(model_id, names[model_id], dialect).name if model_id in names else name
            for name, (model_id, dialect) in zip(answer.options, models, strict=True)
        )
        return (first, second) if first != second else answer.options

    return summarize((opinions or library).judgments.all(KIND), current_names)
