"""Tests of imports: previewed, written completely, replaced, undone, and repeated when songs are added."""

import pytest

from musicsim.errors import NotFoundError
from musicsim.library.importing import (
    accept,
    commit_import,
    import_files,
    match_waiting,
    preview_import,
    read_listening,
    refuse,
    waiting_proposals,
)
from musicsim.progress import Canceled
from tests.library.listening import add_songs, played
from tests.progress import cancel_when

HEADER = "listener,artist,title,plays\n"


def write(path, *rows):
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return path


def lastfm(path, *days, title="One"):
    path.write_text("".join(f'Me,Album,{title},"{day:02d} Jan 2024 10:11"\n' for day in days))
    return path


def test_preview_shows_effects_and_writes_nothing(store, tmp_path):
    (one,) = add_songs(store, ("Me", "One Long Title"))
    path = write(
        tmp_path / "plays.csv",
        *("ann,ME,one  long title,3", "bob,Me,One Long Title (Live),4", "ann,Me,One Long Titel,5"),
        *("ann,You,Two,9", ",,,1"),
    )
    before = store.revision
    seen = preview_import(store, read_listening([path]))
    assert store.revision == before
    assert (seen.batch.format, seen.n_rows, seen.n_songs, seen.n_plays, seen.n_matched) == ("plays", 4, 4, 21, 2)
    assert (seen.songs_by, seen.plays_by) == ({"exact": 1, "loose": 1}, {"exact": 3, "loose": 4})
    assert [(p.song.title, p.song_id, p.count) for p in seen.proposals] == [("One Long Titel", one, 5)]
    assert [(w.title, w.count) for w in seen.unmatched] == [("Two", 9), ("One Long Titel", 5)]
    assert [(s.reason, s.count, s.places) for s in seen.batch.skipped] == [
        ("no artist or title", 1, ["plays.csv, line 6"])
    ]
    assert seen.listeners == ["ann", "bob"]


def test_commit_writes_matches_and_accepted_proposals(store, tmp_path):
    (one,) = add_songs(store, ("Me", "One Long Title"))
    path = write(tmp_path / "plays.csv", "ann,me,one long title,3", "ann,Me,One Long Titel,5", "ann,You,Two,9")
    seen = preview_import(store, read_listening([path]))
    report = commit_import(store, seen, accepted=seen.proposals)
    assert played(store) == {("ann", one): 8}
    assert (report.n_rows, report.n_songs, report.n_matched) == (3, 3, 2)
    assert [(w.artist, w.title, w.count) for w in store.listening.list_unmatched()] == [("You", "Two", 9)]
    (entry,) = store.listening.imports()
    assert (entry.id, entry.name, entry.n_plays) == (report.import_id, "plays.csv", 17)


def test_services_add_up_and_same_file_replaces_itself(store, tmp_path):
    (one,) = add_songs(store, ("Me", "One"))
    import_files(store, lastfm(tmp_path / "lastfm.csv", 1, 2))
    libre = tmp_path / "libre.csv"
    libre.write_text("Artist,Track,Time\nMe,One,1\n")
    import_files(store, libre)
    assert played(store) == {("me", one): 3}
    import_files(store, tmp_path / "lastfm.csv")
    assert played(store) == {("me", one): 3}
    renamed = (tmp_path / "lastfm.csv").rename(tmp_path / "again.csv")
    import_files(store, renamed)
    assert played(store) == {("me", one): 3}, "it is the same file by any name"
    import_files(store, lastfm(renamed, 1, 2, 3))
    assert played(store) == {("me", one): 4}, "a longer export of the same name takes its place"
    assert len(store.listening.imports()) == 2


def test_same_name_with_other_plays_adds_up(store, tmp_path):
    (one,) = add_songs(store, ("Me", "One"))
    import_files(store, lastfm(tmp_path / "history.csv", 1, 2))
    seen = preview_import(store, read_listening([lastfm(tmp_path / "history.csv", 3, 4, 5)]))
    assert (seen.replaces, seen.overlaps) == ((), ())
    commit_import(store, seen)
    assert played(store) == {("me", one): 5}
    seen = preview_import(store, read_listening([lastfm(tmp_path / "other.csv", 2, 4)]))
    assert (list(seen.replaces), len(seen.overlaps)) == ([], 2), "told, and left to the person"


def test_same_file_name_of_two_listeners_stays_separate(store, tmp_path):
    (one,) = add_songs(store, ("Me", "One"))
    path = lastfm(tmp_path / "history.csv", 1, 2)
    for name in ("ann", "bob"):
        commit_import(store, preview_import(store, read_listening([path], listener=name)))
    assert played(store) == {("ann", one): 2, ("bob", one): 2}


def test_undo_removes_only_that_import(store, tmp_path):
    (one,) = add_songs(store, ("Me", "One"))
    store.add_plays([{"listener": "ann", "song_id": one, "count": 1}])
    report = import_files(store, write(tmp_path / "plays.csv", "ann,Me,One,3", "ann,You,Two,9"))
    tags = tmp_path / "tags.csv"
    tags.write_text("artist,title,tag,weight\nMe,One, Calm ,5\nMe,One,calm,7\n")
    tagged = import_files(store, tags)
    lists = tmp_path / "lists.csv"
    lists.write_text("playlist,category,position,artist,title\nmine,,2,Me,One\nmine,,1,You,Two\n")
    listed = import_files(store, lists)
    assert store.tags() == {one: [("calm", 7.0)]}
    assert [(p.name, p.category, p.source, p.song_ids) for p in store.playlists()] == [
        ("mine", None, "lists.csv (import 3)", (one,))
    ]
    for import_id in (report.import_id, tagged.import_id, listed.import_id):
        store.listening.undo(import_id)
    assert (played(store), store.tags(), store.playlists()) == ({("ann", one): 1}, {}, [])
    assert (store.listening.imports(), len(store.listening.list_unmatched())) == ([], 0)
    with pytest.raises(NotFoundError, match="import 1 does not exist"):
        store.listening.undo(report.import_id)
    again = import_files(store, lists)
    assert again.import_id > listed.import_id, "a number is never given again"


def test_playlists_keep_order(store, tmp_path):
    ids = add_songs(store, *(("Me", f"Song {i}") for i in range(4)))
    path = tmp_path / "lists.csv"
    order = [(3, 0), (1, 2), (2, 1), (4, 3), (5, 0)]
    path.write_text(
        "playlist,category,position,artist,title\n" + "".join(f"a,Calm,{p},Me,Song {i}\n" for p, i in order)
    )
    import_files(store, path)
    (playlist,) = store.playlists()
    assert playlist.song_ids == tuple(ids[i] for _, i in sorted(order))
    assert playlist.category == "Calm"


def test_unmatched_entries_match_songs_added_later(store, tmp_path):
    report = import_files(
        store,
        write(tmp_path / "plays.csv", "ann,You,Two,9", "ann,you,two (remastered),1", "bob,You,Two,2", "ann,He,Three,4"),
    )
    tags = tmp_path / "tags.csv"
    tags.write_text("artist,title,tag,weight\nYou,Two,calm,5\n")
    import_files(store, tags)
    assert (report.n_matched, len(store.listening.list_unmatched()), match_waiting(store)) == (0, 3, 0)
    (two,) = add_songs(store, ("You", "Two"))
    before = store.revision
    assert match_waiting(store) == 3, "two spellings in one import, one in the other"
    assert store.revision == before + 1, "in one transaction"
    assert played(store) == {("ann", two): 10, ("bob", two): 2}
    assert store.tags() == {two: [("calm", 5.0)]}
    assert [w.title for w in store.listening.list_unmatched()] == ["Three"]
    by_name = {e.name: e.n_matched for e in store.listening.imports()}
    assert by_name == {"plays.csv": 2, "tags.csv": 1}
    store.listening.undo(report.import_id)
    assert (played(store), len(store.listening.list_unmatched())) == ({}, 0)


def test_close_spellings_of_unmatched_entries_are_proposed(store, tmp_path):
    import_files(store, write(tmp_path / "plays.csv", "ann,Queen,Bohemian Rapsody,9", "ann,He,Three,4"))
    assert waiting_proposals(store) == []
    (queen,) = add_songs(store, ("Queen", "Bohemian Rhapsody"))
    assert match_waiting(store) == 0
    proposals = waiting_proposals(store)
    assert [(p.song_id, p.count) for p in proposals] == [(queen, 9)]
    assert accept(store, proposals) == 1
    assert played(store) == {("ann", queen): 9}
    assert waiting_proposals(store) == []


def test_refused_proposal_is_not_repeated(store, tmp_path):
    rhapsody, rapsodie = add_songs(store, ("Queen", "Bohemian Rhapsody"), ("Queen", "Bohemian Rapsodie"))
    path = write(tmp_path / "plays.csv", "ann,Queen,Bohemian Rapsody,9")
    import_files(store, path)
    (first,) = waiting_proposals(store)
    refuse(store, [first])
    (second,) = waiting_proposals(store)
    assert {first.song_id, second.song_id} == {rhapsody, rapsodie}, "the next likest one is asked for"
    refuse(store, [second])
    assert (waiting_proposals(store), len(store.listening.list_unmatched())) == ([], 1)
    assert preview_import(store, read_listening([path])).proposals == ()
    store.listening.forget_decisions()
    assert waiting_proposals(store) == [first]


@pytest.mark.parametrize("by", ["commit", "accept"])
def test_accepted_spelling_applies_to_later_imports(store, tmp_path, by):
    (queen,) = add_songs(store, ("Queen", "Bohemian Rhapsody", {"is_missing": True}))
    path = write(tmp_path / "plays.csv", "ann,Queen,Bohemian Rapsody,9")
    seen = preview_import(store, read_listening([path]))
    if by == "commit":
        commit_import(store, seen, seen.proposals)
    else:
        commit_import(store, seen)
        accept(store, waiting_proposals(store))
    assert played(store) == {("ann", queen): 9}
    seen = preview_import(store, read_listening([path]))
    assert (seen.songs_by, seen.proposals) == ({"confirmed": 1}, ())
    store.files.forget_songs([queen])
    assert store.listening.list_decisions() == []


def test_same_name_on_several_albums_is_one_proposal(store, tmp_path):
    path = tmp_path / "lastfm.csv"
    path.write_text(
        "".join(f'Queen,{album},Bohemian Rapsody,"{day:02d} Jan 2024 10:11"\n' for day, album in ((1, "A"), (2, "B")))
    )
    (queen,) = add_songs(store, ("Queen", "Bohemian Rhapsody"))
    seen = preview_import(store, read_listening([path]))
    assert [(p.song_id, p.count) for p in seen.proposals] == [(queen, 2)]
    assert [(w.title, w.album, w.count) for w in seen.unmatched] == [("Bohemian Rapsody", "B", 2)]
    commit_import(store, seen)
    (proposal,) = waiting_proposals(store)
    assert (proposal.count, accept(store, [proposal])) == (2, 2), "both albums"
    assert played(store) == {("me", queen): 2}


def test_loose_matches_are_listed_by_plays(store, tmp_path):
    add_songs(store, ("Me", "One"), ("Me", "Two"))
    rows = ("ann,Me,One (Remastered),1", "ann,Me,Two,7", "ann,ME!,Two (Live),3")
    seen = preview_import(store, read_listening([write(tmp_path / "plays.csv", *rows)]))
    assert [seen.batch.songs[i].title for i in seen.loose] == ["Two (Live)", "One (Remastered)"]


def test_listeners_of_songs_use_database_index(store):
    one, two, three = add_songs(store, *(("Me", name) for name in ("One", "Two", "Three")))
    for who, song, source in (("a", one, "x"), ("b", one, "x"), ("a", one, "y"), ("b", two, "x")):
        store.listening.add_plays([{"listener": who, "song_id": song, "count": 1}], source)
    assert store.listening.listeners_of([one, three]) == {one: {"a", "b"}, three: frozenset()}
    with store.engine.connect() as connection:
        plan = connection.exec_driver_sql("EXPLAIN QUERY PLAN SELECT listener FROM plays WHERE song_id = 1").all()
    assert "ix_plays_song_id" in str(plan), "or every play is looked at"


def scrobbles(path, *rows):
    path.write_text("uts,artist,track\n" + "".join(f"{at},{artist},{track}\n" for at, artist, track in rows))
    return path


MINUTE, START = 60, 1_700_000_000


def test_plays_are_grouped_into_sittings(store, tmp_path):
    one, two, three = add_songs(store, *(("Me", name) for name in ("One", "Two", "Three")))
    plays = ((0, "One"), (30, "Two"), (33, "One"), (64, "Three"), (200, "One"), (201, "One"))
    rows = [(START + MINUTE * at, "Me", title) for at, title in plays]
    report = import_files(store, scrobbles(tmp_path / "lastfm.csv", *rows))
    assert store.listening.sittings().tolist() == [[0, one], [0, two]], "31 minutes end it; one song is no sitting"
    song_ids = {"One": one, "Two": two, "Three": three}
    ids, times = store.listening.listen_times([one, two])
    expected = [(song_ids[title], START + MINUTE * at) for at, title in plays if title != "Three"]
    assert sorted(zip(ids.tolist(), times.tolist(), strict=True)) == sorted(expected)
    store.listening.undo(report.import_id)
    assert store.listening.sittings().shape == (0, 2)
    assert [len(column) for column in store.listening.listen_times([one, two])] == [0, 0]


def test_songs_added_later_join_their_sitting(store, tmp_path):
    (one,) = add_songs(store, ("Me", "One"))
    rows = ((0, "Me", "One"), (20, "You", "Two"), (40, "He", "Three"), (60, "Me", "Four"))
    path = scrobbles(tmp_path / "lastfm.csv", *((START + MINUTE * at, *name) for at, *name in rows))
    import_files(store, path)
    assert len(store.listening.sittings()) == 0
    (four,) = add_songs(store, ("Me", "Four"))
    assert match_waiting(store) == 1
    assert store.listening.sittings().tolist() == [[0, one], [0, four]], "what waits keeps the sitting going"
    import_files(store, path)
    assert store.listening.sittings().tolist() == [[0, one], [0, four]], "replaced, not doubled"


def test_sitting_belongs_to_one_listener_across_imports(store, tmp_path):
    one, two = add_songs(store, ("Me", "One"), ("Me", "Two"))
    for name, at, title in (("ann", 0, "One"), ("bob", 1, "Two")):
        path = scrobbles(tmp_path / f"{name}.csv", (START + MINUTE * at, "Me", title))
        commit_import(store, preview_import(store, read_listening([path], listener=name)))
    assert len(store.listening.sittings()) == 0
    libre = tmp_path / "libre.csv"
    libre.write_text(f"Artist,Track,Time\nMe,Two,{START + 2 * MINUTE}\n")
    commit_import(store, preview_import(store, read_listening([libre], listener="ann")))
    assert store.listening.sittings().tolist() == [[0, one], [0, two]]


def test_times_beyond_32_bits_are_ignored(store, tmp_path):
    add_songs(store, ("Me", "One"), ("Me", "Two"))
    path = scrobbles(tmp_path / "lastfm.csv", (2**32, "Me", "One"), (2**32 - 1, "Me", "Two"))
    batch = read_listening([path])
    assert (batch.n_rows, batch.times.tolist(), batch.first_time.tolist()) == (2, [2**32 - 1], [0, 0, 1])
    commit_import(store, preview_import(store, batch))
    assert sum(played(store).values()) == 2


def test_songs_removed_after_preview_become_unmatched(store, tmp_path):
    (one,) = add_songs(store, ("Me", "One", {"is_missing": True}))
    seen = preview_import(store, read_listening([write(tmp_path / "plays.csv", "ann,Me,One,3")]))
    assert seen.n_matched == 1
    store.files.forget_songs([one])
    assert commit_import(store, seen).n_matched == 0
    assert len(store.listening.list_unmatched()) == 1


def test_canceled_preview_writes_nothing(store, tmp_path):
    add_songs(store, ("Me", "One"))
    batch = read_listening([write(tmp_path / "plays.csv", "ann,Me,One,3")])
    before = store.revision
    with pytest.raises(Canceled):
        preview_import(store, batch, cancel_when(lambda *_: True))
    assert store.revision == before


def test_plays_are_summed_and_sorted(store):
    one, two = add_songs(store, ("Me", "One"), ("Me", "Two"))
    assert len(store.plays().count) == 0
    rows = [("b", two, 1), ("a", two, 2), ("a", one, 3)]
    for source in ("x", "y"):
        store.listening.add_plays([{"listener": w, "song_id": s, "count": n} for w, s, n in rows], source)
    plays = store.plays()
    assert plays.listeners == ["a", "b"]
    assert plays.listener.tolist() == [0, 0, 1]
    assert plays.song_id.tolist() == [one, two, two]
    assert plays.count.tolist() == [6, 4, 2]
    assert {a.dtype.name for a in (plays.listener, plays.song_id, plays.count)} == {"int64"}


def test_failed_import_leaves_earlier_import_unchanged(store, tmp_path, monkeypatch):
    (one,) = add_songs(store, ("Me", "One"))
    path = lastfm(tmp_path / "history.csv", 1, 2)
    import_files(store, path)
    seen = preview_import(store, read_listening([lastfm(path, 1, 2, 3)]))
    assert len(seen.replaces) == 1

    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr("musicsim.library.stores.listening.put_playlists", fail)  # the last step of the transaction
    with pytest.raises(RuntimeError):
        commit_import(store, seen)
    assert (played(store), len(store.listening.imports())) == ({("me", one): 2}, 1)
