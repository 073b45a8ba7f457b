"""Tests of words of lyrics: from every kind of tag and from .lrc files, read once, and counted as a table."""

import os
import unicodedata

import mutagen
import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from mutagen import id3
from mutagen.aiff import AIFF
from mutagen.apev2 import APEv2
from mutagen.asf import ASF
from mutagen.flac import FLAC
from mutagen.mp4 import MP4
from mutagen.wave import WAVE
from sklearn.feature_extraction.text import CountVectorizer

from musicsim.extensions.lyrics.reading import count_words, read_lyrics, read_words
from musicsim.extensions.lyrics.store import LyricsStore
from musicsim.extensions.lyrics.store import lyrics as table
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.library.tags.file_tags import read_tags
from tests.library.tagged import encode, id3v2
from tests.sounds import write_song

TEXT = "Plum tree, plum tree\nÜber the blue hill\n"
WORDS = {"plum": 2, "tree": 2, "über": 1, "the": 1, "blue": 1, "hill": 1}
TIMED = [("\nPlum ", 0), ("tree, ", 900), ("plum tree", 1500), ("\nÜber the ", 3000), ("blue hill", 4000)]


def by_item(kind, name, value=TEXT):
    def tag(path):
        audio = kind(path)
        audio[name] = value
        audio.save()

    return tag


def by_frame(frame, kind=None, **options):
    def tag(path):
        if kind is None:
            tags = id3.ID3()
            tags.add(frame)
            tags.save(path, **options)
        else:
            audio = kind(path)
            audio.add_tags()
            audio.tags.add(frame)
            audio.save()

    return tag


def ape(path):
    tag = APEv2()
    tag["Lyrics"] = TEXT
    tag.save(path)


USLT = id3.USLT(encoding=3, lang="eng", desc="", text=TEXT)
SYLT = id3.SYLT(encoding=3, lang="eng", format=2, type=1, desc="", text=TIMED)
LINES = id3.SYLT(encoding=3, lang="eng", format=2, type=1, desc="", text=[(s, 0) for s in TEXT.splitlines()])
FREEFORM = "----:com.apple.iTunes:LYRICS"
KINDS = {
    "flac": ("x.flac", write_song, by_item(FLAC, "LYRICS")),
    "flac unsynced": ("x.flac", write_song, by_item(FLAC, "UNSYNCEDLYRICS")),
    "ogg vorbis": ("x.ogg", write_song, by_item(mutagen.File, "lyrics")),
    "ogg opus": ("x.opus", lambda p: encode(p, "libopus"), by_item(mutagen.File, "Lyrics")),
    "m4a": ("x.m4a", lambda p: encode(p, "aac", "ipod"), by_item(MP4, "\xa9lyr")),
    "m4a freeform": ("x.m4a", lambda p: encode(p, "aac", "ipod"), by_item(MP4, FREEFORM, TEXT.encode())),
    "wma": ("x.wma", lambda p: encode(p, "wmav2", "asf"), by_item(ASF, "WM/Lyrics")),
    "wavpack": ("x.wv", lambda p: encode(p, "wavpack"), ape),
    "mp3": ("x.mp3", write_song, by_frame(USLT)),
    "mp3 with id3v2.3": ("x.mp3", write_song, by_frame(USLT, v2_version=3)),
    "mp3 timed": ("x.mp3", write_song, by_frame(SYLT)),
    "mp3 timed by lines": ("x.mp3", write_song, by_frame(LINES)),
    "mp3 txxx": ("x.mp3", write_song, by_frame(id3.TXXX(encoding=3, desc="LYRICS", text=[TEXT]))),
    "mp3 with apev2": ("x.mp3", write_song, ape),
    "wav": ("x.wav", write_song, by_frame(USLT, WAVE)),
    "aiff": ("x.aiff", write_song, by_frame(USLT, AIFF)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_reads_words_from_every_tag_type(tmp_path, kind):
    name, write, tag = KINDS[kind]
    path = tmp_path / name
    write(path)
    assert read_words(path) == {}
    before = read_tags(path)
    tag(path)
    assert read_words(path) == WORDS
    assert read_tags(path) == before, "lyrics are no title"


def test_reads_id3v2_2_frames(tmp_path):
    path = write_song(tmp_path / "x.mp3")
    path.write_bytes(id3v2(2, [(b"ULT", b"\0eng\0Plum tree")]) + path.read_bytes())
    assert read_words(path) == {"plum": 1, "tree": 1}


def test_plain_lyrics_override_timed_lyrics(tmp_path):
    path = write_song(tmp_path / "x.mp3")
    tags = id3.ID3()
    for frame in (SYLT, USLT, id3.TXXX(encoding=3, desc="LYRICS", text=["other words"])):
        tags.add(frame)
    tags.save(path)
    assert read_words(path) == WORDS


def test_chords_are_ignored(tmp_path):
    path = write_song(tmp_path / "x.mp3")
    by_frame(id3.SYLT(encoding=3, lang="eng", format=2, type=5, desc="", text=[("Am ", 0), ("Dm", 9)]))(path)
    assert read_words(path) == {}


@pytest.mark.parametrize("ending", [".lrc", ".LRC"])
def test_lrc_file_replaces_missing_tags(tmp_path, ending):
    path = write_song(tmp_path / "a.b.flac")
    lrc = "\ufeff[ar:Nobody]\r\n[00:01.50]Plum tree, plum tree\r\n[00:03]Über <00:03.7>the <00:04.10>blue hill\r\n"
    path.with_suffix(ending).write_text(lrc, newline="")
    assert read_words(path) == WORDS
    by_item(FLAC, "LYRICS", "a tag")(path)
    assert read_words(path) == {"a": 1, "tag": 1}


@pytest.mark.parametrize(
    "data", [b"x " * (1 << 20), b"caf\xe9 noir", b"\xff\xfeP\0l\0u\0m\0"], ids=["huge", "latin1", "utf16"]
)
def test_invalid_or_large_lrc_file_is_ignored(tmp_path, data):
    path = write_song(tmp_path / "x.flac")
    path.with_suffix(".lrc").write_bytes(data)
    assert read_words(path) == {}


def test_named_pipe_as_lrc_file_does_not_block(tmp_path):
    path = write_song(tmp_path / "x.flac")
    os.mkfifo(path.with_suffix(".lrc"))
    assert read_words(path) == {}


@pytest.mark.parametrize("data", [b"", b"ID3", b"fLaC" + bytes(40), bytes(range(256)) * 20])
def test_broken_file_has_no_words(tmp_path, data):
    (tmp_path / "x.mp3").write_bytes(data)
    assert read_words(tmp_path / "x.mp3") == {}
    assert read_words(tmp_path / "gone.mp3") == {}
    assert read_words(tmp_path) == {}


def test_huge_lyrics_are_read_quickly(tmp_path):
    words = " ".join(f"{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676 % 26)}" for i in range(17_576))
    flac = write_song(tmp_path / "x.flac")
    by_item(FLAC, "LYRICS", words * 100)(flac)  # 7 MB
    mp3 = write_song(tmp_path / "x.mp3")
    by_frame(id3.USLT(encoding=3, lang="eng", desc="", text=words * 100))(mp3)
    found = read_words(flac)  # takes 0.2 s; a regular expression with backtracking would take hours
    assert len(found) == 2000
    assert read_words(mp3) == {}, "a frame beyond 64 kB is left"


@pytest.mark.parametrize(
    "text", ["[" * 400_000, "[00:" * 200_000, " \t" * 400_000 + "[", "\n" * 400_000, "<1:1" * 200_000]
)
def test_odd_brackets_are_parsed_quickly(text):
    count_words(text)  # takes at most 0.3 s; with backtracking it would take hours


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't STOP, don’t!", {"don": 2, "t": 2, "stop": 1}),
        ("[Verse 1: Somebody]\nla la\n  [Chorus]  \nla", {"la": 3}),
        ("[ti:Name]\r[length: 03:20]\r[01:02:03][04:05]la\r", {"la": 1}),
        ("we sing [twice] here", {"we": 1, "sing": 1, "twice": 1, "here": 1}),
        ("2 hearts 4ever x² snake_case", {"hearts": 1, "ever": 1, "x": 1, "snake": 1, "case": 1}),
        ("Cafe\u0301 café ＣＡＦÉ", {"café": 3}),
        ("हिन्दी गीत", {"हिन्दी": 1, "गीत": 1}),
        ("soft\u00adhyphen", {"softhyphen": 1}),
        ("x" * 41 + " y", {"y": 1}),
        ("", {}),
        ("12:30 — !!", {}),
    ],
)
def test_words_are_runs_of_letters(text, words):
    assert count_words(text) == words


@given(st.text())
def test_words_are_lower_case_letters_with_counts(text):
    words = count_words(text)
    assert len(words) <= 2000
    for word, count in words.items():
        assert count >= 1
        assert 1 <= len(word) <= 40
        assert all(unicodedata.category(c)[0] in "LM" for c in word)
    again = count_words(" ".join(word for word, count in words.items() for _ in range(count)))
    assert again == words


# In a library


@pytest.fixture
def sung(store, tmp_path):
    """Build a library of four songs, three of them with lyrics."""
    music = tmp_path / "music"
    for i, lyrics in enumerate(("plum plum tree", "plum hill", None, "plum tree blue")):
        path = write_song(music / f"{i}.flac", seed=i, title=str(i))
        if lyrics:
            by_item(FLAC, "LYRICS", lyrics)(path)
    store.add(music, n_workers=1)
    return store


def ids(library):
    return {song.path.name: song.id for song in library.songs()}


def words_of(library, song_id):
    with library.engine.connect() as connection:
        return connection.scalar(sa.select(table.c.words).where(table.c.song_id == song_id)) or {}


def unread(library):
    """Return the ids of songs whose lyrics were not read yet."""
    return [song.song_id for song in LyricsStore(library).unread()]


def test_every_song_is_read_once(sung):
    assert sorted(unread(sung)) == sorted(ids(sung).values())
    assert read_lyrics(sung) == 4
    assert unread(sung) == []
    assert read_lyrics(sung) == 0
    assert words_of(sung, ids(sung)["0.flac"]) == {"plum": 2, "tree": 1}
    assert words_of(sung, ids(sung)["2.flac"]) == {}
    with Library.open(sung.folder) as again:
        assert unread(again) == []


@pytest.mark.long
def test_changed_file_is_read_again_after_scan(sung):
    read_lyrics(sung)
    song = sung.song(ids(sung)["2.flac"])
    by_item(FLAC, "LYRICS", "now it sings")(song.path)
    os.utime(song.path, ns=(0, 1_000_000_000))
    sung.add(song.path.parent, n_workers=1)
    assert unread(sung) == [song.id]
    read_lyrics(sung)
    assert words_of(sung, song.id) == {"now": 1, "it": 1, "sings": 1}
    assert unread(sung) == []


def test_lrc_changes_are_noticed_without_scan(sung):
    read_lyrics(sung)
    song = sung.song(ids(sung)["2.flac"])
    lrc = song.path.with_suffix(".lrc")
    lrc.write_text("[00:01]first words")
    assert unread(sung) == [song.id]
    read_lyrics(sung)
    assert words_of(sung, song.id) == {"first": 1, "words": 1}
    lrc.write_text("[00:01]others")
    os.utime(lrc, ns=(0, 1_000_000_000))
    read_lyrics(sung)
    assert words_of(sung, song.id) == {"others": 1}
    lrc.unlink()
    assert read_lyrics(sung) == 1
    assert words_of(sung, song.id) == {}


def test_only_changed_songs_are_unread(sung):
    """The expected songs follow from the definition, with the first file of each song by name."""
    read_lyrics(sung)
    songs = sung.songs()
    lrc = songs[1].path.with_suffix(".lrc")
    lrc.write_text("[00:01]words")
    other = lrc.parent / "(live)" / "z.flac"
    other.parent.mkdir()
    other.with_suffix(".LRC").write_text("[00:01]of the file that comes first")
    with sung.write() as connection:
        for song in songs[2:]:
            row = {"path": other.with_name(f"{song.id}.flac"), "song_id": song.id, "folder": other.parent}
            connection.execute(schema.files.insert().values(**row, size=1, mtime_ns=song.id))
        connection.execute(
            schema.files.insert().values(path=other, song_id=songs[0].id, folder=other.parent, size=1, mtime_ns=7)
        )
    expected = [(songs[0].id, other, 7, other.with_suffix(".LRC").stat().st_mtime_ns)]
    expected += [(songs[1].id, songs[1].path, songs[1].path.stat().st_mtime_ns, lrc.stat().st_mtime_ns)]
    expected += [(song.id, other.with_name(f"{song.id}.flac"), song.id, None) for song in songs[2:]]
    assert [(s.song_id, s.path, s.mtime_ns, s.lrc_mtime_ns) for s in LyricsStore(sung).unread()] == expected


class Enough(Exception):
    """Raised when the user cancels."""


def test_canceled_reading_keeps_completed_songs(sung, monkeypatch):
    monkeypatch.setattr("musicsim.extensions.lyrics.reading.BATCH", 2)
    told = []

    def progress(message, done, total):
        told.append((message, done, total))
        if done == 2:
            raise Enough

    with pytest.raises(Enough):
        read_lyrics(sung, progress)
    assert told == [("reading lyrics", 0, 4), ("reading lyrics", 2, 4)]
    assert len(unread(sung)) == 2
    assert read_lyrics(sung) == 2


def test_unreachable_file_is_retried_next_time(sung):
    song = sung.songs()[0]
    away = song.path.rename(song.path.with_name("away"))
    assert read_lyrics(sung) == 3
    away.rename(song.path)
    assert unread(sung) == [song.id]
    assert read_lyrics(sung) == 1


def test_words_are_deleted_with_their_song(sung):
    unread = LyricsStore(sung).unread()
    gone = unread[0].song_id
    with sung.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == gone))
    LyricsStore(sung).put([(song, {"word": 1}) for song in unread])
    assert [words_of(sung, song.song_id) for song in unread] == [{}] + [{"word": 1}] * 3
    with sung.write() as connection:
        connection.execute(schema.songs.delete())
    assert len(LyricsStore(sung).table(min_songs=1, max_share=1.0).song_ids) == 0


def test_table_drops_rare_and_common_words(sung):
    read_lyrics(sung)
    everything = LyricsStore(sung).table(min_songs=1, max_share=1.0)
    assert everything.song_ids.tolist() == sorted(ids(sung)[f"{i}.flac"] for i in (0, 1, 3))
    assert everything.vocabulary == ["blue", "hill", "plum", "tree"]
    by_id = dict(zip(everything.song_ids.tolist(), everything.counts.toarray().tolist(), strict=True))
    assert by_id[ids(sung)["0.flac"]] == [0, 0, 2, 1]
    assert by_id[ids(sung)["1.flac"]] == [0, 1, 1, 0]
    assert by_id[ids(sung)["3.flac"]] == [1, 0, 1, 1]
    # plum is in all, tree in two of three songs, the others in one
    assert LyricsStore(sung).table(min_songs=2, max_share=1.0).vocabulary == ["plum", "tree"]
    assert LyricsStore(sung).table(min_songs=2, max_share=2 / 3).vocabulary == ["tree"]
    none = LyricsStore(sung).table(min_songs=2, max_share=0.5)
    assert (none.vocabulary, none.counts.shape) == ([], (3, 0))


def test_table_matches_scikit_learn(sung, rng):
    """The reference is CountVectorizer with our bounds on the number of songs per word."""
    words = [chr(97 + i) * 2 for i in range(26)]
    unread = LyricsStore(sung).unread() * 1
    with sung.write() as connection:
        columns = [c for c in schema.songs.c if c.name not in ("id", "content_hash")]
        for i in range(60):
            names = [c.name for c in columns]
            query = schema.songs.select().with_only_columns(*columns).limit(1)
            row = dict(zip(names, connection.execute(query).one(), strict=True))
            connection.execute(schema.songs.insert().values(id=1000 + i, content_hash=f"h{i}", **row))
    texts = [" ".join(rng.choice(words, rng.integers(1, 12), p=_zipf(26))) for _ in range(60)]
    some = unread[0]
    LyricsStore(sung).put((type(some)(1000 + i, some.path, 0, None), count_words(text)) for i, text in enumerate(texts))
    table = LyricsStore(sung).table(min_songs=3, max_share=0.4)
    judge = CountVectorizer(min_df=3, max_df=0.4)
    expected = judge.fit_transform(texts)
    assert table.song_ids.tolist() == list(range(1000, 1060))
    assert table.vocabulary == judge.get_feature_names_out().tolist()
    assert 0 < len(table.vocabulary) < 26
    np.testing.assert_array_equal(table.counts.toarray(), expected.toarray())


def _zipf(n):
    weights = 1 / np.arange(1, n + 1)
    return weights / weights.sum()


def test_library_without_words_has_empty_table(store):
    table = LyricsStore(store).table()
    assert (table.song_ids.shape, table.vocabulary, table.counts.shape) == ((0,), [], (0, 0))
