"""Collections of descriptors, read from tiny files and as they are; the row of a changed query."""

import lzma

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks.support.search_data import SPOTIFY
from experiments.descriptors import Result, choose_by_validation, discriminants
from experiments.robustness import table
from experiments.support.descriptors import (
    LOADERS,
    Collection,
    load_cal500,
    load_fma,
    load_gtzan,
    load_lastfm,
    load_spotify,
    split_rows,
)
from musicsim.extensions.robustness.changes import UNCHANGED
from musicsim.extensions.robustness.measuring import QueryResult
from tests.shared import needs_data

# --- descriptors -----------------------------------------------------------------------------------------


needs_descriptors = needs_data("spotify_msd")


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    with lzma.open(path, "wt") as file:
        file.write(text)


def test_spotify_keeps_frequent_artists_and_unique_titles(shared):
    header = ",".join(["Artist", "Track", "followers", "popularity", *SPOTIFY])
    rows = [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"), ("a", "3"), ("b", "2")]
    lines = [f"{artist},{title},9,9,{','.join([str(i)] * 13)}" for i, (artist, title) in enumerate(rows)]
    write(shared / "spotify_msd/features_15k.csv.xz", "\n".join([header, *lines[:3]]))
    # the columns of the second file may stand in another order
    moved = header.replace("Artist,Track", "Track,Artist")
    swapped = [f"{title},{artist},{line.split(',', 2)[2]}" for (artist, title), line in zip(rows, lines, strict=True)]
    write(shared / "spotify_msd/features_5k.csv.xz", "\n".join([moved, *swapped[3:]]))
    songs = load_spotify()
    assert songs.X.tolist() == [[i] * 13 for i in (0, 1, 4)]  # b has two titles, one of them twice
    assert songs.artists.tolist() == songs.labels.tolist() == [0, 0, 0]


def test_lastfm_averages_songs_of_shared_artists(shared):
    header = ",".join(["Artist", "Track", *SPOTIFY])
    rows = [("One", 1), ("One", 3), ("Two", 5), ("Alone", 7), ("Unheard", 9)]
    lines = [f"{artist},{i},{','.join([str(value)] * 13)}" for i, (artist, value) in enumerate(rows)]
    write(shared / "spotify_msd/features_15k.csv.xz", "\n".join([header, *lines]))
    write(shared / "spotify_msd/features_5k.csv.xz", header)
    names = ["id\tname", "1\tONE", "2\ttwo", "3\tAlone", "4\tElsewhere"]
    plays = [(7, 1, 10), (8, 1, 99), (7, 2, 50), (9, 2, 12), (8, 2, 9), (9, 3, 80), (9, 4, 80), (8, 4, 80)]
    write(shared / "hetrec2011-lastfm-2k/artists.dat.xz", "\n".join(names))
    said = ["userID\tartistID\tweight", *("\t".join(map(str, play)) for play in plays)]
    write(shared / "hetrec2011-lastfm-2k/user_artists.dat.xz", "\n".join(said))
    artists = load_lastfm()
    assert artists.X.tolist() == [[2.0] * 13, [5.0] * 13]
    assert artists.tags.tolist() == [[1, 1, 0], [1, 0, 1]], "nine plays are too few"
    assert artists.inside


def test_automatic_picks_best_method_in_validation():
    def result(method, split, validation):
        return Result("x", method, split, {}, np.zeros(0, np.int64), 0.0, 1, "", np.nan, validation)

    native = [result("native", split, 0.5) for split in range(3)]
    learned = [result("MLR", split, of) for split, of in enumerate((0.4, 0.5, 0.6))]
    found = choose_by_validation([native, learned])
    assert [of.chosen for of in found] == ["native", "native", "MLR"]
    assert {of.method for of in found} == {"automatic"}


def test_gtzan_excludes_length(shared):
    text = "filename,length,a,b,label\nx.au,7,1,2,rock\ny.au,7,3,4,jazz\nz.au,7,5,6,rock\n"
    write(shared / "gtzan/features_30_sec.csv.xz", text)
    songs = load_gtzan()
    assert songs.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert songs.labels.tolist() == [0, 1, 0]
    assert len(set(songs.artists)) == 3


def test_fma_joins_by_track_and_skips_empty_songs(shared):
    head = "features,mfcc,mfcc\nstatistics,mean,std\nnumber,01,01\ntrack_id,,\n"
    write(shared / "fma_ntds/fma_features.csv.xz", head + "5,1,2\n2,,\n9,3,4\n7,5,6\n")
    (shared / "fma_ntds/fma_small_tracks.csv").write_text("track_id,genre,title\n9,Rock,x\n2,Rock,y\n5,Hip-Hop,z\n")
    songs = load_fma()
    assert songs.X.tolist() == [[1, 2], [3, 4]]
    assert songs.labels[0] != songs.labels[1]


def test_cal500_excludes_negative_tags(shared):
    write(
        shared / "cal500/CAL500.arff.xz",
        "@relation x\n\n@attribute one numeric\n@attribute two numeric\n@attribute Calm {0,1}\n"
        "@attribute NOT-Calm {0,1}\n@attribute Loud {0,1}\n\n@data\n0.5,1,1,0,0\n2,3,0,1,1\n",
    )
    songs = load_cal500()
    assert songs.X.tolist() == [[0.5, 1], [2, 3]]
    assert songs.tags.tolist() == [[1, 0], [0, 1]]


def test_tag_relevance_uses_highest_cosine(rng):
    tags = (rng.random((30, 12)) < 0.4).astype(float)
    tags[4] = 0
    songs = Collection(tags, None, np.arange(30), tags)
    queries, database = np.arange(0, 30, 2), np.arange(1, 30, 2)

    def expected(q, rows):
        norms = np.linalg.norm(tags[rows], axis=1) * np.linalg.norm(tags[q])
        cosine = np.where(norms > 0, tags[rows] @ tags[q] / np.where(norms > 0, norms, 1), 0)
        return cosine

    relevance = songs.relevance(queries, database)
    inside = songs.relevance(queries)
    for i, q in enumerate(queries):
        cosine = expected(q, database)
        found = relevance.relevant(i)
        assert len(found) == 10
        # equal cosines may go either way by rounding
        assert cosine[found].min() >= np.delete(cosine, found).max() - 1e-12
        among = inside.relevant(i)
        others = np.setdiff1d(np.arange(15), [*among, i])
        assert len(among) == 10
        assert i not in among
        assert expected(q, queries)[among].min() >= expected(q, queries)[others].max() - 1e-12


def test_label_relevance_matches_labels():
    songs = Collection(np.zeros((5, 1)), np.array([0, 1, 0, 1, 0]), np.arange(5))
    relevance = songs.relevance(np.array([0, 1]), np.array([2, 3, 4]))
    assert [relevance.relevant(i).tolist() for i in (0, 1)] == [[0, 2], [1]]
    inside = songs.relevance(np.array([0, 2, 3]))
    assert [inside.relevant(i).tolist() for i in (0, 1, 2)] == [[1], [0], []]


def test_artists_are_in_one_part_only(rng):
    artists = rng.integers(40, size=300)
    parts = split_rows(artists, seed=3)
    assert np.sort(np.concatenate(parts)).tolist() == list(range(300))
    found = [set(artists[rows]) for rows in parts]
    assert [len(f) for f in found] == [16, 12, 12]
    assert sum(map(len, found)) == len(set.union(*found))


def test_discriminants_match_scikit_learn(rng):
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 5)) + y[:, None] * rng.normal(size=5)
    mapped = X @ discriminants(X, y).T
    truth = LinearDiscriminantAnalysis().fit(X, y).transform(X)
    assert mapped.shape == (60, 2)
    np.testing.assert_allclose(mapped - mapped[0], truth - truth[0], atol=1e-9)


@needs_descriptors
@pytest.mark.parametrize(
    ("name", "n_songs", "d", "n_labels"),
    [
        ("spotify_msd", 7232, 13, 1659),
        ("gtzan", 1000, 57, 10),
        ("fma_ntds", 1990, 140, 2),
        ("cal500", 502, 68, 0),
        ("lastfm", 2002, 13, 0),
    ],
)
def test_collections_have_stated_sizes(name, n_songs, d, n_labels):
    songs = LOADERS[name]()
    assert songs.X.shape == (n_songs, d)
    assert np.isfinite(songs.X).all()
    assert len(np.unique(songs.labels) if songs.labels is not None else []) == n_labels


# --- robustness ------------------------------------------------------------------------------------------


def test_row_compares_with_the_unchanged_queries():
    labels = {song: "A" if song < 110 else "B" for song in range(100, 125)} | {1: "A", 2: "A"}
    plain = [QueryResult(True, tuple(range(100, 110))), QueryResult(True, tuple(range(105, 115)))]
    noisy = [QueryResult(False, (110, *range(101, 110))), plain[1]]
    first, second = table("made", "Sound", {UNCHANGED: plain, "noise": noisy}, [1, 2], labels, ["A", "B"], seed=0)
    assert (first["kept"], first["found"], first["P@1"]) == (1.0, 1.0, 1.0)
    assert (second["kept"], second["found"], second["P@1"]) == (pytest.approx(0.95), 0.5, 0.5)
    assert second["P@5"] == pytest.approx(0.9)
    assert second["difference P@1"].startswith("-0.500")
