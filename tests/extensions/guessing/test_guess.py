"""Tests of guessed labels: those of the nearest songs, with votes and an honest estimate of their accuracy."""

import json

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.explorer.snapshot.neighbors import Neighbors
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.guessing.guess import N_VOTES, Guess, Guesses, GuessShares, enter_guesses, guess_labels
from musicsim.extensions.guessing.label_levels import LEVELS_OF
from musicsim.extensions.guessing.voters import CodeVoters, VectorVoters
from musicsim.hashing import hamming_distances
from musicsim.library.stores.duplicates import SamePair
from tests.command import run


@pytest.fixture
def unlabelled(tiny_library):
    """Remove the genre from one song of each kind of sound."""
    songs = {song.genre: song.id for song in tiny_library.songs()}
    tiny_library.edits.edit(songs.values(), {"genre": None})
    return tiny_library, {song_id: genre for genre, song_id in songs.items()}


@pytest.fixture
def set_n_voters(monkeypatch):
    """Return a function that sets the number of voters for a genre."""
    return lambda n: monkeypatch.setitem(N_VOTES, "genre", n)


def nearest(snapshot, row):
    """Return all other rows, nearest first."""
    order = np.argsort(np.linalg.norm(snapshot.X - snapshot.X[row], axis=1), kind="stable")
    return [r for r in order.tolist() if r != row]


def test_nearest_songs_with_genre_vote(unlabelled, set_n_voters):
    library, truth = unlabelled
    snapshot = take_snapshot(library)
    set_n_voters(3)
    found = guess_labels(snapshot)
    assert {g.song.id: g.names[0] for g in found.guesses} == truth
    genre = {song.id: song.genre for song in snapshot.library.songs()}
    for guess in found.guesses:
        around = nearest(snapshot, snapshot.rows_of([guess.song.id])[0])
        near = [g for r in around if (g := genre[snapshot.songs_at([r])[0].id]) is not None][:3]
        assert guess.votes == (near.count(guess.names[0]),)
        assert guess.n_voters == 3
    assert (found.judged.n_judged, found.n_known) == (9, 9)
    assert found.judged.right[2] == 1.0  # two songs of the same kind remain as voters


def test_scores_match_leave_one_out(unlabelled, set_n_voters):
    library, _ = unlabelled
    snapshot = take_snapshot(library)
    set_n_voters(4)
    found = guess_labels(snapshot)
    genre = [song.genre for song in snapshot.songs_at()]
    right = []
    for row in range(len(genre)):
        if genre[row] is None:
            continue
        near = [genre[r] for r in nearest(snapshot, row) if genre[r] is not None][:4]
        votes = max(near.count(g) for g in near)
        winner = next(g for g in near if near.count(g) == votes)
        right.append((votes, winner == genre[row]))
    assert set(found.judged.right) == set(range(1, max(votes for votes, _ in right) + 1))
    for least, share in found.judged.right.items():
        assert share == pytest.approx(np.mean([r for votes, r in right if votes >= least]))
    # each kind of sound is one artist here, so without that artist no guess can be right
    assert found.judged.right_apart == 0.0


def test_missing_tags_are_not_scored(tiny_library):
    for place, song in enumerate(tiny_library.songs()):
        tiny_library.edits.edit([song.id], {"album": None if place % 4 == 1 else f"{song.artist}'s"})
    unknown = tiny_library.songs()[0]
    tiny_library.edits.edit([unknown.id], {"artist": None})
    judged = guess_labels(take_snapshot(tiny_library), "artist").judged
    # every song is nearest to others by its artist, who has one album at most
    assert judged.n_judged == 11
    assert set(judged.right.values()) == {1.0}


def test_subgenre_is_chosen_within_winning_genre(tiny_library, set_n_voters):
    genres = ("A/x", "A/y", "B")
    by_artist = {}
    for song in tiny_library.songs():
        by_artist.setdefault(song.artist, []).append(song.id)
    for genre, ids in zip(genres, by_artist.values(), strict=True):
        tiny_library.edits.edit(ids, {"genre": genre})
    of_first = {ids[0]: genre for genre, ids in zip(genres, by_artist.values(), strict=True)}
    tiny_library.edits.edit(of_first, {"genre": None})
    # all nine vote, three for each: six agree on A even for the song labeled B
    set_n_voters(9)
    for guess in guess_labels(take_snapshot(tiny_library)).guesses:
        assert (guess.names[0], guess.votes) == ("A", (6, 3))
        assert of_first[guess.song.id] in {guess.names[1], "B"}
        assert guess.new_tags(3) == {"genre": guess.names[1]}
        assert guess.new_tags(4) == {"genre": "A"}
        assert guess.new_tags(7) == {}


def test_artist_guess_includes_album_and_keeps_known_tags(tiny_library):
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
        assert guess.votes == (3, 2)  # two of three songs are on one album
        assert set(guess.new_tags(2)) == ({"artist"} if guess.song.id == kept else {"artist", "album"})
        assert set(guess.new_tags(3)) == {"artist"}


def test_accepting_guesses_keeps_earlier_and_later_edits(tiny_library):
    songs = tiny_library.songs()
    for place, song in enumerate(songs):
        tiny_library.edits.edit([song.id], {"album": f"{song.artist} {place % 2}"})
    ids = list({song.artist: song.id for song in songs}.values())
    tiny_library.edits.edit(ids, {"artist": None, "album": None})
    has_album, corrected, meanwhile = ids
    tiny_library.edits.edit([has_album], {"album": "mine"})
    before = tiny_library.edits.all()
    guesses = guess_labels(take_snapshot(tiny_library), "artist").guesses
    tiny_library.edits.edit([meanwhile], {"artist": "typed"})
    back = enter_guesses(tiny_library, guesses, 2)
    said = {g.song.id: g.names for g in guesses}
    edited = tiny_library.edits.all()
    assert edited[has_album] == {"artist": said[has_album][0], "album": "mine"}
    assert edited[corrected] == dict(zip(("artist", "album"), said[corrected], strict=True))
    assert edited[meanwhile] == {"artist": "typed", "album": None}  # the album is by the guessed artist
    tiny_library.edits.edit([corrected], {"artist": "corrected"})
    tiny_library.edits.change(back)
    after = {corrected: {"artist": "corrected", "album": None}, meanwhile: edited[meanwhile]}
    assert tiny_library.edits.all() == before | after


def test_codes_are_scored_on_held_out_songs(unlabelled, monkeypatch, set_n_voters):
    library, truth = unlabelled
    snapshot = take_snapshot(library)
    learned, asked = [], []

    class Watched(CodeVoters):
        def __init__(self, snapshot, rows, labels):
            super().__init__(snapshot, rows, labels)
            self.learned = set(rows.tolist())
            learned.append(self.learned)

        def nearest(self, rows, k):
            asked.append((set(rows.tolist()), self.learned))
            return super().nearest(rows, k)

    monkeypatch.setattr("musicsim.extensions.guessing.guess.CodeVoters", Watched)
    set_n_voters(3)
    found = guess_labels(snapshot, by="codes")
    assert {g.song.id: g.names[0] for g in found.guesses} == truth
    # a fifth of nine songs, a third of three artists, all of them
    assert [len(rows) for rows in learned] == [8, 6, 9]
    assert [len(rows) for rows, _ in asked] == [1, 3, 3]
    assert all(not rows & voting for rows, voting in asked)
    artist = {row: song.artist for row, song in enumerate(snapshot.songs_at())}
    assert len({artist[row] for row in learned[1]}) == 2
    assert found.judged.right_apart == 0.0


def test_unscorable_codes_still_guess(tiny_library, set_n_voters):
    songs = tiny_library.songs()
    tiny_library.edits.edit([song.id for song in songs], {"artist": "the only one"})
    tiny_library.edits.edit([songs[0].id], {"genre": None})
    set_n_voters(3)
    found = guess_labels(take_snapshot(tiny_library), by="codes")
    assert found.guesses[0].names == (songs[0].genre,)
    assert found.judged.right_apart is None  # without the songs of the artist nobody is left
    assert (found.judged.n_judged, found.judged.right[1]) == (2, 1.0)

    tiny_library.edits.edit([song.id for song in songs], {"genre": None})
    for song, genre in zip(songs[:3], ("A", "A", "B"), strict=True):
        tiny_library.edits.edit([song.id], {"genre": genre})
    few = guess_labels(take_snapshot(tiny_library), by="codes")
    assert len(few.guesses) == 9
    assert few.judged == GuessShares({}, None, 0)  # a fifth of three songs rounds to zero
    assert "Too few songs have a genre" in few.summary(1)


def test_searches_are_batched(unlabelled, monkeypatch):
    library, _ = unlabelled
    asked, query = [], Neighbors.query

    def watched(self, Q, *options, **named):
        asked.append(len(Q))
        return query(self, Q, *options, **named)

    monkeypatch.setattr(Neighbors, "query", watched)
    guess_labels(take_snapshot(library))
    assert asked == [9, 9, 3]


@pytest.mark.parametrize("by", [CodeVoters, VectorVoters])
def test_batch_neighbors_match_single_queries(snapshot, monkeypatch, by):
    monkeypatch.setattr("musicsim.extensions.guessing.voters.QUERY_BLOCK", 5)
    rows, voting = np.arange(snapshot.n_indexed), np.arange(1, snapshot.n_indexed)
    labels = LEVELS_OF["genre"](snapshot).codes
    voters = by(snapshot, voting, labels[voting]) if by is CodeVoters else by(snapshot, voting)
    together = [near.tolist() for near in voters.nearest(rows, 4)]
    assert together == [next(voters.nearest(np.array([row]), 4)).tolist() for row in rows]
    assert [len(near) for near in voters.nearest(rows, 99)] == [11] + 11 * [10]
    assert all(row not in near and 0 not in near for row, near in enumerate(together))


def test_code_ties_are_broken_by_vector_distance(snapshot, monkeypatch):
    rows = np.arange(snapshot.n_indexed)
    labels = LEVELS_OF["genre"](snapshot).codes
    monkeypatch.setattr("musicsim.extensions.guessing.voters.BITS", 3)  # few, so that many songs share a code
    voters = CodeVoters(snapshot, rows, labels)
    codes = voters.hash.transform(snapshot.X)
    bits = hamming_distances(codes, codes)
    for row, near in zip(rows, voters.nearest(rows, len(rows)), strict=True):
        distances = np.linalg.norm(snapshot.X - snapshot.X[row], axis=1)
        order = [r for r in np.lexsort((distances, bits[row])) if r != row]
        assert near.tolist() == order
        for k in (1, 2, 5):
            assert next(voters.nearest(rows[row : row + 1], k)).tolist() == order[:k]


def test_codes_require_two_labels(tiny_library):
    tiny_library.edits.edit([song.id for song in tiny_library.songs()][1:], {"genre": "all the same"})
    tiny_library.edits.edit([song.id for song in tiny_library.songs()][:1], {"genre": None})
    with pytest.raises(ModelError, match="two different labels"):
        guess_labels(take_snapshot(tiny_library), by="codes")


def test_complete_or_untagged_library_gives_no_guesses(tiny_library):
    full = guess_labels(take_snapshot(tiny_library))
    assert (full.guesses, full.n_known) == ([], 12)
    tiny_library.edits.edit([song.id for song in tiny_library.songs()], {"genre": None})
    nothing = guess_labels(take_snapshot(tiny_library))
    assert (nothing.guesses, nothing.judged.n_judged, nothing.n_known) == ([], 0, 0)


def test_only_missing_tags_are_entered(snapshot):
    song = snapshot.library.songs()[0]
    assert Guess(song, ("x",), (3,), 3, ("genre",)).new_tags(1) == {}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Guesses("genre", [], GuessShares({}, None, 0), 0), "Guesses need songs with a genre"),
        (Guesses("artist", [], GuessShares({}, None, 0), 4), "Every analyzed song already has an artist"),
    ],
)
def test_summary_explains_missing_guesses(found, words):
    assert found.summary(2).startswith(words)


def test_duplicate_is_ignored_and_gets_no_guess(tiny_library):
    first, copy = tiny_library.songs()[:2]
    tiny_library.duplicates.enter([SamePair(first.id, copy.id, 0.99, 0.0)], [])
    tiny_library.edits.edit([copy.id], {"genre": None})
    found = guess_labels(take_snapshot(tiny_library))
    assert (found.guesses, found.n_known) == ([], 11)
    assert "Every analyzed song already" in found.summary(6)


def test_cli_guesses_and_accepts_genres(unlabelled, monkeypatch):
    library, truth = unlabelled
    told = json.loads(run("guess", "--votes", 1, "--json", library=library.folder)[0])
    assert {g["song"]["id"]: g["genre"] for g in told["guesses"]} == truth
    assert (told["judged"], told["accepted"]) == (9, 0)
    assert all(song.genre is None for song in library.songs() if song.id in truth)
    out, _ = run("guess", "genre", "--voters", "codes", "--votes", 1, "--accept", library=library.folder)
    assert "Nothing was saved, because fewer than 80% of guesses like these are known to be right" in " ".join(
        out.split()
    )
    assert all(song.genre is None for song in library.songs() if song.id in truth)
    monkeypatch.setattr(Guesses, "can_accept_all", lambda *_: True)  # nine songs cannot show 80 %
    out, _ = run("guess", "genre", "--votes", 1, "--accept", library=library.folder)
    words = " ".join(out.split())
    assert "are right" in words
    assert "Saved for 3 songs" in words
    assert {song.id: song.genre for song in library.songs() if song.id in truth} == truth


def test_cli_explains_missing_guesses(unlabelled, store):
    library, truth = unlabelled
    assert "title" in run("guess", "--votes", 1, library=library.folder)[0]
    out, _ = run("guess", "--votes", 10, library=library.folder)
    assert out.startswith("0 of 3 songs without a genre get a guess with at least 10 votes.")
    _, err = run("guess", "--votes", 11, library=library.folder, expect=2)
    assert "is more than 10" in err
    library.edits.edit(truth, {"genre": "x"})
    out, _ = run("guess", "--accept", library=library.folder)
    assert out.startswith("Every analyzed song already has a genre.\nSaved for 0 songs")
    assert run("guess", library=store.folder)[0].startswith("Guesses need songs with a genre")
