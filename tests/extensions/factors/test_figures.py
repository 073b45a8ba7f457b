"""Tests of the figures per factor, the command, the HTTP request, and the dialog."""

import json
from itertools import combinations

import numpy as np
import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.requested import find_requested
from musicsim.explorer.snapshot.factors import Factors
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.factors.figures import measure_factors
from tests.command import run


def test_figures_count_the_pairs_that_are_farther_apart(own_styles):
    """The library has fewer than 300 songs, so all pairs count."""
    snapshot = take_snapshot(own_styles)
    rows, ids = np.arange(snapshot.n_indexed), snapshot.row_ids.tolist()
    found = measure_factors(Factors(snapshot), ids[2], [ids[9], ids[20]])
    for name in ("timbre", "rhythm", "harmony"):
        X = Factors(snapshot).vectors(name, rows).astype(np.float64)
        apart = {pair: np.sum((X[pair[0]] - X[pair[1]]) ** 2) for pair in combinations(rows.tolist(), 2)}
        for figures, other in zip(found, (9, 20), strict=True):
            truth = 100 * np.mean([d > apart[2, other] * (1 + 1e-9) for d in apart.values()])
            assert figures[name] == pytest.approx(truth, abs=100 / len(apart) + 1e-9)  # the pair itself may be rounded
    assert measure_factors(Factors(snapshot), ids[9], [ids[2]]) == [found[0]], "figures are symmetric"


def test_figure_is_unknown_without_harmony(own_styles):
    snapshot = take_snapshot(own_styles)
    first, second, third = snapshot.songs_at()[:3]
    own_styles.frame_files.aspects_path(second.content_hash).unlink()
    unknown, known = measure_factors(Factors(snapshot), first.id, [second.id, third.id])
    assert unknown["harmony"] is None
    assert None not in (unknown["timbre"], unknown["rhythm"], known["harmony"])
    with pytest.raises(NotFoundError, match="999"):
        measure_factors(Factors(snapshot), 999, [first.id])


def test_command_lists_nearest_songs_with_a_column_per_factor(own_styles):
    snapshot = take_snapshot(own_styles)
    query, missing = snapshot.songs_at()[:2]
    own_styles.frame_files.aspects_path(missing.content_hash).unlink()
    out, problem = run("factors", query.id, "--factor", "harmony", "-k", 3, library=own_styles.folder)
    for heading in ("timbre", "rhythm", "harmony", "title"):
        assert heading in out
    assert "1 song without harmony left out." in problem
    told = json.loads(run("factors", query.id, "--factor", "harmony", "-k", 3, "--json", library=own_styles.folder)[0])
    hits = find_requested(snapshot, query.id, SearchRequest(by="harmony", k=3))
    assert [one["id"] for one in told["songs"]] == [hit.song.id for hit in hits]
    figures = measure_factors(Factors(snapshot), query.id, [hit.song.id for hit in hits])
    for one, of in zip(told["songs"], figures, strict=True):
        assert one["factors"] == {name: round(figure, 1) for name, figure in of.items()}
        assert f"{of['harmony']:.1f}%" in out
    assert told["n_missing"] == 1
    assert json.loads(run("factors", query.id, "--json", library=own_styles.folder)[0])["n_missing"] == 0
    out, problem = run("factors", query.id, "--tempo", 1, 2, "--json", library=own_styles.folder, expect=1)
    assert json.loads(out)["songs"] == []
    assert "no song matches; without --tempo there are 29." in problem
    _, problem = run("factors", query.id, "--factor", "tempo", library=own_styles.folder, expect=1)
    assert "Choose one of timbre, rhythm, harmony." in problem.replace("\n", " ")


def test_http_request_agrees_with_the_command(client, tiny_library):
    song = take_snapshot(tiny_library).songs_at()[0]
    answer = client.get(f"/api/songs/{song.id}/factors?by=rhythm&k=4")
    assert answer.status_code == 200
    told = run("factors", song.id, "--factor", "rhythm", "-k", 4, "--json", library=tiny_library.folder)[0]
    assert answer.json() == json.loads(told)
    similar = client.get(f"/api/songs/{song.id}/similar?by=rhythm&k=4").json()
    assert [one["id"] for one in answer.json()["songs"]] == [one["id"] for one in similar]
    unknown = client.get(f"/api/songs/{song.id}/factors?by=tempo")
    assert unknown.status_code == 404
    assert "Choose one of timbre, rhythm" in unknown.json()["error"]


def test_why_has_a_line_per_factor(client, tiny_library):
    (figures,) = measure_factors(Factors(take_snapshot(tiny_library)), 1, [2])
    known = {name: figure for name, figure in figures.items() if figure is not None}
    (more,) = client.get("/api/songs/1/why?other=2").json()["more"]
    assert more["title"] == "Factor by factor"
    *lines, meaning = more["lines"]
    assert lines == [f"{name.capitalize()}: {figure:.0f}%" for name, figure in known.items()]
    assert {"timbre", "rhythm"} <= set(known)
    assert "farther apart" in meaning


def test_part_of_a_song_has_no_figures(client):
    assert client.get("/api/songs/1/why?other=2&part=1&part=3").json()["more"] == []
