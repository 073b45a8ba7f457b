"""Tests of listeners' answers: stored, taken back, and moved from library to library."""

import csv
import io
import shutil
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsim.errors import LibraryError, NotFoundError
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.library.disk.csv_cells import as_csv
from musicsim.library.importing.answer_csv import ANSWER_COLUMNS, FiledAnswer, FiledSong, answer_cells, read_answers
from musicsim.library.importing.answers import AnswersImport, export_answers, import_answers
from musicsim.library.stores.judgments import FORMS, Judgment, comparisons
from tests.sounds import open_library, write_collection, write_song


def ids_of(library):
    return [song.id for song in library.songs()]


def forget_song(library, song_id):
    with library.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == song_id))


def exported(library):
    file = io.BytesIO()
    export_answers(library, file)
    return file.getvalue()


def imported(library, content):
    return import_answers(library, io.BytesIO(content))


def said(answers):
    """Return the fields of an answer except its ids, which another library assigns again."""
    return [(a.created_at, a.listener, a.kind, a.song_ids, a.chosen, a.is_random, a.foreseen, a.model) for a in answers]


# --- one by one -----------------------------------------------------------------------------------


def test_answers_round_trip(tiny_library):
    a, b, c, d = ids_of(tiny_library)[:4]
    store = tiny_library.judgments
    first = store.add("Ann", "odd", (b, a, c), 0, is_random=True, foreseen=False, model="native")
    second = store.add("  Bob  the\tbuilder ", "like", [d, c, b, a], np.int64(3), foreseen=np.True_)
    third = store.add("Ann", "odd", np.array([a, c, d]), None, model="native")
    with Library.open(tiny_library.folder) as again:
        answers = again.judgments.answers()
        assert [x.id for x in answers] == [first, second, third]
        assert said(answers) == [
            (answers[0].created_at, "Ann", "odd", (b, a, c), 0, True, False, "native"),
            (answers[1].created_at, "Bob the builder", "like", (d, c, b, a), 3, False, True, ""),
            (answers[2].created_at, "Ann", "odd", (a, c, d), None, False, None, "native"),
        ]
        assert answers[0].created_at > 1e9
        assert [x.id for x in again.judgments.answers("Ann")] == [first, third]
        assert again.judgments.listeners() == ["Ann", "Bob the builder"]
        assert [again.judgments.count(who) for who in (None, "Ann", "Nobody")] == [3, 2, 0]


def test_deleted_answer_id_is_not_reused(tiny_library):
    store, songs = tiny_library.judgments, ids_of(tiny_library)[:3]
    numbers = [store.add("Ann", "odd", songs, i) for i in range(3)]
    store.forget(numbers[1])
    store.forget(numbers[2])
    store.forget(999)
    assert [a.id for a in store.answers()] == numbers[:1]
    assert store.add("Ann", "odd", songs, 0) > numbers[2]


def test_listeners_are_renamed_merged_and_deleted(tiny_library):
    store, songs = tiny_library.judgments, ids_of(tiny_library)[:3]
    for who in ("Ann", "Bob", "Ann", "Cy"):
        store.add(who, "odd", songs, 1)
    store.rename("Bob", " Ann ")
    store.rename("Nobody", "Dee")
    assert (store.listeners(), store.count("Ann")) == (["Ann", "Cy"], 3)
    with pytest.raises(ValueError, match="listener must not be empty"):
        store.rename("Ann", " ")
    assert [store.forget_listener(who) for who in ("Ann", "Ann", "Nobody")] == [3, 0, 0]
    assert store.listeners() == ["Cy"]


def test_answers_do_not_change_revision(tiny_library):
    before = tiny_library.revision
    tiny_library.judgments.forget(tiny_library.judgments.add("Ann", "odd", ids_of(tiny_library)[:3], 1))
    tiny_library.judgments.rename("Ann", "Bob")
    imported(tiny_library, exported(tiny_library))
    assert tiny_library.revision == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"listener": " \t"}, "listener must not be empty"),
        ({"listener": "\udc80"}, "listener=.* UTF-8"),
        ({"kind": "even"}, "kind='even' must be one of odd, like"),
        ({"song_ids": (1, 2)}, "song_ids=.* must be 3 or 4 different songs"),
        ({"song_ids": (1, 2, 2)}, "song_ids=.* must be 3 or 4 different songs"),
        ({"song_ids": (1, 2, 3, 4, 5)}, "song_ids=.* must be 3 or 4 different songs"),
        ({"chosen": 3}, "chosen=3 must be a position from 0 to 2"),
        ({"chosen": -1}, "chosen=-1"),
        ({"chosen": 1.0}, "chosen=1.0"),
        ({"kind": "like", "chosen": 0}, "chosen=0 must be a position from 1 to 2"),
        ({"chosen": None, "foreseen": True}, "`foreseen` must be None"),
        ({"model": "\ud800"}, "model="),
    ],
)
def test_rejects_invalid_answers(tiny_library, change, message):
    answer = {"listener": "Ann", "kind": "odd", "song_ids": (1, 2, 3), "chosen": 1} | change
    with pytest.raises(ValueError, match=message):
        tiny_library.judgments.add(**answer)
    assert tiny_library.judgments.count() == 0


def test_rejects_answers_about_deleted_songs(tiny_library):
    with pytest.raises(NotFoundError, match="no longer in the library"):
        tiny_library.judgments.add("Ann", "odd", (*ids_of(tiny_library)[:2], 999), 1)
    assert tiny_library.judgments.count() == 0


def test_answer_is_deleted_with_any_of_its_songs(tiny_library):
    a, b, c, d, e, f, g = ids_of(tiny_library)[:7]
    for songs in ((a, b, c, d), (b, c, d, e), (c, d, a), (e, f, g)):
        tiny_library.judgments.add("Ann", "odd", songs, 1)
    forget_song(tiny_library, a)
    assert [x.song_ids for x in tiny_library.judgments.answers()] == [(b, c, d, e), (e, f, g)]
    forget_song(tiny_library, e)
    assert tiny_library.judgments.answers() == []


def test_songs_with_answers_survive_cleanup(tiny_library):
    *others, a, b, c, d = ids_of(tiny_library)
    tiny_library.judgments.add("Ann", "odd", (a, b, c), None)
    with tiny_library.write() as connection:
        connection.execute(schema.files.delete().where(schema.files.c.song_id.in_((a, d))))
    tiny_library.files.tidy()
    assert [s.id for s in tiny_library.songs(missing=True)] == sorted([*others, a, b, c])
    assert tiny_library.judgments.count() == 1
    assert tiny_library.files.forget_songs([a]) == 1, "asked for, a song goes with all that was said of it"
    assert tiny_library.judgments.count() == 0


# --- comparisons ----------------------------------------------------------------------------------


def answer(form, song_ids, chosen):
    return Judgment(1, 0.0, "Ann", form, song_ids, chosen)


def test_answers_become_distance_comparisons():
    assert set(comparisons(answer("odd", (7, 8, 9), 1))) == {(7, 9, 7, 8), (7, 9, 9, 8)}
    assert comparisons(answer("like", (7, 8, 9), 2)) == [(7, 9, 7, 8)]
    assert comparisons(answer("like", (7, 8, 9, 6), 1)) == [(7, 8, 7, 9), (7, 8, 7, 6)]
    assert comparisons(answer("odd", (7, 8, 9, 6), 0)) == [
        (8, 9, 8, 7), (8, 9, 9, 7), (8, 6, 8, 7), (8, 6, 6, 7), (9, 6, 9, 7), (9, 6, 6, 7),
    ]  # fmt: skip
    assert comparisons(answer("odd", (7, 8, 9), None)) == comparisons(answer("like", (7, 8, 9), None)) == []


@pytest.mark.parametrize("n_songs", [3, 4])
@pytest.mark.parametrize("form", ["odd", "like"])
def test_obvious_answer_agrees_with_distances(rng, form, n_songs):
    """With two songs together and the others far away, an answer that names the far ones agrees with the distances."""
    places = {10 + i: rng.normal(size=2) for i in range(n_songs)}
    ids = tuple(places)
    if form == "odd":
        places[ids[2]] += 1000
        one = answer(form, ids, 2)
    else:
        places |= {i: places[i] + 1000 * k for k, i in enumerate(ids) if k not in (0, 1)}
        one = answer(form, ids, 1)
    distance = {(a, b): np.linalg.norm(places[a] - places[b]) for a, b in combinations(ids, 2)}
    distance |= {(b, a): d for (a, b), d in distance.items()}
    assert len(comparisons(one)) == {"odd": {3: 2, 4: 6}, "like": {3: 1, 4: 2}}[form][n_songs]
    assert all(distance[i, j] < distance[k, m] for i, j, k, m in comparisons(one))


# --- files ----------------------------------------------------------------------------------------


def answer_some(library):
    a, b, c, d, e = ids_of(library)[:5]
    store = library.judgments
    store.add("Ann", "odd", (a, b, c), 2, is_random=True, foreseen=True, model="native")
    store.add('=Bo "the, man"', "like", (d, e, a, b), 1, foreseen=False, model="learned, +2")
    store.add("Ann", "odd", (c, d, e), None)
    store.add("Ünïcode ☂", "odd", (a, b, c), 2)


def test_file_round_trip_has_no_duplicates(tiny_library):
    answer_some(tiny_library)
    before, content = tiny_library.judgments.answers(), exported(tiny_library)
    assert imported(tiny_library, content) == AnswersImport(4, 0, 4, 0, ())
    assert tiny_library.judgments.answers() == before
    tiny_library.judgments.forget(before[1].id)
    for who in ("Ann", "Ünïcode ☂"):
        tiny_library.judgments.forget_listener(who)
    assert imported(tiny_library, content) == AnswersImport(4, 4, 0, 0, ())
    assert said(tiny_library.judgments.answers()) == said(before)
    assert imported(tiny_library, content).n_added == 0


def test_export_and_import_accept_paths(tiny_library, tmp_path):
    answer_some(tiny_library)
    path = tmp_path / "answers.csv"
    assert export_answers(tiny_library, path) == 4
    assert path.read_bytes() == exported(tiny_library)
    assert import_answers(tiny_library, str(path)).n_known == 4
    with pytest.raises(LibraryError, match="cannot be written"):
        export_answers(tiny_library, tmp_path / "no folder" / "answers.csv")
    with pytest.raises(LibraryError, match="cannot be read"):
        import_answers(tiny_library, tmp_path / "no.csv")


def test_exporting_no_answers_writes_only_header(tiny_library):
    assert exported(tiny_library).count(b"\r\n") == 1
    assert imported(tiny_library, exported(tiny_library)) == AnswersImport(0, 0, 0, 0, ())


def test_export_has_no_formulas_and_no_private_folders(tiny_library):
    answer_some(tiny_library)
    song = tiny_library.songs()[0]
    tiny_library.edits.edit([song.id], {"title": "=HYPERLINK(1)", "artist": "@me"})
    rows = list(csv.reader(io.StringIO(exported(tiny_library).decode(), newline="")))
    cells = [cell for row in rows for cell in row]
    assert "'=HYPERLINK(1)" in cells
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)
    assert f"{song.path.parts[-3]}/{song.path.parent.name}/{song.path.name}" in cells
    assert not any(str(song.path.parents[2]) in cell for cell in cells)


@pytest.fixture
def other_library(tmp_path):
    """Build the same music on another machine, with other folders and song ids."""
    write_song(tmp_path / "there" / "0 first.flac", seed=77, seconds=2, title="First", artist="Somebody")
    with open_library(tmp_path / "elsewhere") as library:
        library.add(tmp_path / "there" / "0 first.flac", n_workers=1)
        yield library


def by_title(library, answers):
    title = {song.id: song.title for song in library.songs()}
    return [(a.listener, a.kind, tuple(title[i] for i in a.song_ids), a.chosen, a.created_at) for a in answers]


def test_import_matches_same_files_in_other_library(tiny_library, other_library, collection, tmp_path):
    shutil.copytree(collection, tmp_path / "there" / "copy")
    other_library.add(tmp_path / "there", n_workers=1)
    answer_some(tiny_library)
    assert imported(other_library, exported(tiny_library)) == AnswersImport(4, 4, 0, 0, ())
    mine, theirs = tiny_library.judgments.answers(), other_library.judgments.answers()
    assert [a.song_ids for a in mine] != [a.song_ids for a in theirs], "or the test shows nothing"
    assert by_title(other_library, theirs) == by_title(tiny_library, mine)
    assert imported(tiny_library, exported(other_library)).n_known == 4, "and back again"


def test_import_matches_songs_by_title_and_artist(tiny_library, other_library, tmp_path):
    """The files have the same names and other sounds, in unrelated folders. Only title and artist agree."""
    write_collection(tmp_path / "music", n_songs=3, seconds=2)
    for n, path in enumerate(sorted((tmp_path / "music").rglob("*.flac"))):
        shutil.copy(path, tmp_path / "there" / f"{n}.flac")
    other_library.add(tmp_path / "there", n_workers=1)
    answer_some(tiny_library)
    answers, missing = tiny_library.judgments.answers(), {3, 4}
    result = imported(other_library, exported(tiny_library))
    titles = [song.title for song in tiny_library.songs()[:5]]
    assert titles[3].endswith("3"), "the fourth song is not among the three of each artist"
    kept = [a for a in answers if not missing & {ids_of(tiny_library).index(i) for i in a.song_ids}]
    assert (result.n_read, result.n_added, result.n_unmatched) == (4, len(kept), 4 - len(kept))
    assert by_title(other_library, other_library.judgments.answers()) == by_title(tiny_library, kept)
    assert result.problems[0] == f"Line 3: “{titles[3]}” by Artist clicks is not in this library."


HEADER = ",".join(
    ["listener", "form", "chosen", *(f"song{n}_{x}" for n in (1, 2, 3) for x in ("hash", "artist", "title", "path"))]
)


def line_of(library, *, listener="Ann", form="odd", chosen="song1", songs=(0, 1, 2)):
    found = library.songs()
    return ",".join([listener, form, chosen, *(f"{found[i].content_hash},,," for i in songs)])


def test_invalid_lines_are_reported_and_others_imported(tiny_library):
    lines = [
        HEADER,
        line_of(tiny_library, chosen="song4"),
        line_of(tiny_library, chosen="unsure"),
        line_of(tiny_library, form="like"),
        line_of(tiny_library, songs=(0, 0, 1)),
        line_of(tiny_library, listener=" "),
        line_of(tiny_library, form="even"),
        "one,two",
        "",
        "Ann,odd,song1" + ",," * 6,
        line_of(tiny_library, form=" LIKE ", chosen=" Song2 "),
    ]
    result = imported(tiny_library, "\n".join(lines).encode())
    assert (result.n_read, result.n_added, result.n_known, result.n_unmatched) == (9, 2, 0, 1)
    assert [(a.kind, a.chosen) for a in tiny_library.judgments.answers()] == [("odd", None), ("like", 1)]
    assert [p.split(":")[0] for p in result.problems] == [f"Line {n}" for n in (2, 4, 5, 6, 7, 8, 10)]
    assert "chosen is 'song4'; it must be one of unsure, song1, song2, song3." in result.problems[0]
    assert "different songs" in result.problems[2]
    assert "has 2 values, but the header has 15." in result.problems[5]


@pytest.mark.parametrize(
    "when", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.9999999"]
)
def test_invalid_time_is_refused(tiny_library, when):
    content = f"answered_at,{HEADER}\n{when},{line_of(tiny_library)}".encode()
    result = imported(tiny_library, content)
    assert (result.n_read, result.n_added) == (1, 0)
    assert f"the time is '{when}'" in result.problems[0]
    assert exported(tiny_library).count(b"\n") == 1


def test_failed_export_leaves_old_file(tiny_library, tmp_path):
    answer_some(tiny_library)
    (tmp_path / "answers.csv").write_text("precious")
    with tiny_library.write() as connection:
        connection.execute(schema.judgments.update().values(created_at=1e12))
    with pytest.raises(ValueError, match="out of range"):
        export_answers(tiny_library, tmp_path / "answers.csv")
    assert [path.read_text() for path in tmp_path.glob("*answers*")] == ["precious"]


def test_number_of_reported_problems_is_limited(tiny_library):
    lines = [HEADER] + [line_of(tiny_library, chosen="x")] * 30
    problems = imported(tiny_library, "\n".join(lines).encode()).problems
    assert len(problems) == 21
    assert problems[-1] == "10 more rows were left out."


def test_lines_without_time_are_matched_by_count(tiny_library):
    twice = "\n".join([HEADER, *[line_of(tiny_library)] * 2, line_of(tiny_library, chosen="song2")]).encode()
    assert imported(tiny_library, twice).n_added == 3
    assert imported(tiny_library, twice).n_added == 0
    once_more = twice + b"\n" + line_of(tiny_library).encode()
    assert imported(tiny_library, once_more).n_added == 1


def test_repeated_line_with_time_is_one_answer(tiny_library):
    answer_some(tiny_library)
    content = exported(tiny_library)
    tiny_library.judgments.forget_listener("Ann")
    header, first, *_ = content.splitlines(keepends=True)
    assert imported(tiny_library, header + first + first) == AnswersImport(2, 1, 1, 0, ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not contain answers"),
        (b"artist,title,plays\nx,y,1\n", "does not contain answers"),
        (b"listener,form,chosen\nx,odd,song1\n", "lacks song1_hash"),
        (HEADER.encode() + b"\n\xff\xfe", "not UTF-8"),
        (HEADER.encode() + b'\n"open', "is not CSV"),
        (HEADER.encode() + b"\n" + b"x" * 200_000, "is not CSV"),
    ],
)
def test_other_files_are_refused(tiny_library, content, message):
    with pytest.raises(LibraryError, match=message):
        imported(tiny_library, content)
    assert tiny_library.judgments.count() == 0


def test_reads_bliss_survey(tiny_library):
    a, b, c, d = tiny_library.songs()[:4]
    text = (
        "\ufeffid,song1,song2,song3,picked_song,person_id,updated_date,time_spent\n"
        f"1,{a.path.name},{b.path.name},{c.path.name},{b.path.name},1,2018-03-05 18:59:10.268249,00:00:16.037805\n"
        f"2,{b.path.name},{c.path.name},{d.path},{d.path},2,2018-03-05 18:59:34.231003,00:00:23.962754\n"
        f"3,{b.path.name},{c.path.name},{d.path.name},,2,2018-03-05 19:59:34.231003,\n"
        f"4,{b.path.name},032683.mp3,{d.path.name},{d.path.name},2,2018-03-05 20:59:34,\n"
        f"5,{b.path.name},{c.path.name},{d.path.name},{a.path.name},2,2018-03-05 21:59:34,\n"
    )
    result = imported(tiny_library, text.encode())
    assert (result.n_read, result.n_added, result.n_known, result.n_unmatched) == (5, 3, 0, 1)
    assert "“032683.mp3” is not in this library" in result.problems[0]
    assert "not one of the three" in result.problems[1]
    assert said(tiny_library.judgments.answers()) == [
        (1520276350.268249, "1", "odd", (a.id, b.id, c.id), 1, False, None, ""),
        (1520276374.231003, "2", "odd", (b.id, c.id, d.id), 2, False, None, ""),
        (1520279974.231003, "2", "odd", (b.id, c.id, d.id), None, False, None, ""),
    ]
    assert imported(tiny_library, text.encode()).n_added == 0


def test_numeric_file_names_match_only_unique_song(store, tmp_path):
    for n in range(4):
        write_song(tmp_path / "music" / f"00{n // 3}" / f"00{n % 3}.flac", seed=n, seconds=2)
    store.add(tmp_path / "music", n_workers=1)
    song = {f"{s.path.parent.name}/{s.path.name}": s.id for s in store.songs()}
    lines = ["song1,song2,song3,picked_song", "001.flac,002.flac,000/000.flac,002.flac", "001.flac,002.flac,000.flac,"]
    result = imported(store, "\n".join(lines).encode())
    assert (result.n_added, result.n_unmatched) == (1, 1), "two songs are called 000.flac"
    (only,) = store.judgments.answers()
    assert only.song_ids == (song["000/001.flac"], song["000/002.flac"], song["000/000.flac"])
    assert (only.listener, only.chosen) == ("me", 1)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text("=+-@',\"\n\r\t 1A＝", max_size=6)
moments = st.integers(0, 4_000_000_000 * 10**6).map(lambda us: us / 1e6)


@st.composite
def filed_answers(draw):
    n_songs = draw(st.integers(3, 4))
    # a file stores the last three parts of a path
    paths = st.lists(texts.map(lambda t: t.replace("/", "").replace("\0", "") or "x"), min_size=1, max_size=3)
    songs = [
        FiledSong(draw(texts), draw(texts), draw(texts), "/".join(p for p in draw(paths) if p != "."))
        for _ in range(n_songs - 1)
    ]
    songs.append(FiledSong("hash", draw(texts), draw(texts), ""))  # an empty fourth song does not count
    return FiledAnswer(
        draw(moments),
        draw(texts),
        draw(st.sampled_from(["odd", "like"])),
        tuple(songs),
        draw(st.none() | st.integers(0, n_songs - 1)),
        draw(st.booleans()),
        draw(st.none() | st.booleans()),
        draw(texts),
    )


@pytest.mark.long
@settings(max_examples=200)
@given(answers=st.lists(filed_answers(), max_size=3))
def test_any_text_round_trips_without_formulas(answers):
    file = io.BytesIO()
    file.write(as_csv(ANSWER_COLUMNS, map(answer_cells, answers)))
    content = file.getvalue()
    for row in csv.reader(io.StringIO(content.decode(), newline="")):
        for cell in row:
            assert not cell.startswith(("\t", "\r", "\n"))
            assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝"))
    assert [row for _, row in read_answers(io.BytesIO(content), "x.csv")] == answers


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(listener=texts.filter(str.strip), model=texts)
def test_any_listener_name_round_trips(tiny_library, listener, model):
    songs = ids_of(tiny_library)[:3]
    tiny_library.judgments.add(listener, "odd", songs, 1, model=model)
    (kept,) = tiny_library.judgments.answers()
    assert (kept.listener, kept.model) == (" ".join(listener.split()), model)
    content = exported(tiny_library)
    assert imported(tiny_library, content).n_known == 1
    assert tiny_library.judgments.forget_listener(kept.listener) == 1
    assert imported(tiny_library, content).n_added == 1
    assert said(tiny_library.judgments.answers()) == said([kept])
    tiny_library.judgments.forget_listener(kept.listener)


def test_marks_change_with_answers(tiny_library):
    answers, songs = tiny_library.judgments, ids_of(tiny_library)[:3]
    seen = [answers.mark(*FORMS)]
    for chosen in (0, 1, 2):
        number = answers.add("Ann", "odd", songs, chosen)
        seen.append(answers.mark(*FORMS))
    answers.forget(number)
    assert answers.mark(*FORMS) == seen[-2], "these are the answers that there were before"
    answers.add("Ann", "odd", songs, 1)
    seen.append(answers.mark(*FORMS))
    assert len(set(seen)) == len(seen)
