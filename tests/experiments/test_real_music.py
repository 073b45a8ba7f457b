"""Real music: measures against loops, distances in closed form, labels, and a mirror of its packages."""

import csv
import hashlib
import io
import lzma
import tarfile
import threading
from fnmatch import fnmatchcase
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from experiments.albums import MEAN, distances, precisions
from experiments.factors import find_distances
from experiments.families import PAIRS, PLAIN, SOUND, confusions, find_families, pool, read_labels, table_rows
from experiments.several_examples import CHOSEN_LIKE, CHOSEN_UNLIKE, LIKE, UNLIKE, Case, Space, evaluate
from experiments.sound_changes import CHANGES, choose, describe, fit_gated, normal_scores, of_sound, take_power
from experiments.support import game_music
from experiments.support.blocks import block_features, joined_distances
from experiments.support.game_music import FetchError, fetch
from experiments.support.halves import gain_row, gains_of, halves
from experiments.support.music_sets import MusicSet
from experiments.support.parts import KeptParts
from experiments.support.pieces import MIN_PIECES, Pieces, Scores, euclidean, labelled, scores, with_proximity
from experiments.support.timbre import constants_of, scale_lengths
from musicsim import gaussians
from musicsim.audio import SongFrames
from musicsim.explorer.models.representations import SHAPE_SHARE, TIMBRE_SHRINKAGE
from musicsim.explorer.search.query import Examples, find_similar
from musicsim.explorer.snapshot.factors import Factors
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library

# --- real music ------------------------------------------------------------------------------------------


@pytest.fixture
def pieces():
    """24 pieces: composers of 6, 5, 4 pieces and 9 unknown ones, in three packages."""
    composers = np.array(["a"] * 6 + ["b"] * 5 + ["c"] * 4 + [""] * 9)
    packages = np.array([f"package {i % 3}" for i in range(24)])
    return Pieces((), composers, packages)


def test_scores_match_loops(pieces, rng):
    D = euclidean(rng.normal(size=(24, 4)))
    found = scores(D, pieces)
    queries = [i for i in range(24) if pieces.composers[i] in "ab" and pieces.composers[i]]
    assert pieces.queries.tolist() == queries
    assert MIN_PIECES == 5
    for i in range(24):
        near = sorted((j for j in range(24) if j != i), key=lambda j: D[i, j])
        own = [pieces.composers[j] == pieces.composers[i] for j in near]
        beside = [j for j in near if pieces.packages[j] == pieces.packages[i]]
        assert found.by_query["package"][i] == (near[0] == beside[0])
        of_own = [j for j in beside if pieces.composers[j] == pieces.composers[i]]
        of_others = [j for j in beside if pieces.composers[j] not in ("", pieces.composers[i])]
        if i in queries:
            assert found.by_query["P@1"][i] == own[0]
            assert found.by_query["P@5"][i] == pytest.approx(np.mean(own[:5]))
        else:
            assert np.isnan(found.by_query["P@1"][i])
        if i in queries and of_own and of_others:
            assert found.by_query["within"][i] == (beside[0] in of_own)
        else:
            assert np.isnan(found.by_query["within"][i])


@pytest.mark.parametrize("share", [1.0, 1 / 3])
def test_proximity_order_matches_definition(rng, share):
    D = euclidean(rng.normal(size=(31, 5)))
    ours = with_proximity(D, share)
    near = [np.sort(np.delete(D[i], i))[: round(share * 30)] for i in range(31)]
    for i in (0, 7, 30):
        others = np.delete(np.arange(31), i)
        p = [np.prod([norm.sf(D[i, j], near[k].mean(), near[k].std()) for k in (i, j)]) for j in others.tolist()]
        assert np.argsort(ours[i, others]).tolist() == np.argsort(-np.array(p)).tolist()


def test_labels_match_songs_by_folder_and_file_name(tiny_library, tmp_path):
    songs = sorted(tiny_library.songs(), key=lambda song: song.content_hash)
    table = tmp_path / "labels.csv"
    with table.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "package"])
        for song in songs[:5]:
            writer.writerow([f"usr/share/{song.path.parent.name}/{song.path.name}", song.artist, "elsewhere"])
    found = labelled(tiny_library, table)
    assert found.songs == tuple(songs[:5])
    assert found.composers.tolist() == [song.artist for song in songs[:5]]
    table.write_text("path,label,package\nno/such.ogg,x,y\n")
    with pytest.raises(ValueError, match="none of its rows is of a song"):
        labelled(tiny_library, table)


def test_each_composer_is_in_one_half(pieces):
    for is_out in halves(pieces, 5, 0):
        for composer in "abc":
            assert len(set(is_out[pieces.composers == composer].tolist())) == 1
        assert not is_out[pieces.composers == ""].any()
        assert {bool(is_out[0]), bool(is_out[6])} == {False, True}


def test_gain_averages_splits_with_held_out_piece(pieces, rng):
    before, after = (scores(euclidean(rng.normal(size=(24, 4))), pieces) for _ in range(2))
    splits = list(halves(pieces, 4, 0))
    row = gain_row("learning", "x", [gains_of(after, before, is_out) for is_out in splits], pieces, 0)
    change = after.by_query["P@5"] - before.by_query["P@5"]
    of_pieces = [change[i] for i in pieces.queries if any(is_out[i] for is_out in splits)]
    of_splits = [np.nanmean(change[is_out]) for is_out in splits]
    assert row["lead P@5"].startswith(f"{np.mean(of_pieces):+.3f} (")
    assert row["lead P@5"].endswith(f"sd {np.std(of_splits):.3f}, worst {np.min(of_splits):+.3f}")
    assert (row["splits"], row["skew"]) == (4, pytest.approx(after.skew))


def test_finished_parts_are_not_measured_again(tmp_path):
    kept, calls = KeptParts(tmp_path), []

    def measure():
        calls.append(1)
        return [{"what": "a", "value": np.float64(0.5)}]

    assert kept.rows("a", measure) == KeptParts(tmp_path).rows("a", measure) == [{"what": "a", "value": 0.5}]
    assert len(calls) == 1


def test_block_features_ignore_gain_and_separate_sounds(rng):
    noise = [rng.normal(size=22_050 * 8).astype(np.float32) for _ in range(2)]
    clicks = np.zeros(22_050 * 8, dtype=np.float32)
    clicks[::11_025] = 1.0
    vectors = np.array([block_features(x) for x in (*noise, clicks, 0.5 * clicks)])
    np.testing.assert_allclose(
        block_features(0.5 * noise[0])[980:], vectors[0, 980:], rtol=1e-3, atol=1e-3
    )  # except for the spectrum itself
    D = joined_distances(vectors)
    np.testing.assert_allclose(D, D.T, atol=1e-9)
    assert D[0, 1] < min(D[0, 2], D[1, 2])
    assert D[2, 3] < min(D[2, 0], D[2, 1])


def package(path, files):
    """A Debian package with these files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": data.getvalue()}
    with path.open("wb") as stream:
        stream.write(b"!<arch>\n")
        for name, content in members.items():
            stream.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
            stream.write(content + b"\n" * (len(content) % 2))


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror of Debian with one package, of whose files two are wanted; the folder that it serves."""
    served = tmp_path / "served"
    index = served / "dists/bookworm/main/binary-amd64"
    index.mkdir(parents=True)
    package(served / "x.deb", {"usr/share/x/music/a.ogg": b"a", "usr/share/x/b.ogg": b"b", "usr/c": b"c"})
    digest = hashlib.sha256((served / "x.deb").read_bytes()).hexdigest()
    text = f"Package: y\nFilename: y.deb\nSHA256: 0\n\nPackage: x\nFilename: x.deb\nSHA256: {digest}\n\n"
    (index / "Packages.xz").write_bytes(lzma.compress(text.encode()))
    labels = tmp_path / "labels.csv"
    labels.write_text("package,path,label\nx,usr/share/x/music/a.ogg,\nx,usr/share/x/b.ogg,someone\n")
    monkeypatch.setattr(game_music, "LABELS", labels)
    handler = partial(SimpleHTTPRequestHandler, directory=served)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("MUSICSIM_DEBIAN_MIRROR", f"http://127.0.0.1:{server.server_port}/")
        yield served
        server.shutdown()


def test_package_files_are_fetched_once(mirror, tmp_path):
    music = tmp_path / "music"
    fetch(music, lambda _: None)
    files = {f"{path.relative_to(music)}": path.read_bytes() for path in music.rglob("*") if path.is_file()}
    assert files == {"x/music/a.ogg": b"a", "x/x/b.ogg": b"b"}
    (mirror / "x.deb").unlink()
    fetch(music, lambda _: None)


def test_failed_fetch_gives_clear_error(mirror, tmp_path):
    (mirror / "x.deb").write_bytes(b"!<arch>\nsomething else")
    with pytest.raises(FetchError, match="not what the index of the archive says"):
        fetch(tmp_path / "music", lambda _: None)
    assert not (tmp_path / "music" / "x").exists()


def test_every_labeled_song_has_package_and_path():
    with game_music.LABELS.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len({(row["package"], row["path"]) for row in rows}) == len(rows) == 312


def test_constants_use_other_songs_and_are_restored(tiny_library):
    shipped = gaussians.load_prior()
    with constants_of(tiny_library, ()):
        nothing = gaussians.load_prior()
        assert {of.n_songs for of in vars(nothing).values()} == {0.0}
    songs = tiny_library.songs()
    with constants_of(tiny_library, songs):
        assert gaussians.load_prior().frames.n_songs == shipped.frames.n_songs
        assert not np.allclose(gaussians.load_prior().frames.mean, shipped.frames.mean)
    assert gaussians.load_prior() is shipped


def test_small_library_hides_selected_labels(tiny_library):
    from experiments.support import small_libraries

    songs = tuple(tiny_library.songs())
    pieces = Pieces(songs, np.array([song.artist for song in songs]), np.array([song.genre for song in songs]))
    rows, hidden = small_libraries.choose_rows(pieces, 8, 0)
    with small_libraries.make_small_library(tiny_library, pieces, rows, small_libraries.ARTISTS, hidden) as (
        library,
        some,
    ):
        assert len(some) == len(library.songs()) == 6, "two of each package"
        assert hidden
        for song, composer in zip(some.songs, some.composers, strict=True):
            assert song.artist == (None if composer in hidden else composer)
            assert song.path.parent == Path("/music")
        row, leads = small_libraries.evaluate_library(library, some, small_libraries.NOTHING, hidden)
        assert row["kept"].startswith("the sound alone")
        assert set(leads) == {"codewords", "the sound alone"}
    with Library.open(tiny_library.folder) as untouched:
        assert len(untouched.songs()) == 12


# --- albums ----------------------------------------------------------------------------------------------


X = np.array([[0.0], [2.0], [3.0], [7.0], [20.0]])
ALBUMS = [("a", np.array([0, 1])), ("a", np.array([2, 3])), ("b", np.array([4]))]


def test_distances_are_those_of_their_definitions():
    found = distances(X, ALBUMS)
    expected = {
        MEAN: 4.0,
        "mean of all pairs": (3 + 7 + 1 + 5) / 4,
        "mean of nearest pieces, both ways": ((3 + 1) / 2 + (1 + 5) / 2) / 2,
    }
    assert {kind: D[0, 1] for kind, D in found.items()} == pytest.approx(expected)
    for D in found.values():
        np.testing.assert_allclose(D, D.T)


def test_precisions_ignore_composers_with_one_album():
    values = precisions(distances(X, ALBUMS)[MEAN], np.array(["a", "a", "b"]))
    np.testing.assert_allclose(values, [[1, 0.5, 0.5], [1, 0.5, 0.5], [np.nan] * 3])


# --- factors ---------------------------------------------------------------------------------------------


def test_distances_in_factors(own_styles):
    songs = tuple(own_styles.songs()[:6])
    own_styles.frame_files.aspects_path(songs[2].content_hash).unlink()
    none = np.full(6, "")
    found = find_distances(Factors(take_snapshot(own_styles)), Pieces(songs, none, none))
    assert list(found) == ["Sound", "Sound, as search ranks", "timbre", "rhythm", "harmony"]
    np.testing.assert_allclose(found["timbre"] ** 2 + found["rhythm"] ** 2, found["Sound"] ** 2, atol=1e-12)
    assert np.isinf(found["harmony"][2]).all()
    assert np.isfinite(np.delete(np.delete(found["harmony"], 2, axis=0), 2, axis=1)).all()


# --- families --------------------------------------------------------------------------------------------


METAL, ORCHESTRAL = PAIRS[0]


def test_first_matching_label_counts():
    paths = {
        "/music/0ad-data/music/0_8Bit_Bonus_Track.ogg": "",
        "/music/0ad-data/music/Epitaph.ogg": ORCHESTRAL,
        "/music/wesnoth-1.16-music/music/battle.ogg": ORCHESTRAL,
        "/music/widelands-data/music/ingame_16.ogg": METAL,
        "/music/widelands-data/music/ingame_14.ogg": "",
        "/music/fretsonfire-songs-sectoid/Metal madness/song.ogg": METAL,
        "/music/fretsonfire-songs-sectoid/Feelings/song.ogg": "",
        "/music/elsewhere/music/battle.ogg": "",
    }
    assert find_families([Path(path) for path in paths], read_labels()).tolist() == list(paths.values())


def test_each_label_has_evidence_and_matches_pieces():
    with game_music.LABELS.open(encoding="utf-8", newline="") as stream:
        files = [(row["package"], "/".join(Path(row["path"]).parts[-2:])) for row in csv.DictReader(stream)]
    packages = {package for package, _ in files}
    for label in read_labels():
        assert label.evidence
        assert not label.family or any(label.family in pair for pair in PAIRS)
        if label.package in packages:
            assert any(label.package == package and fnmatchcase(name, label.files) for package, name in files), label


@pytest.fixture
def crafted(rng):
    """Vectors of 12 metal songs, 14 orchestral pieces far from them, 6 songs without a family, and a metal song.

    The last song is in the middle of the orchestral pieces, so it is closer to each than most of the others.
    """
    far = np.full(20, 10.0)
    X = np.concatenate(
        [rng.normal(size=(12, 20)), far + rng.normal(size=(14, 20)), -far + rng.normal(size=(6, 20)), far[None]]
    )
    return X, np.array([METAL] * 12 + [ORCHESTRAL] * 14 + [""] * 6 + [METAL])


def test_shares_match_loops(crafted):
    X, families = crafted
    D = euclidean(X)
    found = confusions({PLAIN: D}, families)
    assert set(found) == {(METAL, ORCHESTRAL), (ORCHESTRAL, METAL)}, "other families are too small"
    for (own, other), values in found.items():
        for i in range(len(X)):
            near = sorted((j for j in range(len(X)) if j != i), key=lambda j: D[i, j])[:10]
            if families[i] == own:
                assert values[PLAIN][i] == pytest.approx(np.mean([families[j] == other for j in near]))
                assert values[f"own {PLAIN}"][i] == pytest.approx(np.mean([families[j] == own for j in near]))
                assert values["chance"][i] == np.sum(families == other) / (len(X) - 1)
            else:
                assert np.isnan([values[PLAIN][i], values["chance"][i]]).all()


def test_hub_among_another_family_counts_until_hubs_are_reduced(crafted):
    X, families = crafted
    D = euclidean(X)
    found = confusions({PLAIN: D, SOUND: with_proximity(D, 1 / 3)}, families)
    groups = [f"artist {i // 2}" for i in range(len(X))]
    rows = {(row["songs"], row["ranking"]): row for row in table_rows("crafted", found, groups, 0)}
    assert rows[ORCHESTRAL, PLAIN]["share"] == pytest.approx(0.1), "the hub is among the nearest of every piece"
    assert rows[ORCHESTRAL, SOUND]["share"] < 0.1
    assert rows[ORCHESTRAL, SOUND]["lead"].startswith("-")
    assert rows[METAL, PLAIN]["share"] == pytest.approx(1 / 13), "the hub's own neighbors are all orchestral"
    assert (rows[METAL, PLAIN]["queries"], rows[METAL, PLAIN]["artists"]) == (13, 7)
    moved = np.where(np.arange(len(X))[:, None] == len(X) - 1, X[:1] + 0.1, X)
    cured = confusions({PLAIN: euclidean(moved)}, families)
    assert [np.nansum(values[PLAIN]) for values in cured.values()] == [0.0, 0.0]


def test_sets_are_pooled_over_all_queries(crafted):
    X, families = crafted
    D = euclidean(X)
    one, more = confusions({PLAIN: D}, families), confusions({PLAIN: D, SOUND: D}, families)
    without = {}, ["c"] * 3
    pooled, groups = pool([(one, ["a"] * len(X)), (more, ["b"] * len(X)), without])
    assert len(groups) == 2 * len(X) + 3
    for key, values in one.items():
        assert SOUND not in pooled[key], "it is not known for both sets"
        np.testing.assert_array_equal(pooled[key][PLAIN], [*values[PLAIN], *values[PLAIN], *[np.nan] * 3])


# --- several examples ------------------------------------------------------------------------------------


NONE = np.empty(0, np.int64)


@pytest.mark.parametrize(
    ("like", "unlike", "score"), [([0, 5, 9], [], LIKE[CHOSEN_LIKE]), ([0, 5], [9], UNLIKE[CHOSEN_UNLIKE])]
)
def test_chosen_formula_matches_search_order(snapshot, like, unlike, score):
    space = Space(snapshot.X.astype(np.float64))
    nobody = np.zeros(len(space.X), dtype=bool)
    scores = score(space, Case("", np.array(like), np.array(unlike, dtype=np.int64), nobody, nobody))
    order = [row for row in np.argsort(scores, kind="stable").tolist() if row not in {*like, *unlike}]
    ids = snapshot.row_ids
    query = Examples(tuple(ids[like].tolist()), tuple(ids[unlike].tolist()))
    hits = find_similar(snapshot, query, 12, max_per_artist=None, hub_reduction=True)
    assert [hit.song.id for hit in hits] == ids[order].tolist()


def test_results_are_scored_by_ranks_of_relevant_songs():
    space = Space(np.array([[0.0], [1.0], [2.0], [3.0], [9.0]]))
    right, unwanted = np.array([0, 1, 0, 1, 0], bool), np.array([0, 0, 1, 0, 0], bool)
    precision, share = evaluate(space, Case("", np.array([0]), NONE, right, unwanted), lambda s, c: s.D[0])
    assert precision == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert share == pytest.approx(1 / 4)


# --- sound changes ---------------------------------------------------------------------------------------


def test_gate_leaves_out_quiet_frames_only(rng):
    mfcc = rng.normal(size=(6_000, 13))
    mfcc[2_000:3_500, 0] -= 45 * np.sqrt(40)  # 45 dB quieter in each of 40 bands
    frames = SongFrames(mfcc.astype(np.float16), None)
    rows = np.concatenate(list(frames.blocks()))
    is_loud = np.ones(6_000, dtype=bool)
    is_loud[2_000:3_500] = False
    for gate, kept in ((40, rows[is_loud]), (50, rows)):
        whole = fit_gated(frames, gate).merge()
        assert whole.n_frames.tolist() == [len(kept)]
        # float32 results of sums in another order
        np.testing.assert_allclose(whole.means[0], kept.mean(axis=0), atol=1e-3)
        np.testing.assert_allclose(whole.covariances[0], np.cov(kept.T), rtol=1e-3, atol=1e-2)


def test_transformed_vectors_keep_their_scale(rng):
    X = rng.normal(size=(50, 4)) * [1, 2, 3, 4] + 5
    unit = scale_lengths(X)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), np.sqrt(np.mean(np.sum(X**2, axis=1))))
    np.testing.assert_allclose(unit / X, np.broadcast_to((unit / X)[:, :1], X.shape))
    for Y in (take_power(X - X.mean(axis=0), 0.5), normal_scores(X)):
        assert (np.argsort(Y, axis=0) == np.argsort(X, axis=0)).all()
    np.testing.assert_allclose(take_power(X, 0.5).std(axis=0), X.std(axis=0))


def test_setting_is_chosen_by_its_scores(rng):
    def of(value):
        return Scores({measure: np.array([np.nan, value]) for measure in ("P@1", "P@5", "within")}, 0.0)

    assert choose([{"a": of(0.2), "b": of(0.5)}]) == "b"
    assert choose([{"a": of(0.2), "b": of(0.5)}, {"a": of(0.9), "b": of(0.5)}]) == "a"


def test_each_change_differs_from_sound(tiny_library):
    songs = tuple(sorted(tiny_library.songs(), key=lambda song: song.content_hash))
    pieces = Pieces(songs, np.array([song.artist for song in songs]), np.array([song.genre for song in songs]))
    of = describe(MusicSet("tiny", tiny_library, pieces), print)
    sound = of_sound(of, ())
    own = {f"shrinkage {TIMBRE_SHRINKAGE}", f"share {SHAPE_SHARE}", "0.95"}  # settings of Sound
    for change, ways in CHANGES.items():
        for name, setting in ways.items():
            D = setting(of, [of])
            assert np.isfinite(D).all()
            if change != "gate":  # these songs have no quiet passages
                assert np.allclose(D, sound) == (name in own), name
