"""Tests of matching songs by id, by exact and by loose names. Similar names are only proposed."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.library.importing import Matcher, NamedSong
from musicsim.library.importing.spelling import exact, plain_artist, plain_title
from tests.library.listening import add_songs

LATIN = st.text(
    st.characters(codec="latin-1", categories=("L", "N", "P", "Zs")) | st.sampled_from("ñöéåçÀ &-()'"), max_size=40
)
ANY = st.text(max_size=30)


@given(ANY | LATIN)
def test_normalization_is_idempotent(text):
    plain = plain_title(text)[0]
    assert plain_title(plain) == (plain, "", "")
    artist = plain_artist(text)
    assert plain_artist(artist) == artist
    once = exact(text, text)
    assert exact(*once) == once


@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyzéöñå", min_size=1, max_size=8), min_size=1, max_size=5))
def test_case_accents_and_punctuation_are_ignored(words):
    name = " ".join(words)
    bare = "".join(c for c in unicodedata.normalize("NFD", name) if not unicodedata.combining(c))
    for other in (name.upper(), bare, name.replace(" ", ".  "), name + "!", unicodedata.normalize("NFD", name)):
        assert plain_title(other)[0] == plain_title(name)[0]
        assert plain_artist(other) == plain_artist(name)


@pytest.mark.parametrize(
    ("title", "plain", "version", "kind"),
    [
        ("Help!", "help", "", ""),
        ("Help! - Remastered 2009", "help", "", ""),
        ("Help! (2009 Digital Remaster)", "help", "", ""),
        ("Help! [Mono]", "help", "", ""),
        ("Help! (feat. Somebody)", "help", "", ""),
        ("Help! ft. Somebody", "help", "", ""),
        ("Help! (with Somebody)", "help", "", ""),
        ("Help! - Radio Edit", "help", "", ""),
        ("Help! (Live at Shea) [Remastered 2011]", "help", "live at shea", "live"),
        ("Help! - Live", "help", "live", "live"),
        ("Help! (DJ X Remix)", "help", "dj x remix", "remix"),
        ("Help! (Acoustic)", "help", "acoustic", "acoustic"),
        ("Rock & Roll", "rock and roll", "", ""),
        ("The Rock'n'Roll", "rocknroll", "", ""),
        ("Live and Let Die", "live and let die", "", ""),
        ("(I Can't Get No) Satisfaction", "i cant get no satisfaction", "", ""),
        ("Song - Two - Live - 2011 Remaster", "song two", "live", "live"),
        ("Song - Take Me Home", "song take me home", "", ""),
        ("Paper Planes (Live Your Life)", "paper planes live your life", "", ""),
        ("Concerto in D - II. Piano", "concerto in d ii piano", "", ""),
        ("Song (Piano Version)", "song", "piano version", "acoustic"),
        ("Song (Radio Edit)", "song", "", ""),
        ("Song (2011 Mix)", "song", "", ""),
        ("Live", "live", "", ""),
        ("(Live)", "live", "", ""),
        ("!!!", "!!!", "", ""),
        ("東京", "東京", "", ""),
    ],
)
def test_titles_are_normalized(title, plain, version, kind):
    assert plain_title(title) == (plain, version, kind)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Beatles", "Beatles"),
        ("Beatles, The", "the beatles"),
        ("Sigur Rós", "Sigur Ros"),
        ("Simon & Garfunkel", "Simon and Garfunkel"),
        ("Drake feat. Rihanna", "Drake"),
        ("AC/DC", "AC DC"),
        ("Guns N' Roses", "Guns and Roses"),
    ],
)
def test_artist_spellings_normalize_to_same_name(one, other):
    assert plain_artist(one) == plain_artist(other)


def found(library, artist, title, **more):
    match = Matcher(library).find(NamedSong(artist, title, **more))
    return (match.song_id, match.how) if match else None


def test_id_precedes_exact_name_and_loose_name(store):
    plain, remaster, by_id = add_songs(
        store,
        ("Beatles", "Help!"),
        ("The Beatles", "Help! (Remastered 2009)"),
        ("Somebody", "Other", {"mb_recording_id": "C7D0BF6E-b2aa-4ffa-bded-2448415b39b0"}),
    )
    assert found(store, "beatles", "help!") == (plain, "exact")
    assert found(store, "The Beatles", "Help!  (remastered 2009)") == (remaster, "exact")
    assert found(store, "The Beatles", "Help")[1] == "loose"
    mbid = "c7d0bf6e-b2aa-4ffa-bded-2448415b39b0"
    assert found(store, "Beatles", "Help!", mbid=mbid) == (by_id, "mbid")
    assert found(store, "Beatles", "Help!", mbid="another") == (plain, "exact")
    assert found(store, "Beatles", "Helper") is None


def test_version_matches_song_only_without_better_version(store):
    studio, live, remix = add_songs(
        store, ("Queen", "One"), ("Queen", "One (Live at Wembley)"), ("Queen", "One (X Remix)")
    )
    assert found(store, "Queen", "One - Live at Wembley") == (live, "loose")
    assert found(store, "Queen", "One (Live in Rio)") == (live, "loose")
    assert found(store, "Queen", "One - X Remix") == (remix, "loose")
    assert found(store, "Queen", "One (Y Remix)") == (studio, "loose"), "another remix is no such version"
    assert found(store, "Queen", "One (Acoustic)") == (studio, "loose")
    (only_live,) = add_songs(store, ("Queen", "Two (Live)"))
    assert found(store, "Queen", "Two") is None, "a live recording does not stand for the studio's"
    assert found(store, "Queen", "Two [Live at Wembley]") == (only_live, "loose")


def test_matching_prefers_present_then_album_then_longest(store):
    _missing, _short, long, of_album = add_songs(
        store,
        ("Air", "Sun", {"duration_s": 900.0, "is_missing": True, "album": "Moon"}),
        ("Air", "Sun", {"duration_s": 100.0}),
        ("Air", "Sun", {"duration_s": 300.0, "album": "Best of"}),
        ("Air", "Sun", {"duration_s": 200.0, "album": "Moon (Deluxe)"}),
    )
    assert found(store, "Air", "Sun") == (long, "exact")
    assert found(store, "Air", "Sun", album="moon") == (of_album, "exact")


def test_missing_song_is_better_than_none(store):
    (missing,) = add_songs(store, ("Air", "Sun", {"is_missing": True}))
    assert found(store, "Air", "Sun") == (missing, "exact")


def test_matches_album_artist_lead_artist_and_merged_spellings(store):
    (song,) = add_songs(store, ("Real Name", "Song", {"album_artist": "Stage Name"}))
    assert found(store, "Stage Name", "Song") == (song, "exact")
    assert found(store, "Stage Name, Guest", "Song") == (song, "loose")
    store.edits.merge(["Old Name"], "Real Name")
    assert found(store, "Old Name", "Song") == (song, "exact")


def test_close_spellings_are_proposed_with_their_score(store):
    queen, _fifth = add_songs(store, ("Queen", "Bohemian Rhapsody"), ("Beethoven", "Symphony No 5"))
    matcher = Matcher(store)
    asked = {
        NamedSong("Queen", "Bohemian Rapsody"): 3,
        NamedSong("Quen", "Bohemian Rhapsody"): 9,
        NamedSong("Beethoven", "Symphony No 6"): 7,
        NamedSong("Nobody", "Nothing"): 5,
    }
    assert all(matcher.find(song) is None for song in asked)
    proposals = matcher.propose(asked.items())
    assert [(p.song.artist, p.song_id, p.count) for p in proposals] == [("Quen", queen, 9), ("Queen", queen, 3)]
    # 2 M / T over the plain spellings: 16 common letters in order, of 16 + 17 letters
    assert proposals[1].score == pytest.approx(2 * 16 / 33)
    assert proposals[0].label == "Bohemian Rhapsody — Queen"


def test_unknown_artists_do_not_match(store):
    add_songs(store, ("Unknown Artist", "Track 1"), (None, "Track 1"))
    assert found(store, "Unknown Artist", "Track 1") is None
