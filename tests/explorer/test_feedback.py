"""Tests of thumbs: the stored votes, their effect on a search, and the texts about it."""

import json

import numpy as np
import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.feedback import Thumbs, query_metric, thumbs_by_id, what_changed
from musicsim.explorer.search.query import find_similar
from tests.command import run


def ids(hits):
    return [hit.song.id for hit in hits]


def by_artist(snapshot, name):
    return [song.id for song in snapshot.library.songs() if song.artist == name]


def test_latest_thumb_counts():
    said = Thumbs().add(1, 1).add(2, -1).add(1, -1)
    assert said.judged == {1: -1, 2: -1}
    assert (said.fitting, said.unfitting) == ([], [1, 2])
    assert said.add(1, 0).judged == {2: -1}
    assert Thumbs.from_ids([3], [4]).judged == {3: 1, 4: -1}


def test_search_without_thumbs_is_unchanged(snapshot):
    song = snapshot.library.songs()[0].id
    plain = find_similar(snapshot, song, 11, max_per_artist=None)
    for said in (Thumbs(), Thumbs.from_ids([1], []).add(1, 0), Thumbs.from_ids([9999], [9998])):
        assert find_similar(snapshot, song, 11, max_per_artist=None, thumbs=said) == plain


def test_thumbs_up_attract_and_thumbs_down_exclude(snapshot):
    tones, noise = by_artist(snapshot, "Artist tones"), by_artist(snapshot, "Artist noise")
    plain = ids(find_similar(snapshot, tones[0], 11, max_per_artist=None))
    assert set(plain[:3]) == set(tones[1:])
    said = Thumbs.from_ids(noise[:2], tones[1:2])
    after = ids(find_similar(snapshot, tones[0], 11, max_per_artist=None, thumbs=said))
    assert tones[1] not in after
    assert len(after) == 10
    places = [np.mean([order.index(i) for i in noise]) for order in (plain, after)]
    assert places[1] < places[0] - 1


def test_results_match_thumb_adjusted_metric(snapshot):
    song, up = snapshot.library.songs()[0].id, snapshot.library.songs()[5].id
    said = Thumbs.from_ids([up], [])
    row = snapshot.rows_of([song])[0]
    bending = query_metric(snapshot, snapshot.X[row], said)
    order = [snapshot.songs_at([r])[0].id for r in np.argsort(bending.distances(snapshot.X)) if r != row]
    hits = find_similar(snapshot, song, 11, max_per_artist=None, hub_reduction=False, thumbs=said)
    assert ids(hits) == order


def test_change_summary_is_one_sentence(snapshot):
    a, b, c, d = snapshot.library.songs()[:4]
    assert what_changed([a, b, c], [a, b, c]) == "The list did not change."
    assert what_changed([a, b], [b, a]) == "The same songs, in a different order."
    assert what_changed([a, b, c], [c, d]) == f"1 new song in the list; “{c.title}” rose from position 3 to 1."
    assert what_changed([], [a, b]) == "2 new songs in the list."


def test_cli_accepts_thumbs(snapshot):
    tones, noise = by_artist(snapshot, "Artist tones"), by_artist(snapshot, "Artist noise")
    options = ("-k", 11, "--per-artist", 0, "--fits", noise[0], "--not", tones[1], "--json")
    out, _ = run("similar", tones[0], *options, library=snapshot.library.folder)
    said = Thumbs.from_ids(noise[:1], tones[1:2])
    expected = ids(find_similar(snapshot, tones[0], 11, max_per_artist=None, thumbs=said))
    assert [answer["id"] for answer in json.loads(out)] == expected


@pytest.mark.parametrize("side", ["fits", "does_not_fit"])
def test_http_interface_accepts_thumbs(snapshot, monkeypatch, side):
    from starlette.testclient import TestClient

    from musicsim.api.http import http_interface

    monkeypatch.setenv("MUSICSIM_LIBRARY", str(snapshot.library.folder))
    song, other = snapshot.library.songs()[0].id, snapshot.library.songs()[7].id
    answer = TestClient(http_interface()).get(f"/songs/{song}/similar?k=11&per_artist=0&{side}={other}")
    said = Thumbs.from_ids([other] * (side == "fits"), [other] * (side != "fits"))
    expected = ids(find_similar(snapshot, song, 11, max_per_artist=None, thumbs=said))
    assert [hit["id"] for hit in answer.json()] == expected


def test_thumbs_up_bypass_max_per_artist(snapshot):
    tones = by_artist(snapshot, "Artist tones")
    plain = ids(find_similar(snapshot, tones[0], 11, max_per_artist=1))
    (shown,) = set(plain) & set(tones)
    others = [i for i in tones[1:] if i != shown]
    after = ids(find_similar(snapshot, tones[0], 11, max_per_artist=1, thumbs=Thumbs.from_ids(others, [])))
    assert set(others) <= set(after)


def test_thumb_ids_are_validated(snapshot):
    a, b = (song.id for song in snapshot.library.songs()[:2])
    assert thumbs_by_id(snapshot.library, [a], [b]) == Thumbs.from_ids([a], [b])
    assert thumbs_by_id(snapshot.library, [], []) == Thumbs()
    for wrong in (9999, -1, 2**63, 10**30):
        with pytest.raises(NotFoundError, match=f"song {wrong} does not exist"):
            thumbs_by_id(snapshot.library, [a], [wrong])
    with pytest.raises(ValueError, match=f"song {a} is marked both as fitting and as not fitting"):
        SearchRequest(fits=(a, b), does_not_fit=(a,))
    with pytest.raises(ValueError, match=f"song {a} is marked both like and unlike: choose one"):
        SearchRequest(like=(a, b), unlike=(a,))


def test_cli_reports_invalid_thumbs(snapshot):
    song, other = (song.id for song in snapshot.library.songs()[:2])
    folder = snapshot.library.folder
    for wrong in (9999, 2**63):
        for options in (("--fits", wrong), ("--not", wrong)):
            _, problem = run("similar", song, *options, library=folder, expect=1)
            assert f"song {wrong} does not exist" in " ".join(problem.split())
    _, problem = run("similar", song, "--fits", other, "--not", other, library=folder, expect=2)
    assert "is marked both as fitting and as not fitting" in " ".join(problem.split())
    _, problem = run("similar", 2**63, library=folder, expect=1)
    assert f"song {2**63} does not exist" in " ".join(problem.split())


def test_thumbs_can_be_restricted_to_songs():
    said = Thumbs().add(1, 1).add(2, -1).add(1, 0).add(3, 1)
    assert said.select([1, 3]).votes == ((1, 1), (1, 0), (3, 1))
    assert said.select([]) == Thumbs()
