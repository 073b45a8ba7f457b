"""Audio files in every common format, written with PyAV's encoders, or with soundfile's for Ogg."""

from pathlib import Path

import av
import numpy as np
import soundfile
import soxr

from musicsim._arrays import Float32Array

__all__ = ["ENDINGS", "encode"]

_CODECS = {
    ".wav": ("pcm_s16le", "s16", 0),
    ".flac": ("flac", "s16", 0),
    ".mp3": ("libmp3lame", "s16p", 192_000),
    ".m4a": ("aac", "fltp", 160_000),
}
_IN_OGG = {".ogg": "VORBIS", ".opus": "OPUS"}
ENDINGS = (*_CODECS, *_IN_OGG)
_SECONDS_A_WRITE = 10  # libsndfile's Vorbis encoder fails on longer writes


def encode(path: Path, samples: Float32Array, sr: int) -> Path:
    """Write mono samples as a stereo file, with a softer right channel; the suffix selects the format."""
    stereo = np.stack([samples, 0.8 * samples]).astype(np.float32)
    if path.suffix in _IN_OGG:
        rate = 48_000 if path.suffix == ".opus" else sr
        stereo = soxr.resample(stereo.T, sr, rate)
        with soundfile.SoundFile(path, "w", rate, 2, format="OGG", subtype=_IN_OGG[path.suffix]) as file:
            for start in range(0, len(stereo), _SECONDS_A_WRITE * rate):
                file.write(stereo[start : start + _SECONDS_A_WRITE * rate])
        return path
    codec, form, bit_rate = _CODECS[path.suffix]
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=sr, layout="stereo")
        if bit_rate:
            stream.bit_rate = bit_rate
        resampler = av.AudioResampler(form, "stereo", sr, frame_size=getattr(stream, "frame_size", 0) or 1024)
        source = av.AudioFrame.from_ndarray(np.ascontiguousarray(stereo), "fltp", "stereo")
        source.sample_rate = sr
        for frame in [*resampler.resample(source), *resampler.resample(None)]:
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path
