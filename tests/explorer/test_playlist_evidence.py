"""Playlists as evidence: generated ones do not count before a person edits them, whoever reads them."""

import pytest

from musicsim.errors import ModelError
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.playlists.draft import PlaylistDraft
from musicsim.explorer.playlists.edges import build_hypergraph
from musicsim.explorer.playlists.fit import collect_playlists
from musicsim.explorer.playlists.song_labels import load_sources
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.search.reasons import describe_pairs
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from tests.command import run


def is_evidence(library, ids):
    """Return whether the only playlist of a library counts, which is the same for every reader."""
    snapshot = take_snapshot(library)
    edges = build_hypergraph(snapshot, load_sources(snapshot), own=True).names
    song, *others = snapshot.songs_by_id(ids)
    try:
        n_trained = int(Supervision(snapshot, "playlists").detail.split()[0])
    except ModelError:
        n_trained = 0
    readers = {
        "training": n_trained > 0,
        "weights and evaluation": bool(collect_playlists(snapshot).rows),
        "edges": any(name.startswith("playlist") for name in edges),
        "shared playlists": bool(snapshot.count_shared_playlists([(ids[0], ids[1])])),
        "reasons": any("playlist" in reason for reason in describe_pairs(snapshot, song, others)),
    }
    assert len(set(readers.values())) == 1, readers
    return readers["edges"]


@pytest.fixture
def unlike(tiny_library):
    """A library of songs that have nothing in common, so that a shared playlist would be a reason."""
    with tiny_library.write() as connection:
        names = ("artist", "genre", "tempo", "key", "mode", "loudness", "brightness", "energy")
        connection.exec_driver_sql(f"UPDATE songs SET {', '.join(f'{name} = NULL' for name in names)}")
    songs = {song.path.parent.name: song.id for song in tiny_library.songs()}
    return tiny_library, list(songs.values())


@pytest.mark.parametrize(
    ("details", "counts"),
    [
        (None, True),
        ({}, True),
        ({"seed": 5}, False),
        ({"seed": None}, False),  # a queue
        ({"seed": 5, "edited": False}, False),
        ({"seed": 5, "edited": True}, True),
        ({"seed": None, "edited": True}, True),
    ],
)
def test_generated_playlists_are_evidence_only_after_an_edit(unlike, details, counts):
    library, ids = unlike
    library.add_playlists([("mine", None, ids, details)], source=OWN_PLAYLISTS)
    (saved,) = library.playlists()
    assert saved.is_generated != counts
    assert is_evidence(library, ids) == counts


def test_moving_adding_or_removing_a_song_is_an_edit(tiny_library):
    snapshot = take_snapshot(tiny_library)
    request = PlaylistRequest(length=6)
    drawn = Walk(snapshot).generate(request, 0)
    draft = PlaylistDraft.from_drawn(drawn, request, 0, frozenset())
    new = next(i for i in snapshot.row_ids.tolist() if i not in draft.song_ids)
    for same in (draft, draft.toggle_kept(draft.song_ids[0]), draft.redraw(drawn, request, 1)):
        assert not same.details()["edited"]
    for edited in (draft.move(0, 2), draft.insert(1, [new]), draft.drop(0), draft.drop(0).redraw(drawn, request, 1)):
        assert edited.details()["edited"]


def test_opened_playlist_keeps_its_author(tiny_library):
    ids = [song.id for song in tiny_library.songs()[:3]]
    lists = [("by hand", None, ids), ("by musicsim", None, ids, {"seed": 3})]
    tiny_library.add_playlists(lists, source=OWN_PLAYLISTS)
    snapshot = take_snapshot(tiny_library)
    opened = {saved.name: PlaylistDraft.from_saved(saved, snapshot).details() for saved in tiny_library.playlists()}
    assert {name: details["edited"] for name, details in opened.items()} == {"by hand": True, "by musicsim": False}


def test_playlist_saved_by_a_command_is_generated(tiny_library):
    run("playlist", "-n", 4, "--save", "drawn", library=tiny_library.folder)
    assert [saved.is_generated for saved in tiny_library.playlists()] == [True]
