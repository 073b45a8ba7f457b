"""Loudness of a file according to ITU-R BS.1770-4, measured by FFmpeg, and its sample peak, for ReplayGain.

The loudness among a song's descriptors comes from smoothed levels and is a few dB lower, so the file is decoded here.
"""

from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np

from musicsim import audio
from musicsim.audio import SoundReader, open_source
from musicsim.errors import AudioDecodeError

_GATE = -70.0  # LUFS; quieter blocks of 0.4 s do not count, and without louder ones, this is FFmpeg's result


class Loudness(NamedTuple):
    lufs: float  # FFmpeg rounds it down to a hundredth
    peak: float  # largest absolute sample; full scale is 1


def measure_loudness(path: Path) -> Loudness | None:
    """Decode a file block by block, and return its gated loudness; None if it is silent or shorter than 0.4 s.

    Raises AudioDecodeError if the file cannot be decoded, or changes its sampling rate or number of channels.
    """
    source, label = open_source(path, None)
    graph = av.filter.Graph()
    shape: tuple[int, int] | None = None
    lufs, peak = _GATE, 0.0
    with closing(SoundReader(source).blocks()) as blocks:
        for rate, block in blocks:
            frame = audio.as_frame(rate, block)
            if shape is None:
                shape = rate, len(block)
                start = graph.add_abuffer(sample_rate=rate, format=frame.format.name, layout=frame.layout.name)
                graph.link_nodes(start, graph.add("ebur128", "metadata=1"), graph.add("abuffersink")).configure()
            if shape != (rate, len(block)):
                raise AudioDecodeError(f"{label} changes its sampling rate or channels, so it has no single loudness.")
            peak = max(peak, float(np.abs(block).max(initial=0.0)))
            graph.push(frame)
            with suppress(BlockingIOError):  # the filter needs the next block
                while True:
                    lufs = float(graph.pull().metadata.get("lavfi.r128.I", lufs))
    return Loudness(lufs, peak) if lufs > _GATE else None
