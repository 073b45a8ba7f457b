"""Small tracker modules and MIDI files, written byte by byte, and what rendering them needs."""

import struct

import numpy as np
import pytest

from musicsim.audio.rendering import find_lack

__all__ = ["MOD_S", "midi", "mod", "needs_fluidsynth", "needs_openmpt"]

MOD_S = 64 * 6 / 50 + 0.1  # 64 rows of 6 ticks, 50 ticks per second; libopenmpt fades the last note for 0.1 s

_A = 254  # Amiga period of the note A-2
_CYCLES, _SAMPLES = 23, 730  # of the sample: 730 / 23 samples per cycle are 440 Hz at A-2, to within 0.1 cents

needs_openmpt = pytest.mark.skipif(find_lack("MOD") is not None, reason=": ".join(find_lack("MOD") or ()))
needs_fluidsynth = pytest.mark.skipif(find_lack("MIDI") is not None, reason=": ".join(find_lack("MIDI") or ()))


def mod(title: str = "A song", periods: tuple[int, ...] = (_A,), repeats: bool = False) -> bytes:
    """Return a ProTracker module: one pattern, in which a sine plays the given Amiga periods one after another.

    It has no end if `repeats`: its last row jumps to the start.
    """
    sine = np.round(100 * np.sin(2 * np.pi * _CYCLES * np.arange(_SAMPLES) / _SAMPLES)).astype(np.int8)
    sample = struct.pack(">22sHBBHH", b"sine", _SAMPLES // 2, 0, 64, 0, _SAMPLES // 2)
    no_sample = struct.pack(">22sHBBHH", b"", 0, 0, 0, 0, 1)
    rows = np.zeros((64, 4, 4), np.uint8)
    for period, row in zip(periods, np.linspace(0, 64, len(periods), endpoint=False).astype(int), strict=True):
        rows[row, 0] = (period >> 8, period & 255, 1 << 4, 0)
    if repeats:
        rows[63, 1] = (0, 0, 0xB, 0)  # jump to position 0
    head = title.encode("latin-1").ljust(20, b"\0") + sample + 30 * no_sample + bytes((1, 127)) + bytes(128) + b"M.K."
    return head + rows.tobytes() + sine.tobytes()


def midi(title: str = "A song", note: int = 69, seconds: int = 4) -> bytes:
    """Return a MIDI file with one long note of an ocarina."""
    # at the default tempo of 120 beats per minute, 480 ticks per beat are 960 ticks per second
    ticks = 960 * seconds
    track = (
        *(b"\0\xff\x03", bytes((len(title),)), title.encode("latin-1")),
        *(b"\0\xc0", bytes((79,)), b"\0\x90", bytes((note, 100))),
        *(bytes((0x80 | ticks >> 7, ticks & 127)), b"\x80", bytes((note, 0)), b"\0\xff\x2f\0"),
    )
    events = b"".join(track)
    return b"MThd" + struct.pack(">IHHH", 6, 0, 1, 480) + b"MTrk" + struct.pack(">I", len(events)) + events
