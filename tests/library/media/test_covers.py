"""Tests of covers: found in tags and folders, made once, bounded in size, and never from a file without a picture."""

import base64
import io
import os
import struct
import zlib
from pathlib import Path

import mutagen
import numpy as np
import pytest
from mutagen.flac import FLAC, Picture
from mutagen.id3 import APIC
from mutagen.mp4 import MP4, MP4Cover
from PIL import Image

from musicsim.audio import transcode
from musicsim.errors import AudioError
from musicsim.library.media.covers import Covers, make_cover, thumbnail
from musicsim.library.processes.decoding import Decoder, Decoding
from musicsim.library.processes.workers import Limits
from tests.sounds import write_song
from tests.waiting import outcome

RED, BLUE = (200, 30, 30), (30, 30, 200)


def image(color=RED, size=(600, 400), kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, kind)
    return out.getvalue()


def color_of(jpeg: bytes) -> str:
    opened = Image.open(io.BytesIO(jpeg))
    assert opened.format == "JPEG"
    red, _, blue = np.asarray(opened).mean(axis=(0, 1))
    return "red" if red > blue else "blue"


@pytest.fixture(scope="module")
def decoder():
    decoder = Decoder(n_workers=1)
    yield decoder
    decoder.close()


@pytest.fixture
def covers(decoder) -> Covers:
    return Covers(decoder)


def cover_of(covers: Covers, library, song, tag: str | None = None) -> bytes:
    cover = covers.cover_of(library, song, tag or covers.tag_of(song))
    return outcome(cover) if isinstance(cover, Decoding) else cover


def picture(data: bytes, kind: int = 3) -> Picture:
    made = Picture()
    made.data, made.type, made.mime = data, kind, "image/png"
    return made


def put_into(path: Path, data: bytes, kind: int = 3) -> None:
    """Write a picture into the tags of a file, as its format requires."""
    audio = mutagen.File(path)
    if audio.tags is None:
        audio.add_tags()
    if isinstance(audio, FLAC):
        audio.add_picture(picture(data, kind))
    elif isinstance(audio, MP4):
        audio["covr"] = [MP4Cover(data, MP4Cover.FORMAT_PNG)]
    elif path.suffix == ".ogg":
        audio["metadata_block_picture"] = [base64.b64encode(picture(data, kind).write()).decode()]
    else:
        audio.tags.add(APIC(encoding=3, mime="image/png", type=kind, desc=str(kind), data=data))
    audio.save()


@pytest.fixture
def song_with(store, tmp_path):
    """Add a song with this extension to the library, in a folder of its own."""

    def made(suffix: str = ".flac", seed: int = 0, change=lambda path: None):
        path = tmp_path / f"album {seed}" / f"song{suffix}"
        if suffix == ".m4a":
            path.parent.mkdir()
            transcode(write_song(tmp_path / "sound.wav", seed=seed, seconds=2), path)
        else:
            write_song(path, seed=seed, seconds=2)
        change(path)
        store.add(path)
        return next(song for song in store.songs() if song.path == path)

    return made


@pytest.mark.parametrize("suffix", [".flac", ".mp3", ".ogg", ".m4a", ".wav", ".aiff"])
def test_embedded_picture_becomes_small_jpeg(covers, store, song_with, suffix):
    song = song_with(suffix, change=lambda path: put_into(path, image(BLUE)))
    jpeg = cover_of(covers, store, song)
    assert color_of(jpeg) == "blue"
    assert Image.open(io.BytesIO(jpeg)).size == (320, 213)


def test_front_cover_precedes_other_pictures_and_folder_image(covers, store, song_with):
    def both(path):
        put_into(path, image(RED), kind=4)
        put_into(path, image(BLUE), kind=3)
        (path.parent / "cover.jpg").write_bytes(image(RED, kind="JPEG"))

    assert color_of(cover_of(covers, store, song_with(change=both))) == "blue"
    only_back = song_with(seed=1, change=lambda path: put_into(path, image(BLUE), kind=4))
    assert color_of(cover_of(covers, store, only_back)) == "blue"


@pytest.mark.long
@pytest.mark.parametrize("name", ["cover.jpg", "Folder.JPEG", "front.png"])
def test_folder_image_is_used_without_embedded_picture(covers, store, song_with, name):
    song = song_with(change=lambda path: (path.parent / name).write_bytes(image()))
    assert color_of(cover_of(covers, store, song)) == "red"
    assert cover_of(covers, store, song_with(seed=1)) == b""


def test_new_image_is_noticed_and_old_cover_is_cached(covers, store, song_with):
    song = song_with(change=lambda path: (path.parent / "cover.png").write_bytes(image(RED)))
    first = covers.tag_of(song)
    assert color_of(cover_of(covers, store, song, first)) == "red"
    (kept,) = (store.folder / "cache" / "covers").iterdir()
    kept.write_bytes(b"kept")
    assert covers.tag_of(song) == first
    assert cover_of(covers, store, song, first) == b"kept"
    (song.path.parent / "cover.png").write_bytes(image(BLUE, size=(601, 400)))
    assert covers.tag_of(song) != first
    assert color_of(cover_of(covers, store, song)) == "blue"
    song.path.unlink()
    assert covers.tag_of(song) is None


def bomb(width: int, height: int) -> bytes:
    """Return a small PNG of n black pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width // 8 + 1) * min(height, 2000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


HOSTILE = {
    "nothing": b"",
    "no image": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    "a bomb of pixels": bomb(100_000, 100_000),
    "a large image": bomb(9_000, 9_000),
    "half an image": image(kind="JPEG", size=(900, 900))[:2000],
    "too many bytes": image() + bytes(17 << 20),
    "a link": b"http://127.0.0.1/cover.png",
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("name", HOSTILE)
def test_invalid_or_huge_picture_gives_no_cover(covers, store, song_with, name):
    assert thumbnail(HOSTILE[name]) == b""
    in_folder = song_with(change=lambda path: (path.parent / "cover.jpg").write_bytes(HOSTILE[name]))
    assert cover_of(covers, store, in_folder) == b""
    assert [kept.stat().st_size for kept in (store.folder / "cache" / "covers").iterdir()] == [0]
    in_tags = song_with(".mp3", seed=1, change=lambda path: put_into(path, HOSTILE[name]))
    assert cover_of(covers, store, in_tags) == b""


def test_pictures_are_decoded_in_worker_process(covers, store, song_with, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a picture is decoded here")

    song = song_with(change=lambda path: put_into(path, image()))
    with monkeypatch.context() as here:
        here.setattr(Image, "open", refuse)
        cover = cover_of(covers, store, song)
    assert color_of(cover) == "red"


@pytest.mark.long
def test_slow_picture_is_stopped_and_retried_later(covers, store, song_with, monkeypatch):
    slow = song_with(change=lambda path: (path.parent / "cover.png").write_bytes(image(size=(5990, 5990))))
    monkeypatch.setattr("musicsim.library.media.covers.LIMITS", Limits(seconds=0.0, memory_mb=1024))
    with pytest.raises(AudioError, match="decoding took more than 0 s and was stopped"):
        cover_of(covers, store, slow)
    monkeypatch.undo()
    assert color_of(cover_of(covers, store, slow)) == "red"


def packed_frame(n_bytes: int) -> bytes:
    """Return an ID3v2.3 tag with a picture that decompresses to n bytes."""
    head = b"\0image/png\0\3\0" + image()
    body = struct.pack(">I", n_bytes) + zlib.compress(head + bytes(n_bytes - len(head)), 9)
    frame = b"APIC" + struct.pack(">I", len(body)) + b"\0\x80" + body
    size = len(frame)
    return b"ID3\3\0\0" + bytes((size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127)) + frame


@pytest.mark.long
def test_large_compressed_frame_is_not_decompressed(song_with, monkeypatch):
    unpacked = []
    unpack = zlib.decompress
    monkeypatch.setattr(zlib, "decompress", lambda data, *a, **k: unpacked.append(len(data)) or unpack(data, *a, **k))

    def prepend(n_bytes):
        return lambda path: path.write_bytes(packed_frame(n_bytes) + path.read_bytes())

    assert make_cover(song_with(".mp3", change=prepend(100 << 20)).path) == b""
    assert unpacked == []
    assert color_of(make_cover(song_with(".mp3", seed=1, change=prepend(100_000)).path)) == "red"


def test_pipe_named_like_cover_does_not_block(covers, store, song_with):
    song = song_with(change=lambda path: os.mkfifo(path.parent / "cover.jpg"))
    assert cover_of(covers, store, song) == b""


@pytest.mark.long
def test_least_recently_used_covers_are_evicted(covers, decoder, store, song_with, monkeypatch):
    monkeypatch.setattr("musicsim.library.media.covers.CHECK_INTERVAL", 1)
    songs = [song_with(seed=n, change=lambda path: put_into(path, image())) for n in range(3)]
    size = len(cover_of(covers, store, songs[0]))
    covers = Covers(decoder, max_bytes=int(2.5 * size))
    tags = [covers.tag_of(song) for song in songs]
    for age, tag in zip((300, 100), tags, strict=False):
        cover_of(covers, store, songs[tags.index(tag)], tag)
        kept = store.folder / "cache" / "covers" / f"{tag}.jpg"
        os.utime(kept, (kept.stat().st_atime - age, kept.stat().st_mtime - age))
    cover_of(covers, store, songs[2], tags[2])
    assert {path.stem for path in (store.folder / "cache" / "covers").iterdir()} == set(tags[1:])


def test_read_only_library_shows_covers(covers, store, song_with):
    song = song_with(change=lambda path: put_into(path, image()))
    (store.folder / "cache").mkdir(exist_ok=True)
    (store.folder / "cache" / "covers").write_bytes(b"in the way")
    assert color_of(cover_of(covers, store, song)) == "red"
