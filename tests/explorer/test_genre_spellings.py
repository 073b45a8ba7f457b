"""Tests of a library whose genres have several spellings: counts, filters, training labels and guesses."""

import numpy as np

from musicsim.explorer.evaluation.quality import measure_lists, measure_scores
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.playlists.edges import build_hypergraph
from musicsim.explorer.playlists.song_labels import load_sources
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.snapshot.filtering import filter_rows
from musicsim.explorer.snapshot.snapshot import take_snapshot


def spelled_in_two_ways(library):
    """Capitalize the genre of every second song, and give two songs a genre of their own."""
    songs = library.songs()
    for song in songs[::2]:
        library.edits.edit([song.id], {"genre": song.genre.upper()})
    for song in songs[:2]:
        library.edits.edit([song.id], {"genre": "Oddities"})
    return take_snapshot(library)


def test_spelling_variants_count_as_one_genre(twelve):
    before = Supervision(take_snapshot(twelve), "genre").relevance()
    n_genres = len({song.genre for song in twelve.songs()})
    for song in twelve.songs()[::2]:
        twelve.edits.edit([song.id], {"genre": song.genre.upper()})
    now = take_snapshot(twelve)
    assert len(set(now.columns.genre.texts())) == n_genres
    after = Supervision(now, "genre").relevance()
    for i in range(len(before)):
        np.testing.assert_array_equal(after.relevant(i), before.relevant(i))
    songs = now.songs_at()
    one = songs[0].genre
    for spelling in (one, one.upper(), one.lower()):
        passed = filter_rows(now, Filters(genres=frozenset({spelling})))
        np.testing.assert_array_equal(passed, [song.genre.lower() == one.lower() for song in songs])
        assert passed.sum() == 8


def test_genres_under_five_songs_are_not_scored(twelve):
    now = spelled_in_two_ways(twelve)
    lists = measure_lists(now)
    assert "Oddities" not in lists.plain.same_genre_of
    assert len(lists.plain.same_genre_of) == 3
    scores = measure_scores(now, "genre")
    assert "Oddities" not in {genre.genre for genre in scores.by_genre}


def test_spelling_variants_share_one_playlist_edge(twelve):
    def edges(now):
        graph = build_hypergraph(now, load_sources(now), own=False)
        return {name: graph.members(e).tolist() for e, name in enumerate(graph.names)}

    before = edges(take_snapshot(twelve))
    for song in twelve.songs()[:5:2]:  # the edge keeps the usual spelling as its name
        twelve.edits.edit([song.id], {"genre": f"  {song.genre.upper()}-"})
    assert edges(take_snapshot(twelve)) == before
