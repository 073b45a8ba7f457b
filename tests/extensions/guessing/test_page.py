"""Tests of guessed genres and artists on the Library page."""

from musicsim.extensions.guessing.guess import MIN_RIGHT, Guesses, GuessShares
from tests.pages.actions import open_page


def test_genre_guesses_are_accepted_and_undone(full, monkeypatch):
    truth = {i: genre for genre, i in {song.genre: song.id for song in full.songs()}.items()}
    full.edits.edit(truth, {"genre": None})
    app = open_page("library")
    app.session_state["library_section"] = "genres"
    app.run()
    assert not app.exception
    app.slider(key="genres_votes").set_value(1).run()
    assert any("3 of 3 songs without a genre" in c.value for c in app.caption)
    app.segmented_control(key="genres_by").set_value("codes").run()
    assert not app.exception
    assert any("nearest learned codes vote" in c.value for c in app.caption)
    assert app.button(key="genres_accept").disabled, "nobody knows how often these are right"
    monkeypatch.setattr(Guesses, "can_accept_all", lambda *_: True)  # nine songs cannot show 80 %
    app.segmented_control(key="genres_by").set_value("vectors").run()
    app.button(key="genres_accept").click().run()
    assert {song.id: song.genre for song in full.songs() if song.id in truth} == truth
    assert any("Every analyzed song already has a genre" in c.value for c in app.caption)
    corrected, *others = truth
    full.edits.edit([corrected], {"genre": "mine"})
    app.button(key="genres_back").click().run()
    assert not app.exception
    assert {song.id: song.genre for song in full.songs() if song.id in truth} == {
        corrected: "mine",
        **dict.fromkeys(others),
    }


def test_accepting_all_requires_mostly_correct_guesses(full):
    songs = full.songs()
    full.edits.edit([songs[0].id], {"genre": None})
    for place, song in enumerate(songs[1:]):  # genres unrelated to the sound
        full.edits.edit([song.id], {"genre": f"genre {place % 2}"})
    app = open_page("library")
    app.session_state["library_section"] = "genres"
    app.run()
    app.slider(key="genres_votes").set_value(1).run()
    assert not app.exception
    assert app.button(key="genres_accept").disabled
    assert "You can accept all of them together if at least 80%" in " ".join(c.value for c in app.caption)


def test_voting_method_stays_selectable_without_codes(full, monkeypatch):
    first, *others = (song.id for song in full.songs())
    full.edits.edit(others, {"genre": "all the same"})
    full.edits.edit([first], {"genre": None})
    app = open_page("library")
    app.session_state["library_section"] = "genres"
    app.session_state["genres_by"] = "codes"
    with monkeypatch.context() as patch:
        # the nearest songs are not needed here
        patch.setattr("musicsim.extensions.guessing.guess.VectorVoters", None)
        app.run()
    assert not app.exception
    assert any("two different labels" in info.value for info in app.info)
    app.segmented_control(key="genres_by").set_value("vectors").run()
    assert not app.exception
    assert any("1 of 1 songs without a genre" in c.value for c in app.caption)


def test_artists_are_guessed_with_albums(full):
    full.edits.edit([song.id for song in full.songs()], {"album": "the one"})
    truth = {i: artist for artist, i in {song.artist: song.id for song in full.songs()}.items()}
    full.edits.edit(truth, {"artist": None, "album": None})
    app = open_page("library")
    app.session_state["library_section"] = "artists"
    app.run()
    assert not app.exception
    assert not any("without an artist" in c.value for c in app.caption), "guesses of artists are not wanted by most"
    app.toggle(key="guess_artists").set_value(True).run()
    assert any("3 of 3 songs without an artist" in c.value for c in app.caption)
    app.button(key="artists_accept").click().run()
    found = {song.id: (song.artist, song.album) for song in full.songs() if song.id in truth}
    assert found == {i: (artist, "the one") for i, artist in truth.items()}
    app.button(key="artists_back").click().run()
    assert not app.exception
    assert {song.artist for song in full.songs() if song.id in truth} == {None}


def test_accept_all_requires_min_accuracy():
    found = Guesses("genre", [], GuessShares({1: 0.5, 6: MIN_RIGHT, 8: 0.95}, None, 50), 50)
    assert [found.can_accept_all(least) for least in (1, 6, 8, 10)] == [False, True, True, False]
