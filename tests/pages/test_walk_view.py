"""Playlist weights as a page shows them: families, strongest edges, gains, and the words next to them."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.snapshot.snapshot import take_snapshot
from tests.pages.actions import said
from tests.waiting import PATIENCE_S


def script() -> None:
    from musicsim.ui.base.openers import snapshot
    from musicsim.ui.research.walk_view import show_walk

    show_walk(snapshot(), busy=False)


def open_view() -> AppTest:
    app = AppTest.from_function(script, default_timeout=PATIENCE_S).run()
    assert not app.exception
    return app


def bars(app: AppTest) -> dict[str, dict[str, float]]:
    """Return shares by family, for each group of bars from the lowest to the highest."""
    (chart,) = app.get("plotly_chart")
    return {
        trace.get("name", ""): dict(zip(trace["y"], trace["x"], strict=True))
        for trace in json.loads(chart.proto.spec)["data"]
    }


def teach(library) -> None:
    """Add two kinds of playlists, one along artists and one across them, enough to be evaluated; refit."""
    by_artist = {}
    for song in library.songs():
        by_artist.setdefault(song.artist, []).append(song.id)
    across = [list(column) for column in zip(*by_artist.values(), strict=True)]
    lists = [(f"{a} {n}", "loyal", ids) for a, ids in by_artist.items() for n in range(10)]
    lists += [(f"mixed {i} {n}", "*mixed*", ids) for i, ids in enumerate(across) for n in range(3)]
    library.add_playlists(lists, source="test")
    refresh(library)


@pytest.fixture
def taught(full):
    teach(full)
    return full


def test_default_weights_are_labeled_without_playlists(full):
    app = open_view()
    assert "These are default weights" in said(app)
    walker = Walk(take_snapshot(full))
    assert bars(app) == {"default": pytest.approx(dict(walker.families()))}
    first = walker.strongest()[0]
    assert f"- {first.reason} :small" in said(app)
    assert not app.table
    assert not app.selectbox


def test_dialect_is_shown_next_to_all_playlists(taught):
    app = open_view()
    walker = Walk(take_snapshot(taught))
    assert list(bars(app)) == ["all playlists"]
    app.selectbox(key="weights_dialect").set_value("loyal").run()
    assert not app.exception
    assert bars(app) == {
        "all playlists": pytest.approx(dict(walker.families())),
        "loyal": pytest.approx(dict(walker.families("loyal"))),
    }
    assert "Share of the total weight for “loyal”." in said(app)
    assert f"- {walker.strongest('loyal')[0].reason} " in said(app)


def test_gains_match_walk_and_are_sorted(taught):
    app = open_view()
    walker = Walk(take_snapshot(taught))
    table = app.table[0].value
    whole, *kinds = walker.dialects
    assert table["playlists"].tolist() == [
        f"{n}" for n in (42, *[k.n_playlists for k in sorted(kinds, key=lambda k: -k.gain)])
    ]
    assert table["gain"].tolist()[0] == f"{100 * whole.gain:.1f} %"
    figures = [float(text.removesuffix(" %")) for text in table["gain"].tolist()[1:]]
    assert figures == sorted(figures, reverse=True)
    assert set(table[""].tolist()) == {"all playlists", "loyal", r"\*mixed\*"}
    assert "held-out quarter of the playlists" in said(app)
    ahead = sum(kind.gain > kind.gain_global for kind in kinds)
    assert f"{ahead} of 2 evaluated dialects predict" in said(app)


def test_too_few_playlists_give_clear_message(full):
    songs = [song.id for song in full.songs()]
    full.add_playlists([(f"{n}", None, songs[n : n + 4]) for n in range(5)], source="test")
    refresh(full)
    app = open_view()
    assert "With only 5 playlists, none are held out" in said(app)
    assert app.table[0].value["gain"].tolist() == ["–"]
    assert not app.selectbox


def test_seed_and_candidates_are_shown(full):
    app = open_view()
    usual = round(Walk(take_snapshot(full)).step_width(0.5))
    assert f"; at 50%, from {usual}." in said(app)
    app.number_input(key="playlist_seed").set_value(7).run()
    assert app.session_state["playlist_seed"] == 7
