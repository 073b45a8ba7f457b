"""Tests of contributions: their numbers, their bytes, and the checks of files from other people."""

import json
import re
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsim import __version__
from musicsim.errors import LibraryError, ModelError
from musicsim.explorer.requests.training import TRAINING_KINDS
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.pooling.contribution import Contribution, read_contribution
from musicsim.extensions.pooling.disclosure import COUNTS, FAMILIES, SHARES, estimate, step_of
from musicsim.extensions.pooling.measuring import contribute, identify_model, list_comparable
from musicsim.library import Library
from musicsim.library.stores.models import ModelRecord
from tests.command import run
from tests.extensions.pooling.examples import write_example
from tests.learning import hush


@pytest.fixture
def library(own_styles):
    return own_styles


def bring_noise(library):
    """Import vectors without any information."""
    adding = pytest.importorskip("musicsim.extensions.embeddings.adding", reason="another extension")
    path = library.folder.parent / "net.npz"
    vectors = np.random.default_rng(0).standard_normal((30, 6)).astype(np.float32)
    np.savez(path, ids=[song.id for song in library.songs()], vectors=vectors)
    adding.add_own_vectors(library, path, "my private name", hush)


def average_precision(relevant):
    hits = np.flatnonzero(relevant)
    return np.mean([(i + 1) / (place + 1) for i, place in enumerate(hits)])


def test_difference_matches_brute_force(library):
    bring_noise(library)
    contribution = contribute(library, "my private name", "genre", "net-1.0")
    assert [one.name for one in contribution.models] == ["Sound", "net-1.0"]
    ours = take_snapshot(library, library.models.native().id)
    theirs = take_snapshot(library, library.models.find("my private name").id)
    genre, artist = (np.array(getattr(ours.columns, name).texts()) for name in ("genre", "group"))
    rows = np.arange(30)
    scores = []
    for snapshot, own in ((ours, rows), (theirs, theirs.rows_of(ours.row_ids))):
        precisions = []
        for q in rows:
            others = rows[artist != artist[q]]
            query, database = snapshot.X[own[q]], own[others]
            distances = np.linalg.norm(snapshot.X[database] - query, axis=1)
            order = others[np.argsort(snapshot.adjust_distances(query, distances, database), kind="stable")]
            precisions.append(average_precision(genre[order] == genre[q]))
        scores.append(np.array(precisions))
    truth = estimate(scores[1] - scores[0], artist)
    found = contribution.differences["map"]
    step = step_of(truth.error)[0]
    assert found.mean == pytest.approx(truth.mean, abs=step / 4 + 1e-6)
    assert found.standard_error == pytest.approx(truth.error, rel=0.0501)
    (fold,) = found.folds  # thirty songs make one cell
    interval = (truth.mean - truth.half, truth.mean + truth.half)
    assert (fold.low, fold.high) == pytest.approx(interval, abs=step / 2 + 1e-6)
    counts = contribution.library
    assert (counts.songs, counts.artists, counts.genres) == ("20 to 49", "10 to 19", "0")


def test_same_library_gives_same_bytes(library, styles_library, tmp_path):
    first = contribute(library, "Codewords", "genre").text
    shutil.copytree(styles_library, tmp_path / "elsewhere" / "other")
    with Library.open(tmp_path / "elsewhere" / "other") as other:
        assert contribute(other, "Codewords", "genre").text == first


UNUSUAL = st.text("qxzjkvw", min_size=7, max_size=20)


def leaves(value):
    """Yield all keys, texts and numbers of a JSON value."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for item in value if isinstance(value, list) else []:
        yield from leaves(item)
    if not isinstance(value, list):
        yield value


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    artists=st.lists(UNUSUAL, min_size=15, max_size=15, unique=True),
    titles=st.lists(UNUSUAL, min_size=30, max_size=30, unique=True),
    genres=st.lists(UNUSUAL, min_size=3, max_size=3, unique=True),
)
def test_no_name_or_number_of_songs_is_in_the_bytes(library, artists, titles, genres):
    songs = library.songs()
    for number, (song, title) in enumerate(zip(songs, titles, strict=True)):
        edits = {"title": title, "artist": artists[number // 2], "genre": genres[number // 2 % 3], "album": title[::-1]}
        library.edits.edit([song.id], edits)
    text = contribute(library, "Codewords", "genre").text
    for private in (*artists, *titles, *genres, *(title[::-1] for title in titles), str(library.folder), ".flac"):
        assert private not in text
    assert not any(song.content_hash in text or song.path.name in text for song in songs)
    content = json.loads(text)
    words = {*COUNTS, *SHARES, *FAMILIES, *TRAINING_KINDS, "Sound", "Codewords", "musicsim contribution", "digest"}
    keys = {key for key in leaves(Contribution.model_json_schema()) if isinstance(key, str)}
    assert content.pop("musicsim") == __version__
    content.pop("commit")
    for leaf in leaves(content):
        if isinstance(leaf, str):
            assert leaf in words | keys or re.fullmatch("[0-9a-f]{16}|[0-9a-f]{64}", leaf)
        else:
            assert isinstance(leaf, float) or leaf == 1, "the format's version is the only integer"


def test_too_few_songs_give_no_contribution(library):
    for song in library.songs()[10:]:
        library.edits.edit([song.id], {"genre": ""})
    with pytest.raises(ModelError, match="at least 20 query songs by 5 artists"):
        contribute(library, "Codewords", "genre")


def record(**settings):
    return ModelRecord("id", "my private name", 0.0, 1, 1, 1, kind="representation", settings=settings)


def test_hash_names_the_network_but_not_imported_vectors():
    named = [
        identify_model(record(representation="mean", vectors=vectors), "MERT-v1-95M") for vectors in ("one", "other")
    ]
    assert named[0] == named[1], "a hash of imported vectors would identify the library"
    pytest.importorskip("musicsim.extensions.embeddings.representations", reason="another extension")
    from musicsim.extensions.embeddings.representations import EAR

    ears = [identify_model(record(representation=EAR, vectors=vectors), "MusiCNN") for vectors in ("one", "other")]
    assert ears[0].hash != ears[1].hash
    with pytest.raises(ModelError, match="Choose a public name"):
        identify_model(record(representation=EAR, vectors="one"))


def test_models_trained_here_are_not_comparable(library):
    assert [one.name for one in list_comparable(library)] == ["Codewords"]
    with pytest.raises(ModelError, match="neither Sound nor trained here"):
        contribute(library, "Sound", "genre")


def test_evaluate_prints_every_byte_that_it_writes(library, tmp_path):
    pytest.importorskip("musicsim.extensions.model_comparison", reason="another extension has --against")
    options = ("evaluate", "--against", "Codewords", "--truth", "genre")
    target = tmp_path / "out.json"
    out, _ = run(*options, "--contribute", target, library=library.folder)
    written = target.read_text(encoding="ascii")
    assert out.startswith(written)
    assert f"all {target.stat().st_size:,} bytes of" in out
    assert read_contribution(target).text == written
    told = json.loads(run(*options, "--contribute", target, "--json", library=library.folder)[0])
    assert told["text"] == target.read_text(encoding="ascii") == written
    assert "--against MODEL" in run("evaluate", "--contribute", target, library=library.folder, expect=2)[1]
    assert "allows only" in run(*options, "--contribute", target, "--model", "Sound", library=library.folder, expect=2)[
        1
    ].replace("\n", " ")


def change(path, **values):
    content = json.loads(path.read_text(encoding="utf-8")) | values
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.write_text("no JSON", encoding="utf-8"), "is not a contribution"),
        (lambda path: path.write_text("[" * 20_000, encoding="utf-8"), "is not a contribution"),
        (lambda path: path.write_text("{}", encoding="utf-8"), "is not a contribution"),
        (lambda path: path.write_bytes(b" " * 1_100_000), "larger than 1 MB"),
        (lambda path: path.unlink(), "No such file"),
        (lambda path: change(path, title="Song"), "title: Extra inputs"),
        (lambda path: change(path, ground_truth="mood"), "ground_truth: "),
        (lambda path: change(path, version=2), "version: "),
        (lambda path: change(path, differences={}), "differences: "),
        (lambda path: change(path, ground_truth="artist"), "was changed after it was written"),
    ],
)
def test_invalid_files_are_named(tmp_path, damage, words):
    path = write_example(tmp_path / "mine.json", 0.1)
    damage(path)
    with pytest.raises(LibraryError, match=words) as caught:
        read_contribution(path)
    assert str(path) in str(caught.value)
