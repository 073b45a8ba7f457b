"""The measures of the experiment on real music against loops, and what it does where there is no music."""

import csv
import hashlib
import io
import lzma
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.support.report import Settings
from experiments import real_music
from experiments.support import game_music
from experiments.support.blocks import block_features, joined_distances
from experiments.support.game_music import FetchError, fetch
from experiments.support.halves import gain_row, gains_of, halves
from experiments.support.parts import KeptParts
from experiments.support.pieces import MIN_PIECES, Pieces, euclidean, labelled, scores, with_proximity
from experiments.support.timbre import constants_of
from musicsim import gaussians
from musicsim.library import Library


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
    (mirror / "dists/bookworm/main/binary-amd64/Packages.xz").unlink()
    settings = Settings(cache=tmp_path / "cache")
    rows, claims = real_music.run(settings, print)
    assert rows == []
    assert not claims[0].holds
    assert "MUSICSIM_DEBIAN_MIRROR" in settings.facts["data"]


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
