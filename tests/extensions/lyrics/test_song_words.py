"""Tests of words of lyrics as a filter, as labels for playlists, and as a representation."""

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.explorer.models.files import save_model_file
from musicsim.explorer.playlists.song_labels import learn_sources
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation, import_model_file
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.query import find_similar, read_example
from musicsim.explorer.snapshot.filtering import filter_rows
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.snapshot.words import parse_words
from musicsim.extensions.lyrics.store import LyricsStore, UnreadSong
from tests.extensions.lyrics.songs import sing_by_kind
from tests.learning import hush
from tests.sounds import write_song


@pytest.mark.parametrize("text", ["rain", "about rain"])
def test_lyrics_words_filter_songs(tiny_library, text):
    songs = tiny_library.songs()
    sung = UnreadSong(songs[5].id, songs[5].path, 0, None)
    LyricsStore(tiny_library).put([(sung, {"rain": 3, "fall": 1})])
    seen = take_snapshot(tiny_library)
    (row,) = filter_rows(seen, Filters(words=text)).nonzero()[0]
    assert seen.songs_at([row])[0].id == songs[5].id
    assert [part.words for part in parse_words(seen, text).parts] == ["lyrics with “rain”"]
    assert parse_words(seen, "about xyzzy").unknown == ("xyzzy",)


def test_lyrics_model_finds_similar_songs_and_round_trips(twelve, tmp_path):
    sing_by_kind(twelve)
    model_id = add_representation(twelve, RepresentationSettings("lyrics"), "words", hush)
    seen = take_snapshot(twelve, model_id)
    assert len(seen.songs_at()) == 24
    assert np.isfinite(seen.map).all()
    for song in twelve.songs():
        (first, *_) = find_similar(seen, song.id, 1)
        assert first.song.genre == song.genre
    again = seen.model.vectors(twelve.models.features(model_id).X)
    np.testing.assert_array_equal(again, twelve.vectors(model_id).X)
    outside = write_song(tmp_path / "new.flac", "noise", seed=99).read_bytes()
    with pytest.raises(ModelError, match="not available for uploaded sound"):
        read_example(seen, outside, "new.flac")
    save_model_file(twelve, model_id, tmp_path / "words.musicsim")
    taken = take_snapshot(twelve, import_model_file(twelve, tmp_path / "words.musicsim", hush))
    np.testing.assert_array_equal(taken.X[np.argsort(taken.row_ids)], seen.X[np.argsort(seen.row_ids)])


def test_lyrics_model_requires_lyrics(twelve):
    with pytest.raises(ModelError, match="the songs in this library do not share any words"):
        add_representation(twelve, RepresentationSettings("lyrics"), "words", hush)


def test_lyrics_topics_are_learned_for_playlists(twelve, monkeypatch):
    monkeypatch.setattr("musicsim.explorer.playlists.song_labels.MIN_WITH_WORDS", 24)
    files = twelve.files.list_known().items()
    words = {file.song_id: f"word{'abcdefgh'[n // 3]}" for n, (_, file) in enumerate(files)}  # each for three songs
    LyricsStore(twelve).put(
        (UnreadSong(file.song_id, path, file.mtime_ns, None), {words[file.song_id]: 3}) for path, file in files
    )
    seen = take_snapshot(twelve)
    sources = learn_sources(seen, [], hush)
    assert sources.topics.shape[0] == 24
    assert (sources.topics[:, 0] >= 0).all()
    assert {word for words in sources.topic_words for word in words.split()} == set(words.values())
    monkeypatch.setattr("musicsim.explorer.playlists.song_labels.load_hooks", lambda _: [])
    without = learn_sources(seen, [], hush)
    assert without.topic_words == ()
    assert (without.topics == -1).all()
