"""Tests that files without sound are recognized by their content, whatever their name."""

import io

import av
import numpy as np
import pytest
from mutagen.id3 import ID3, TIT2
from PIL import Image

from musicsim.audio import analyze_sound, decode
from musicsim.errors import NoSoundError
from tests.audio.signals import as_bytes, tone

PAGE = b"\n<!-- moved -->\n<!DOCTYPE html>\n<html><body>404 Not Found</body></html>"


def picture(form):
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(buffer, form)
    return buffer.getvalue()


def film(container):
    """Write a second of video."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=container) as out:
        stream = out.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for n in range(10):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 25 * n, np.uint8), format="rgb24")
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return buffer.getvalue()


def id3(padding=0):
    buffer = io.BytesIO()
    tags = ID3()
    tags.add(TIT2(encoding=3, text="a title"))
    tags.save(buffer, padding=lambda info: padding)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (film("mp4"), "is a video without an audio track"),
        (film("matroska"), "is a video without an audio track"),
        (film("avi"), "is a video without an audio track"),
        *((picture(form), rf"is a picture \({form}\)") for form in ("JPEG", "PNG", "GIF", "BMP", "TIFF")),
        (picture("WEBP"), r"is a picture \(WebP\)"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + b"\0" * 200, r"is a picture \(HEIF\)"),
        (PAGE, "is a web page"),
        (b"\xef\xbb\xbf" + PAGE, "is a web page"),
        (b"Dear Sir or Madam,\r\n" * 500, "is a text file"),
        ("Sehr geehrte Damen und Herren, größer und schöner\n".encode() * 200, "is a text file"),
        ("Liebe Leute, ".encode("utf-16") * 1000, "is a text file"),
        (id3(), "contains tags but no sound"),
        (id3(2000), "contains tags but no sound"),
        (id3() + b"TAG" + b" " * 125, "contains tags but no sound"),
        (id3(100_000)[:500], "contains tags but no sound"),
        (b"\0" * 5000, "cannot be read as sound"),
        (np.random.default_rng(0).bytes(5000), "cannot be read as sound"),
        (id3() + np.random.default_rng(0).bytes(5000), "cannot be read as sound"),
    ],
)
@pytest.mark.parametrize("name", ["song.mp3", "song.wav"])
def test_error_names_type_of_file_without_sound(tmp_path, content, words, name):
    path = tmp_path / name
    path.write_bytes(content)
    for source in (path, content):
        with pytest.raises(NoSoundError, match=words) as caught:
            analyze_sound(source, name=name)
        assert str(caught.value).startswith(f"{name} ")


def test_audio_after_misleading_header_is_decoded():
    assert decode(id3() + as_bytes(tone(), format="MP3", subtype="MPEG_LAYER_III")).duration_s > 0.5
