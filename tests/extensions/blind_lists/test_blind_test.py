"""Tests of blind comparisons of two lists: the same request, random sides, and a sign test over the answers."""

from collections import Counter
from dataclasses import replace

import pytest
from scipy.stats import chisquare

from musicsim.errors import NotFoundError
from musicsim.explorer.playlists.walk import GeneratedPlaylist, ShuffleWalk, Walk
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.blind_lists.blind_test import (
    KIND,
    SHUFFLE,
    BlindPair,
    Contender,
    contenders,
    draw_pair,
    opponent_of,
    record,
    tally,
)
from musicsim.library.stores.models import ModelRecord
from tests.sounds import write_song

NOTHING = GeneratedPlaylist((), ())


def ids(drawn: GeneratedPlaylist) -> list[int]:
    return [song.id for song in drawn.songs]


def sides(snapshot) -> tuple[Contender, Contender]:
    return Contender(snapshot.record.id, snapshot.record.name), SHUFFLE


def walks(snapshot) -> tuple[Walk, Walk]:
    return Walk(snapshot), ShuffleWalk(snapshot)


def answer(library, a: Contender, b: Contender, chosen: int | None) -> int:
    return record(library, BlindPair(NOTHING, NOTHING, a, b, PlaylistRequest(), 0), chosen)


def add_model(library, model_id: str, name: str, created_at: float) -> Contender:
    """Register a model without any files."""
    library.models.register(ModelRecord(model_id, name, created_at, 0, 1, 1, kind="other"))
    library.models.finish(model_id)
    return Contender(model_id, name)


def test_same_seed_gives_same_pair(snapshot):
    pair = draw_pair(sides(snapshot), walks(snapshot), PlaylistRequest(length=6), 3)
    assert ids(pair.left)[0] == ids(pair.right)[0] == pair.request.first
    assert len(pair.left.songs) == len(pair.right.songs) == 6
    assert ids(pair.left) != ids(pair.right)
    again = draw_pair(sides(snapshot), walks(snapshot), PlaylistRequest(length=6), pair.seed)
    assert (ids(again.left), ids(again.right), again.left_is) == (ids(pair.left), ids(pair.right), pair.left_is)
    unseeded = draw_pair(sides(snapshot), walks(snapshot), PlaylistRequest(length=6))
    again = draw_pair(sides(snapshot), walks(snapshot), PlaylistRequest(length=6), unseeded.seed)
    assert (ids(again.left), ids(again.right)) == (ids(unseeded.left), ids(unseeded.right))


@pytest.mark.long
def test_side_is_random_and_playlist_matches_contender(snapshot):
    both, drawers = sides(snapshot), walks(snapshot)
    seen, reasons = Counter(), {side: set() for side in both}
    for seed in range(200):
        pair = draw_pair(both, drawers, PlaylistRequest(length=4, spacing=0), seed)
        seen[pair.left_is] += 1
        for side, drawn in ((pair.left_is, pair.left), (pair.right_is, pair.right)):
            reasons[side] |= {edge.reason for edge in drawn.edges[1:]}
    assert reasons[SHUFFLE] == {"random jump"}
    assert len(reasons[both[0]]) > 5
    # 100 +- 7.1 by chance: these bounds are 4 standard deviations away
    assert 72 <= seen[SHUFFLE] <= 128
    assert seen.total() == 200


def test_requested_first_song_starts_both_playlists(snapshot):
    first = snapshot.library.songs()[5].id
    pair = draw_pair(sides(snapshot), walks(snapshot), PlaylistRequest(length=4, first=first), 1)
    assert ids(pair.left)[0] == ids(pair.right)[0] == pair.request.first == first


@pytest.mark.long
def test_first_song_can_be_any_allowed_song(snapshot):
    artist = snapshot.library.songs()[0].artist
    request = PlaylistRequest(length=3, artists=frozenset({artist}), through=(snapshot.library.songs()[1].id,))
    found = {draw_pair(sides(snapshot), walks(snapshot), request, seed).request.first for seed in range(60)}
    # 60 draws miss one of 3 songs once in 10^10
    assert found == {song.id for song in snapshot.library.songs() if song.artist == artist} - {
        snapshot.library.songs()[1].id
    }


def test_kept_first_song_stays_in_place(snapshot):
    kept = snapshot.library.songs()[7].id
    pair = draw_pair(sides(snapshot), walks(snapshot), PlaylistRequest(length=4, keep={0: kept}), 1)
    assert ids(pair.left)[0] == ids(pair.right)[0] == kept
    assert pair.request.first is None


@pytest.mark.long
def test_shuffle_is_uniform_for_any_sound_options(snapshot):
    first, seed_song = snapshot.library.songs()[0].id, snapshot.library.songs()[1].id
    request = PlaylistRequest(
        length=3, first=first, like=(seed_song,), surprise=0.0, spacing=0, versions_apart=False, dialect="x"
    )
    drawer = ShuffleWalk(snapshot)
    seen = Counter(ids(drawer.generate(request, seed))[2] for seed in range(1100))
    assert len(seen) == 11
    # 100 expected for each. The seeds are fixed; a fair shuffle would fail at 1e-4 once in 10,000 seeds.
    assert chisquare(list(seen.values())).pvalue > 1e-4


@pytest.mark.long
def test_shuffle_ignores_path_between_songs(snapshot):
    first, last = snapshot.library.songs()[0].id, snapshot.library.songs()[3].id
    request = PlaylistRequest(length=3, first=first, through=(last,), spacing=0, versions_apart=False)
    seen = Counter(ids(ShuffleWalk(snapshot).generate(request, seed))[1] for seed in range(1000))
    assert len(seen) == 10
    assert chisquare(list(seen.values())).pvalue > 1e-4


def test_shuffle_respects_excluded_songs(snapshot):
    barred = frozenset(song.id for song in snapshot.library.songs()[:6])
    drawn = ShuffleWalk(snapshot).generate(PlaylistRequest(length=6, exclude=barred), 0)
    assert not barred & set(ids(drawn))
    assert len(drawn.songs) == 6


@pytest.mark.long
def test_necessarily_equal_playlists_are_marked(store, tmp_path):
    for n, kind in enumerate(("tones", "noise")):
        store.add(write_song(tmp_path / f"{kind}.flac", kind, title=kind, artist=f"Artist {n}"))
    refresh(store)
    snapshot = take_snapshot(store)
    assert draw_pair(sides(snapshot), walks(snapshot), PlaylistRequest(length=2), 0).is_equal


@pytest.mark.long
def test_single_song_cannot_be_shuffled(store, tmp_path):
    store.add(write_song(tmp_path / "one.flac", title="Only"))
    refresh(store)
    with pytest.raises(NotFoundError, match="add a folder"):
        ShuffleWalk(take_snapshot(store)).generate(PlaylistRequest(), 0)


def test_incomparable_pairs_give_clear_error(snapshot):
    one = Contender(snapshot.record.id, snapshot.record.name)
    with pytest.raises(ValueError, match="Choose two different"):
        draw_pair((one, one), (Walk(snapshot), Walk(snapshot)), PlaylistRequest())
    nobody = PlaylistRequest(artists=frozenset({"Nobody"}))
    with pytest.raises(NotFoundError, match="no song matches your request in both models"):
        draw_pair(sides(snapshot), walks(snapshot), nobody)


def test_answer_stores_pair_and_can_be_undone(tiny_library):
    snapshot = take_snapshot(tiny_library)
    request = PlaylistRequest(
        length=4,
        years=(1900, 2100),
        tags=frozenset({s.genre for s in snapshot.library.songs()}),
        keep={2: snapshot.library.songs()[4].id},
        exclude=frozenset({snapshot.library.songs()[9].id, snapshot.library.songs()[8].id}),
    )
    pair = draw_pair(sides(snapshot), walks(snapshot), request, 11)
    number = record(tiny_library, pair, 1)
    (kept,) = tiny_library.judgments.all(KIND)
    assert (kept.options, kept.chosen) == ((pair.left_is.name, pair.right_is.name), 1)
    assert kept.context["songs"] == [ids(pair.left), ids(pair.right)]
    assert kept.context["models"] == [[side.model_id, None] for side in (pair.left_is, pair.right_is)]
    assert kept.context["seed"] == 11
    asked = kept.context["request"]
    assert (asked["first"], asked["length"], asked["dialect"]) == (pair.request.first, 4, None)
    assert asked["keep"] == {"2": snapshot.library.songs()[4].id}
    assert asked["exclude"] == sorted(request.exclude)
    assert asked["years"] == [1900, 2100]
    tiny_library.judgments.forget(number)
    assert tally(tiny_library, tiny_library) == []


def test_dialects_are_separate_contenders(tiny_library, monkeypatch):
    songs = tiny_library.songs()
    lists = [(f"{kind} {n}", kind, [s.id for s in songs[n : n + 4]]) for kind in "xy" for n in range(8)]
    tiny_library.add_playlists(lists, source="test")
    refresh(tiny_library)
    native, x, y, *of_codewords, shuffle = contenders(tiny_library)
    assert [c.name for c in of_codewords] == ["Codewords", "Codewords: x", "Codewords: y"]
    assert (native.dialect, shuffle) == (None, SHUFFLE)
    assert [d.name for d in (x, y)] == [f"{native.name}: x", f"{native.name}: y"]
    walker, asked = Walk(take_snapshot(tiny_library)), []

    def draw(_walk, request, _seed):
        asked.append(request)
        return GeneratedPlaylist((songs[{"x": 0, "y": 1, None: 2}[request.dialect]],), (None,))

    monkeypatch.setattr(Walk, "generate", draw)
    stands_for = {x: songs[0].id, y: songs[1].id, native: songs[2].id}
    for seed in range(8):
        for both in ((x, y), (native, x)):
            pair = draw_pair(both, (walker, walker), PlaylistRequest(length=5, dialect="of the page"), seed)
            assert {pair.left_is, pair.right_is} == set(both)
            assert ids(pair.left) + ids(pair.right) == [stands_for[pair.left_is], stands_for[pair.right_is]]
    assert all(
        replace(a, dialect=None) == replace(b, dialect=None) for a, b in zip(asked[::2], asked[1::2], strict=True)
    )


def test_default_opponent_is_native_or_newest_model(tiny_library):
    native = tiny_library.models.native()
    assert opponent_of(tiny_library, native.id) == SHUFFLE
    first = add_model(tiny_library, "m1", "mine", native.created_at + 1000)
    second = add_model(tiny_library, "m2", "yours", native.created_at + 2000)
    assert opponent_of(tiny_library, native.id) == second
    assert opponent_of(tiny_library, first.model_id).model_id == native.id
    assert {c.name for c in contenders(tiny_library)} == {native.name, "Codewords", "mine", "yours", "shuffle"}


def test_model_with_missing_files_is_not_contender(tiny_library):
    native, codewords = tiny_library.models.all()
    (tiny_library.models.path(codewords.id) / "vectors.f32").unlink()
    assert [c.name for c in contenders(tiny_library)] == [native.name, "shuffle"]


def test_tally_counts_both_sides_with_p_value(store):
    a, b = Contender("1", "A"), Contender("2", "B")
    for n in range(7):
        answer(store, *((a, b, 0) if n % 2 else (b, a, 1)))
    answer(store, a, b, 1)
    answer(store, b, a, 0)
    answer(store, a, b, None)
    answer(store, SHUFFLE, a, None)
    first, second = tally(store, store)
    assert (first.wins_first, first.wins_second, first.ties, first.n_decided) == (7, 2, 1, 9)
    # 2 (C(9,7) + C(9,8) + C(9,9)) / 2^9
    assert first.p_value == pytest.approx(92 / 512)
    assert first.describe() == "7 of 9 answers for “A”; by chance alone, this happens in 18% of cases"
    assert (second.p_value, second.describe()) == (1.0, "no difference so far")


def test_answers_follow_renamed_and_deleted_models(tiny_library):
    native = tiny_library.models.native()
    mine = add_model(tiny_library, "m1", "mine", native.created_at + 1000)
    answer(tiny_library, mine, Contender(native.id, native.name), 0)
    tiny_library.models.rename("m1", "ours")
    answer(tiny_library, Contender(native.id, native.name), Contender("m1", "ours"), 1)
    (one,) = tally(tiny_library, tiny_library)
    assert {one.first: one.wins_first, one.second: one.wins_second} == {"ours": 2, native.name: 0}
    answer(tiny_library, Contender("gone", "old"), SHUFFLE, None)
    assert [(t.first, t.second) for t in tally(tiny_library, tiny_library)][-1] == ("old", "shuffle")


def test_answers_without_details_count_by_name(store):
    store.judgments.add("", KIND, (), 0, options=["x", "y"])
    store.judgments.add("", "maps", (), 1, options=["x", "y"])
    (one,) = tally(store, store)
    assert (one.first, one.wins_first, one.wins_second) == ("x", 1, 0)


def test_model_named_shuffle_differs_from_shuffle(store):
    answer(store, Contender("m1", "shuffle"), SHUFFLE, 0)
    (one,) = tally(store, store)
    wins = {one.first: one.wins_first, one.second: one.wins_second}
    assert wins == {"shuffle (m1)": 1, "shuffle (no model)": 0}
