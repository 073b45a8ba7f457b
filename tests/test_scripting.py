"""The library for scripts and notebooks: data frames against the store, vectors against distances, files on disk."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import musicsim as ms
from musicsim.errors import AudioError, ModelError, NotFoundError
from tests.sounds import write_song

ROOT = Path(__file__).parents[1]


@pytest.fixture
def lib(full):
    with ms.Library(full.folder) as opened:
        yield opened


def test_songs_and_vectors_have_the_same_order(lib):
    songs, X = lib.songs(), lib.vectors()
    assert len(songs) == len(X) == len(lib)
    stored = lib.store.vectors()
    assert np.array_equal(X[[songs.index.get_loc(i) for i in stored.song_ids]], stored.X)
    assert songs.title.tolist() == [lib.store.song(i).title for i in songs.index]
    assert len(lib.songs("Codewords")) == len(lib.vectors("Codewords"))


def test_nearest_songs_are_those_of_plain_distance(lib):
    songs, X = lib.songs(), lib.vectors()
    found = lib.similar(int(songs.index[0]), k=5)
    nearest = np.argsort(((X - X[0]) ** 2).sum(axis=1))[1:6]
    assert found.index.tolist() == songs.index[nearest].tolist()
    assert found.similarity.is_monotonic_decreasing
    assert list(found) == ["similarity", "title", "artist", "reason"]


def test_song_is_named_by_title_artist_file_or_samples(lib, tmp_path):
    song = lib.store.songs()[0]
    expected = lib.similar(song.id, k=3)
    for name in (song.title, f"{song.artist} - {song.title.upper()}"):
        assert lib.similar(name, k=3).equals(expected)
    samples = ms.audio.load(song.path)
    for sound in (song.path, samples):  # the song itself is found by its sound, and left out
        assert lib.similar(sound, k=3).index.tolist() == expected.index.tolist()
    with pytest.raises(NotFoundError, match="no song is called “nothing like this”"):
        lib.similar("nothing like this")
    with pytest.raises(AudioError, match="the samples"):
        lib.similar(samples[:100])


def test_words_describe_songs(lib):
    songs = lib.songs()
    found = lib.similar("fast", k=3)
    assert found.similarity.isna().all()
    assert (songs.tempo[found.index] >= songs.tempo.median()).all()


def test_playlist_is_written_and_saved(lib, tmp_path):
    songs = lib.songs()
    first, last = songs.title.iloc[0], int(songs.index[4])
    walk = lib.playlist(first=first, through=[last], length=6, random_state=0)
    assert walk.songs.index[[0, -1]].tolist() == [songs.index[0], last]
    assert walk.songs.equals(lib.playlist(first=first, through=[last], length=6, random_state=0).songs)
    assert walk.to_m3u8(tmp_path / "evening.m3u8") == []
    lines = (tmp_path / "evening.m3u8").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == songs.path[walk.songs.index].map(str).tolist()
    walk.save("Evening")
    assert [one.song_ids for one in lib.store.playlists() if one.name == "Evening"] == [tuple(walk.songs.index)]


def test_new_library_is_created_and_filled(tmp_path, capsys):
    write_song(tmp_path / "music" / "one.flac", title="One", seconds=25)
    with ms.Library(tmp_path / "new") as lib:
        report = lib.add(tmp_path / "music", progress=False)
        assert (report.n_added, lib.songs().shape[0]) == (1, 1)
        with pytest.raises(ValueError, match="sources is empty"):
            lib.add()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("unfitted", [ms.WCCN(), make_pipeline(StandardScaler(), PCA(5)), ms.GMML(reg=1.0)])
def test_fitted_metric_becomes_model_with_the_same_neighbors(lib, unfitted):
    X, artists = lib.vectors(), lib.songs().artist
    estimator = clone(unfitted).fit(X, artists)
    name = lib.models.add("mine", estimator)
    Y, Z = np.asarray(estimator.transform(X), dtype=np.float64), lib.vectors(name).astype(np.float64)
    own = np.linalg.norm(Y[:, None] - Y, axis=2)
    theirs = np.linalg.norm(Z[:, None] - Z, axis=2)
    factor = np.sqrt((theirs**2).sum() / (own**2).sum())
    # vectors are stored as float32
    assert np.abs(theirs - factor * own).max() <= 1e-5 * theirs.max()
    for row, song in enumerate(lib.songs(name).index[:3]):
        nearest = lib.songs(name).index[np.argsort(theirs[row])[1:6]]
        assert lib.similar(int(song), k=5, model=name).index.tolist() == nearest.tolist()
    assert lib.models().loc[name, "kind"] == "fitted"
    lib.models.use(name)
    assert lib.models().in_use[lambda is_used: is_used].index.tolist() == [name]
    lib.models.delete(name)
    assert name not in lib.models().index


def test_fitted_model_describes_new_songs(lib, tmp_path):
    estimator = PCA(3).fit(lib.vectors())
    lib.models.add("mine", estimator, on="Sound")
    write_song(tmp_path / "more" / "new.flac", title="New", seconds=25)
    lib.add(tmp_path / "more", progress=False)
    assert len(lib.vectors("mine")) == len(lib.vectors("Sound")) == len(lib)
    Y = estimator.transform(lib.vectors("Sound"))
    assert (
        np.corrcoef(
            np.linalg.norm(Y - Y[0], axis=1), np.linalg.norm(lib.vectors("mine") - lib.vectors("mine")[0], axis=1)
        )[0, 1]
        > 0.999
    )


@pytest.mark.parametrize(
    ("estimator", "words"),
    [(KNeighborsRegressor(), "has no method transform"), (PCA(2).fit(np.eye(4)), "cannot transform vectors")],
)
def test_other_estimators_are_refused(lib, estimator, words):
    n_models = len(lib.models())
    with pytest.raises(ModelError, match=words):
        lib.models.add("mine", estimator)
    assert len(lib.models()) == n_models


def test_estimator_that_is_not_linear_is_refused(lib):
    class Squares:
        def transform(self, X):
            return X**2

    with pytest.raises(ModelError, match="Squares is not linear"):
        lib.models.add("mine", Squares())


def test_import_of_package_is_fast_and_lazy():
    code = "import sys, musicsim; print(*(n for n in ('numpy', 'pandas', 'streamlit', 'librosa') if n in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert loaded.stdout.strip() == ""


def test_every_public_name_can_be_imported():
    stub = ast.parse((ROOT / "musicsim" / "__init__.pyi").read_text(encoding="utf-8"))
    names = [
        alias.asname or alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    assert len(names) > 20
    assert set(names) <= set(dir(ms))
    for name in names:
        assert getattr(ms, name) is not None


def test_unknown_words_are_named(lib):
    with pytest.raises(NotFoundError, match="As a query, it contains unknown words: qwertz"):
        lib.similar("fast qwertz")
