"""The turns of a running trial: both models propose the next song, and a coin decides which one is played."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from musicsim.errors import MusicsimError, NotFoundError
from musicsim.explorer import PlaylistRequest, QueueItem, Walk, draw_seed, find_allowed_rows, share_walk, take_snapshot
from musicsim.extensions.blind_radio.results import summarize
from musicsim.extensions.blind_radio.store import RadioStore, Trial


def next_songs(walker: Walk, request: PlaylistRequest, random_state: int | None) -> list[QueueItem] | None:
    """Return the songs of a queue by turns, without reasons, which could give away the model; None without a trial.

    The trial ends with the verdict. If one of its models cannot be used, the walk continues the queue.
    """
    library = walker.snapshot.library
    store = RadioStore(library)
    trial = store.latest()
    if trial is None or trial.ended_at is not None or request.first is None or request.through:
        return None
    if summarize(trial, store.settle(trial)).verdict:
        store.end(trial)
        return None
    try:
        walks = [share_walk(take_snapshot(library, model_id)) for model_id in (trial.model_a, trial.model_b)]
        for walk in walks:
            walk.snapshot.row_of(request.first)
    except MusicsimError:  # a model was deleted, or does not contain the song
        return None
    return _take_turns(store, trial, walks, request, draw_seed(random_state))


def _take_turns(
    store: RadioStore, trial: Trial, walks: Sequence[Walk], request: PlaylistRequest, queue: int
) -> list[QueueItem]:
    """Return songs, each by a new turn, or by the same turn as when this queue was last built."""
    a, b = (walk.snapshot for walk in walks)
    if not np.array_equal(a.row_ids, b.row_ids):  # both choose from the same songs
        request = replace(request, only=frozenset(np.intersect1d(a.row_ids, b.row_ids).tolist()))
    allowed = set(a.row_ids[find_allowed_rows(a, request)].tolist())
    known = store.turns_of(trial, queue)
    assert request.first is not None
    assert request.length is not None
    played = [request.first]
    items: list[QueueItem] = []
    while len(played) < request.length:
        turn = known.get(played[-1])
        if turn is None or turn.song_id not in allowed:
            try:
                proposed = [_propose(walk, request, played, queue) for walk in walks]
            except NotFoundError:  # no more songs match
                break
            turn = store.add_turn(trial, queue, played[-1], *proposed)
        allowed.discard(turn.song_id)
        played.append(turn.song_id)
        items.append(QueueItem(store.library.song(turn.song_id), choice_id=turn.id))
    return items


def _propose(walk: Walk, request: PlaylistRequest, played: Sequence[int], queue: int) -> int:
    """Return the song that a walk would play next; the songs before it keep songs by the same artist apart."""
    last = played[-request.spacing - 1 :]
    asked = replace(
        request, first=None, length=len(last) + 1, keep=dict(enumerate(last)),
        exclude=request.exclude | frozenset(played),
    )  # fmt: skip
    songs = walk.generate(asked, random_state=queue + len(played)).songs
    if len(songs) <= len(last):
        raise NotFoundError("no more songs match.")
    return songs[-1].id
