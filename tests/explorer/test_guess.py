"""Guessed labels: those of the nearest songs, with their votes, and an honest figure of how often they are right."""

import json

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.explorer.guess import Guess, guess_labels
from musicsim.explorer.label_levels import LEVELS_OF
from musicsim.explorer.snapshot import take_snapshot
from musicsim.explorer.voters import CodeVoters
from musicsim.hashing import hamming_distances
from tests.command import run


@pytest.fixture
def unlabelled(tiny_library):
    """One song of each kind of sound without a genre."""
    songs = {song.genre: song.id for song in tiny_library.songs()}
    tiny_library.edits.edit(songs.values(), {"genre": None})
    return tiny_library, {song_id: genre for genre, song_id in songs.items()}


def nearest(snapshot, row):
    """All other rows, nearest first."""
    order = np.argsort(np.linalg.norm(snapshot.X - snapshot.X[row], axis=1), kind="stable")
    return [r for r in order.tolist() if r != row]


def test_the_nearest_with_a_genre_vote(unlabelled):
    library, truth = unlabelled
    snapshot = take_snapshot(library)
    found = guess_labels(snapshot, n_votes=3)
    assert {g.song.id: g.names[0] for g in found.guesses} == truth
    genre = {song.id: song.genre for song in snapshot.songs}
    for guess in found.guesses:
        around = nearest(snapshot, snapshot.row_of[guess.song.id])
        near = [g for r in around if (g := genre[snapshot.indexed[r].id]) is not None][:3]
        assert guess.votes == (near.count(guess.names[0]),)
        assert guess.n_voters == 3
    assert (found.n_judged, found.n_known) == (9, 9)
    assert found.right[2] == 1.0  # of the own kind two are left to vote


def test_figures_are_those_of_leaving_one_out(unlabelled):
    library, _ = unlabelled
    snapshot = take_snapshot(library)
    found = guess_labels(snapshot, n_votes=4)
    genre = [song.genre for song in snapshot.indexed]
    right = []
    for row in range(len(genre)):
        if genre[row] is None:
            continue
        near = [genre[r] for r in nearest(snapshot, row) if genre[r] is not None][:4]
        votes = max(near.count(g) for g in near)
        winner = next(g for g in near if near.count(g) == votes)
        right.append((votes, winner == genre[row]))
    assert set(found.right) == set(range(1, max(votes for votes, _ in right) + 1))
    for least, share in found.right.items():
        assert share == pytest.approx(np.mean([r for votes, r in right if votes >= least]))
    # each kind of sound is an artist of its own here: without it nobody can be right
    assert found.right_apart == 0.0


def test_a_sub_genre_is_elected_among_those_that_agree_on_the_genre(tiny_library):
    genres = ("A/x", "A/y", "B")
    by_artist = {}
    for song in tiny_library.songs():
        by_artist.setdefault(song.artist, []).append(song.id)
    for genre, ids in zip(genres, by_artist.values(), strict=True):
        tiny_library.edits.edit(ids, {"genre": genre})
    of_first = {ids[0]: genre for genre, ids in zip(genres, by_artist.values(), strict=True)}
    tiny_library.edits.edit(of_first, {"genre": None})
    # all nine vote, three for each: six agree on A even for the song that was B
    for guess in guess_labels(take_snapshot(tiny_library), n_votes=9).guesses:
        assert (guess.names[0], guess.votes) == ("A", (6, 3))
        assert of_first[guess.song.id] in {guess.names[1], "B"}
        assert guess.entered(3) == {"genre": guess.names[1]}
        assert guess.entered(4) == {"genre": "A"}
        assert guess.entered(7) == {}


def test_an_artist_comes_with_the_album_and_what_is_known_stays(tiny_library):
    songs = tiny_library.songs()
    for place, song in enumerate(songs):
        tiny_library.edits.edit([song.id], {"album": f"{song.artist} {place % 2}"})
    artists = {song.artist: song.id for song in songs}
    tiny_library.edits.edit(artists.values(), {"artist": None, "album": None})
    kept = next(iter(artists.values()))
    tiny_library.edits.edit([kept], {"album": "mine"})
    found = guess_labels(take_snapshot(tiny_library), "artist")
    assert {g.names[0]: g.song.id for g in found.guesses} == artists
    for guess in found.guesses:
        assert guess.names[1] in {f"{guess.names[0]} 0", f"{guess.names[0]} 1"}
        assert guess.votes == (3, 2)  # of three songs two are of one album
        assert set(guess.entered(2)) == ({"artist"} if guess.song.id == kept else {"artist", "album"})
        assert set(guess.entered(3)) == {"artist"}


def test_codes_are_judged_on_songs_that_they_were_not_learned_from(unlabelled, monkeypatch):
    library, truth = unlabelled
    snapshot = take_snapshot(library)
    learned, asked = [], []

    class Watched(CodeVoters):
        def __init__(self, snapshot, rows, labels, random_state=0):
            super().__init__(snapshot, rows, labels, random_state)
            learned.append(set(rows.tolist()))

        def nearest(self, row, k):
            asked.append((row, learned[-1]))
            return super().nearest(row, k)

    monkeypatch.setattr("musicsim.explorer.guess.CodeVoters", Watched)
    found = guess_labels(snapshot, by="codes", n_votes=3)
    assert {g.song.id: g.names[0] for g in found.guesses} == truth
    assert [len(rows) for rows in learned] == [
        8,
        6,
        9,
    ]  # a fifth of nine songs, a third of three artists, all
    assert all(row not in rows for row, rows in asked)
    artist = {row: song.artist for row, song in enumerate(snapshot.indexed)}
    assert len({artist[row] for row in learned[1]}) == 2
    assert found.right_apart == 0.0


def test_codes_nearest_first_ties_by_the_vectors(snapshot):
    rows = np.arange(snapshot.n_indexed)
    labels = LEVELS_OF["genre"](snapshot).codes
    voters = CodeVoters(snapshot, rows, labels)
    codes = voters._hash.transform(snapshot.X)
    bits = hamming_distances(codes, codes)
    for row in rows:
        distances = np.linalg.norm(snapshot.X - snapshot.X[row], axis=1)
        order = [r for r in np.lexsort((distances, bits[row])) if r != row]
        assert voters.nearest(row, len(rows)).tolist() == order
        assert len(voters.nearest(row, 2)) == 2


def test_codes_want_two_labels(tiny_library):
    tiny_library.edits.edit([song.id for song in tiny_library.songs()][1:], {"genre": "all the same"})
    tiny_library.edits.edit([song.id for song in tiny_library.songs()][:1], {"genre": None})
    with pytest.raises(ModelError, match="Two labels"):
        guess_labels(take_snapshot(tiny_library), by="codes")


def test_without_labels_or_without_gaps_there_is_nothing_to_say(tiny_library):
    full = guess_labels(take_snapshot(tiny_library))
    assert (full.guesses, full.n_known) == ([], 12)
    tiny_library.edits.edit([song.id for song in tiny_library.songs()], {"genre": None})
    nothing = guess_labels(take_snapshot(tiny_library))
    assert (nothing.guesses, nothing.n_judged, nothing.n_known) == ([], 0, 0)
    for wrong, message in (
        ({"n_votes": 0}, "n_votes=0"),
        ({"target": "mood"}, "target='mood'"),
        ({"by": "chance"}, "by='chance'"),
    ):
        with pytest.raises(ValueError, match=message):
            guess_labels(take_snapshot(tiny_library), **wrong)


def test_only_what_the_song_is_without_is_entered(snapshot):
    song = snapshot.songs[0]
    assert Guess(song, ("x",), (3,), 3, ("genre",)).entered(1) == {}


def test_the_command_line_guesses_and_enters(unlabelled):
    library, truth = unlabelled
    told = json.loads(run("guess", "--votes", 1, "--json", library=library.folder)[0])
    assert {g["song"]["id"]: g["genre"] for g in told["guesses"]} == truth
    assert told["judged"] == 9
    assert all(song.genre is None for song in library.songs() if song.id in truth)
    out, _ = run("guess", "genre", "--by", "codes", "--votes", 1, "--accept", library=library.folder)
    assert "are right" in " ".join(out.split())
    assert {song.id: song.genre for song in library.songs() if song.id in truth} == truth
