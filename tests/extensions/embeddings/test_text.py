"""Tests of texts that find songs by sound, with a small pair of networks."""

import json
import shutil
import sys

import numpy as np
import pytest
import soxr
from fastapi.testclient import TestClient

from musicsim.api.http import http_interface
from musicsim.audio import SAMPLE_RATE, load
from musicsim.errors import LibraryError, ModelError, NotFoundError
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.matches import song_matches
from musicsim.explorer.search.requested import find_requested
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.snapshot.words import parse_words
from musicsim.extensions.embeddings.adding import add_text
from musicsim.extensions.embeddings.representations import TextNetwork
from musicsim.library import Library
from musicsim.library.archive.backups import back_up, restore
from tests.command import run
from tests.extensions.embeddings.text_files import (
    RATE,
    clap_input,
    repeat_and_pad,
    write_audio,
    write_pair,
    write_text,
    write_tokenizer,
)
from tests.learning import hush
from tests.sounds import write_song

TEXT = "dreamy waterfall"  # no word of it is in the library


def true_text(folder, text):
    """Return the mean row of the table over the tokens."""
    ids = write_tokenizer(folder / "again.json").encode(text).ids
    return write_text(folder / "again.onnx")[ids].astype(np.float64).mean(axis=0)


def true_sound(path):
    samples = soxr.resample(load(path), SAMPLE_RATE, RATE)
    return clap_input(repeat_and_pad(samples)).mean(axis=0, dtype=np.float64) + 60


def true_order(library, folder, text):
    """Return the ids of all songs by brute force."""
    songs = library.songs()
    X, v = np.array([true_sound(song.path) for song in songs]), true_text(folder, text)
    cosines = X @ v / np.linalg.norm(X, axis=1) / np.linalg.norm(v)
    return [songs[i].id for i in np.argsort(-cosines)]


@pytest.fixture
def pair(tmp_path):
    return write_pair(tmp_path / "pair")


def test_songs_are_described_as_by_transformers(tiny_library, pair):
    stored = tiny_library.models.features(add_text(tiny_library, *pair, hush))
    paths = {song.id: song.path for song in tiny_library.songs()}
    assert len(stored.song_ids) == len(paths)
    # bands above 11 kHz are rounding errors in both
    for song_id, features in zip(stored.song_ids.tolist(), stored.X, strict=True):
        np.testing.assert_allclose(features[:59], true_sound(paths[song_id])[:59], atol=0.05)


def test_commands_rank_by_cosine_to_text(tiny_library, pair, tmp_path):
    folder = tiny_library.folder
    in_use = tiny_library.models.active().id
    added = json.loads(run("models", "add-text", *pair, "--name", "CLAP", "--json", library=folder)[0])
    assert added == {"model": "CLAP", "dimensions": 64}
    assert tiny_library.models.active().id == in_use
    expected = true_order(tiny_library, tmp_path, TEXT)[:4]  # a third of twelve songs
    for words in (TEXT, f"sounds like {TEXT}"):
        rows = json.loads(run("similar", "--words", words, "--per-artist", 0, "--json", library=folder)[0])
        assert [row["id"] for row in rows] == expected
        assert all(row["reason"].startswith(f"sounds like “{TEXT}”") for row in rows)


def test_http_ranks_by_text(tiny_library, pair, tmp_path, monkeypatch):
    add_text(tiny_library, *pair, hush)
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    with TestClient(http_interface()) as client:
        rows = client.get("/similar", params={"words": TEXT, "per_artist": 0}).json()
    assert [row["id"] for row in rows] == true_order(tiny_library, tmp_path, TEXT)[:4]


def test_known_words_filter_first(tiny_library, pair, tmp_path):
    add_text(tiny_library, *pair, hush)
    snapshot = take_snapshot(tiny_library)
    genre = tiny_library.songs()[0].genre
    words = parse_words(snapshot, f"{genre} waterfall")
    assert [part.words for part in words.parts] == [f"“{genre}”", "sounds like “waterfall”"]
    assert parse_words(snapshot, words.known).known == words.known
    assert parse_words(snapshot, words.drop_part(0)).known == "sounds like waterfall"
    whole = parse_words(snapshot, f"sounds like {genre} waterfall")
    assert [part.words for part in whole.parts] == [f"sounds like “{genre.casefold()} waterfall”"]
    assert parse_words(snapshot, "not waterfall").unknown == ("waterfall",)
    nearest = true_order(tiny_library, tmp_path, "waterfall")[:4]
    genres = {song.id: song.genre for song in tiny_library.songs()}
    hits = find_requested(snapshot, None, SearchRequest(words=words.known, per_artist=0))
    assert [hit.song.id for hit in hits] == [i for i in nearest if genres[i] == genre]


def test_search_box_offers_ranking_by_sound(tiny_library, pair):
    add_text(tiny_library, *pair, hush)
    snapshot = take_snapshot(tiny_library)
    (match,) = song_matches(snapshot, TEXT)
    assert (match.kind, match.value, match.sub) == ("words", f"sounds like {TEXT}", "songs ranked by sound")
    assert [match.value for match in song_matches(snapshot, "slow")][-2:] == ["slow", "sounds like slow"]


def test_without_pair_nothing_changes(tiny_library):
    snapshot = take_snapshot(tiny_library)
    assert parse_words(snapshot, f"slow {TEXT}").unknown == tuple(TEXT.split())
    assert song_matches(snapshot, TEXT) == []
    assert [match.value for match in song_matches(snapshot, "slow")][-1:] == ["slow"]
    with pytest.raises(NotFoundError, match="nothing matches “dreamy”, “waterfall”"):
        find_requested(snapshot, None, SearchRequest(words=TEXT))


def test_without_its_packages_words_have_their_other_meanings(tiny_library, pair, monkeypatch):
    add_text(tiny_library, *pair, hush)
    monkeypatch.setattr("musicsim.extensions.embeddings.representations.find_spec", lambda _: None)
    assert parse_words(take_snapshot(tiny_library), TEXT).unknown == tuple(TEXT.split())


def test_new_songs_are_ranked(tiny_library, pair, tmp_path):
    add_text(tiny_library, *pair, hush)
    tiny_library.add(write_song(tmp_path / "new.flac", "drums", seed=9, seconds=4.0))
    refresh(tiny_library)
    expected = true_order(tiny_library, tmp_path, TEXT)
    (part,) = parse_words(take_snapshot(tiny_library), TEXT).parts
    assert len(expected) == 13
    assert part.rank().tolist() == expected


def test_network_with_fixed_length_ignores_padding(tmp_path):
    _, text, tokenizer = write_pair(tmp_path / "pair", length=20)
    expected = true_text(tmp_path, TEXT)
    vector = TextNetwork.at(text, tokenizer).embed(TEXT)
    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)
    assert np.isfinite(TextNetwork.at(text, tokenizer).embed("long " * 100)).all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            lambda pair: write_text(pair[1], width=32),
            ModelError,
            r"clap\.onnx gives vectors of 64 .* words\.onnx .* 32",
        ),
        (
            lambda pair: write_text(pair[1], names=("ids", "masks")),
            ModelError,
            "its inputs are ids, masks; they must be",
        ),
        (lambda pair: pair[2].unlink(), LibraryError, r"tokenizer\.json is missing"),
        (lambda pair: pair[2].write_text("{}"), ModelError, r"tokenizer\.json: it is not a tokenizer"),
        (lambda pair: write_audio(pair[0], ("n", 4, 1001, 64)), ModelError, r"shape \(n, 4, 1001, 64\); it must be"),
        (lambda pair: shutil.copy(pair[1], pair[0]), ModelError, r"clap\.onnx: it has 2 inputs"),
        (lambda pair: pair[1].unlink(), LibraryError, r"words\.onnx is missing"),
    ],
)
def test_invalid_pairs_leave_nothing(tiny_library, pair, change, error, words):
    change(pair)
    with pytest.raises(error, match=words):
        add_text(tiny_library, *pair, hush)
    assert not list((tiny_library.folder / "embeddings").glob("*"))
    assert parse_words(take_snapshot(tiny_library), TEXT).parts == ()


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_missing_package_is_named(pair, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(LibraryError, match=rf"needs .*{package}.*pip install"):
        TextNetwork.at(*pair[1:]).embed("never embedded before")


def test_queue_from_words_plays_songs_by_sound(full, pair, tmp_path):
    add_text(full, *pair, hush)
    with TestClient(http_interface()) as client:
        answer = client.post("/queue", json={"search": {"words": TEXT}}).json()
    items = answer["items"][:2]  # the other two are by the same artists
    assert [item["song"]["id"] for item in items] == true_order(full, tmp_path, TEXT)[:2]
    assert all(item["reason"].startswith(f"sounds like “{TEXT}”") for item in items)
    assert answer["unknown_words"] == []


def test_backup_contains_pair(tiny_library, pair, tmp_path):
    add_text(tiny_library, *pair, hush)
    back_up(tiny_library, tmp_path / "copy.musicsim", hush)
    restore(tmp_path / "copy.musicsim", tmp_path / "restored", hush, accept=lambda _: True)
    with Library.open(tmp_path / "restored") as restored:
        parts = [parse_words(take_snapshot(one), TEXT).parts for one in (tiny_library, restored)]
    assert [part.words for part in parts[1]] == [f"sounds like “{TEXT}”"]
    assert parts[0][0].rank().tolist() == parts[1][0].rank().tolist()
