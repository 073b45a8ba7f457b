"""Tests that sparse files are refused before they are read, and real silence is not."""

import struct

import numpy as np
import pytest
import soundfile

from musicsim.errors import AudioDecodeError
from musicsim.library.scan import analysis
from musicsim.library.scan.analysis import Analysis, AnalysisTask, SkippedFile, analyze
from tests.sounds import SAMPLE_RATE, sound

WAV = (
    b"RIFF" + struct.pack("<I", 3_900_000_036) + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 2, 44100, 44100 * 4, 4, 16) + b"data" + struct.pack("<I", 3_900_000_000)
)  # fmt: skip
HEADS = {"wav": WAV, "flac": b"fLaC\x80\x00\x00\x22" + bytes(34), "mp3": b"\xff\xfb\x90\x00" + bytes(413)}


def task_of(path, **options):
    return AnalysisTask(path, path.stat().st_size, path.parent / "frames", **options)


@pytest.mark.parametrize("ending", HEADS)
@pytest.mark.parametrize("has_head", [False, True])
def test_sparse_file_is_refused_without_reading(tmp_path, monkeypatch, ending, has_head):
    path = tmp_path / f"hollow.{ending}"
    with path.open("wb") as file:
        file.write(HEADS[ending] if has_head else b"")
        file.truncate(3_900_000_044)
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("this file system has no holes")
    monkeypatch.setattr(analysis, "content_hash", lambda _: pytest.fail("the file is read whole"))
    with pytest.raises(AudioDecodeError, match=r"hollow\.\w+ .*copy the file again"):
        analyze(task_of(path))


def test_real_silence_is_analyzed(tmp_path):
    path = tmp_path / "late.wav"
    n_silent = (17 << 20) // 2
    samples = np.concatenate([np.zeros(n_silent, np.float32), sound("tones", 0, 4.0)])
    soundfile.write(path, samples, SAMPLE_RATE, subtype="PCM_16")
    (tmp_path / "frames").mkdir()
    assert isinstance(analyze(task_of(path)), Analysis)
    # as a compressing file system stores it
    with path.open("r+b") as file:
        file.truncate(44)
        file.truncate(44 + 2 * len(samples))
    silent = analyze(task_of(path, take_silent=False))
    assert isinstance(silent, SkippedFile)
    assert silent.kind == "silent"
