"""Guessed genres: those of the nearest songs, with their votes, and an honest figure of how often they are right."""

import json

import numpy as np
import pytest

from musicsim.explorer.guess import guess_genres
from musicsim.explorer.snapshot import take_snapshot
from tests.command import run


@pytest.fixture
def unlabelled(tiny_library):
    """One song of each kind of sound without a genre."""
    songs = {song.genre: song.id for song in tiny_library.songs()}
    tiny_library.edits.edit(songs.values(), {"genre": None})
    return tiny_library, {song_id: genre for genre, song_id in songs.items()}


def test_the_nearest_with_a_genre_vote(unlabelled):
    library, truth = unlabelled
    snapshot = take_snapshot(library)
    found = guess_genres(snapshot, n_votes=3)
    assert {g.song.id: g.genre for g in found.guesses} == truth
    genre = {song.id: song.genre for song in snapshot.songs}
    for guess in found.guesses:
        row = snapshot.row_of[guess.song.id]
        order = np.argsort(np.linalg.norm(snapshot.X - snapshot.X[row], axis=1), kind="stable")
        near = [g for r in order if r != row and (g := genre[snapshot.indexed[r].id]) is not None][:3]
        assert guess.votes == near.count(guess.genre)
        assert guess.n_voters == 3
    assert found.n_judged == 9
    assert found.right[2] == 1.0  # of the own kind two are left to vote


def test_figures_are_those_of_leaving_one_out(unlabelled):
    library, _ = unlabelled
    snapshot = take_snapshot(library)
    found = guess_genres(snapshot, n_votes=4)
    genre = [song.genre for song in snapshot.indexed]
    right = []
    for row in range(len(genre)):
        if genre[row] is None:
            continue
        order = np.argsort(np.linalg.norm(snapshot.X - snapshot.X[row], axis=1), kind="stable")
        near = [genre[r] for r in order if r != row and genre[r] is not None][:4]
        votes = max(near.count(g) for g in near)
        winner = next(g for g in near if near.count(g) == votes)
        right.append((votes, winner == genre[row]))
    assert set(found.right) == set(range(1, max(votes for votes, _ in right) + 1))
    for least, share in found.right.items():
        assert share == pytest.approx(np.mean([r for votes, r in right if votes >= least]))
    # each kind of sound is an artist of its own here: without it nobody can be right
    assert found.right_without_artist == 0.0


def test_without_genres_or_without_gaps_there_is_nothing_to_say(tiny_library):
    assert guess_genres(take_snapshot(tiny_library)).guesses == []
    tiny_library.edits.edit([song.id for song in tiny_library.songs()], {"genre": None})
    nothing = guess_genres(take_snapshot(tiny_library))
    assert (nothing.guesses, nothing.n_judged) == ([], 0)
    with pytest.raises(ValueError, match="n_votes=0"):
        guess_genres(take_snapshot(tiny_library), 0)


def test_the_command_line_guesses_and_enters(unlabelled):
    library, truth = unlabelled
    told = json.loads(run("genres", "--votes", 1, "--json", library=library.folder)[0])
    assert {g["song"]["id"]: g["genre"] for g in told["guesses"]} == truth
    assert told["judged"] == 9
    assert all(song.genre is None for song in library.songs() if song.id in truth)
    out, _ = run("genres", "--votes", 1, "--accept", library=library.folder)
    assert "would be right" in " ".join(out.split())
    assert {song.id: song.genre for song in library.songs() if song.id in truth} == truth
