"""Encode sound in memory, as files that users have."""

import io
from typing import cast

import av
import numpy as np

from musicsim._arrays import Float32Array


def encode(y: Float32Array, sr: int, container: str, codec: str, kbps: int = 0, rate: int = 0, **options: str) -> bytes:
    """Return a file encoded by PyAV; `options` are those of the codec."""
    layout = "mono" if len(y) == 1 else "stereo"
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        stream = cast(av.AudioStream, output.add_stream(codec, rate=rate or sr, layout=layout, options=options))
        if kbps:
            stream.bit_rate = 1000 * kbps
        resampler = av.AudioResampler(stream.codec_context.format, layout, rate or sr)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(y), format="fltp", layout=layout)
        frame.sample_rate = sr
        for part in (*resampler.resample(frame), *resampler.resample(None)):
            part.pts = None
            output.mux(stream.encode(part))
        output.mux(stream.encode(None))
    return file.getvalue()


def encode_flac(y: Float32Array, sr: int) -> bytes:
    return encode(y, sr, "flac", "flac")
