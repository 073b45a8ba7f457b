"""Results of a search request: songs similar to examples, or songs that match words."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.audio import HOP, SAMPLE_RATE
from musicsim.errors import AudioTooShortError
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.feedback import Thumbs, thumbs_by_id
from musicsim.explorer.search.query import (
    Example,
    Examples,
    Hit,
    Query,
    find_similar,
    limit_per_artist,
    model_to_compare_with,
)
from musicsim.explorer.snapshot.factor_view import compare_in
from musicsim.explorer.snapshot.filtering import filter_rows
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import parse_words


def find_requested(
    snapshot: Snapshot,
    query: Query | None,
    request: SearchRequest,
    thumbs: Thumbs | None = None,
    exclude: Collection[int] = (),
) -> list[Hit]:
    """Return the results of a request; without examples, the results are the songs that match its words best.

    The examples of the request are added to `query`, unless it is the result of :func:`combine_examples`. They are
    compared in one factor if the request names it (:func:`musicsim.explorer.snapshot.factor_view.compare_in`). `thumbs`
    replace the thumbs in the request; songs in `exclude` are never results. Raises NotFoundError if a word or
    the factor is unknown, or if a song is not in the library or lacks a vector.
    """
    if query is None and not request.like:
        rows = find_matching_rows(snapshot, request)
        rows = rows[~np.isin(rows, snapshot.rows_of([*request.unlike, *exclude]))]
        sounds = [part.words for part in parse_words(snapshot, request.words).parts if part.rank is not None]
        hits = []
        for song in snapshot.songs_at(rows[limit_per_artist(snapshot, rows, request.k, request.per_artist or None)]):
            tempo = f"{song.tempo:.0f} beats/min" if song.tempo else ""
            hits.append(Hit(song, None, 0.0, " · ".join(fact for fact in (*sounds, tempo, song.key_words) if fact)))
        return hits
    if thumbs is None:
        thumbs = thumbs_by_id(snapshot.library, request.fits, request.does_not_fit)
    examples = query if isinstance(query, Examples) else combine_examples(snapshot, query, request)
    if request.by:
        snapshot = view = compare_in(snapshot, request.by)
        like = tuple(
            replace(x, vector=view.vector_of(x.frames)) if isinstance(x, Example) else x for x in examples.like
        )
        examples = replace(examples, like=like)
    return find_similar(
        snapshot,
        examples,
        request.k,
        max_per_artist=request.per_artist or None,
        filters=request,
        exclude=exclude,
        hub_reduction=request.hub_reduction,
        thumbs=thumbs,
    )


def combine_examples(snapshot: Snapshot, query: int | Example | None, request: SearchRequest) -> Examples:
    """Add the examples of a request to a query, or to the requested part of it."""
    others = tuple(i for i in dict.fromkeys(request.like) if i != query)
    if query is None:
        return Examples(others, request.unlike)
    first = query if request.part is None else part_of(snapshot, query, *request.part)
    return Examples((first, *others), request.unlike)


def part_of(snapshot: Snapshot, query: int | Example, start_s: float, end_s: float) -> Example:
    """Return a part of a song or of other sound as an example; raises AudioTooShortError or FeatureVersionError."""
    if isinstance(query, int):
        song = snapshot.library.song(query)
        song_id: int | None = query
        name, frames = song.title, snapshot.library.frame_files.frames(song.content_hash)
        peaks = snapshot.library.outline(query)
    else:
        song_id, name, frames, peaks = query.song_id, query.name, query.frames, query.peaks
    start, stop = (round(second * SAMPLE_RATE / HOP) for second in (start_s, end_s))
    part = frames.part(start, stop)
    model = model_to_compare_with(snapshot)
    try:
        features = model.features([part])
    except AudioTooShortError as error:
        raise AudioTooShortError(f"{name}, {start_s:g} to {end_s:g} s: {error}") from error
    first, last = (round(frame * len(peaks) / max(1, len(frames))) for frame in (start, stop))
    title, vector = f"{name}, {start_s:.0f} to {end_s:.0f} s", model.vectors(features)[0]
    peaks, duration_s = peaks[first : max(last, first + 1)], len(part) * HOP / SAMPLE_RATE
    return Example(title, vector, peaks, duration_s, features[0], part, song_id=song_id, starts_s=start_s)


def find_matching_rows(snapshot: Snapshot, request: SearchRequest) -> Int64Array:
    """Return the rows (int64) that match the words and filters of a request, best match first.

    Songs with more extreme descriptors match better; for "slow", the slowest songs come first. For a text by sound, the
    nearest songs come first. The ranks for several words are added up. Raises the errors of :func:`filter_rows`.
    """
    mask = filter_rows(snapshot, request)
    rows = np.arange(snapshot.n_indexed) if mask is None else np.flatnonzero(mask)
    ranks = np.zeros(len(rows))
    for part in parse_words(snapshot, request.words).parts:
        if part.along is not None:
            name, sign = part.along
            values = (sign if part.is_not else -sign) * getattr(snapshot.columns, name)[rows]
            ranks += np.argsort(np.argsort(values, kind="stable"), kind="stable")
        elif part.rank is not None:
            ids = part.rank()
            by_id = np.argsort(ids)
            places = by_id[np.searchsorted(ids[by_id], snapshot.row_ids[rows])]
            ranks += np.argsort(np.argsort(places))
    return rows[np.argsort(ranks, kind="stable")]
