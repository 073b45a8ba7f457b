"""Files in every common format, written by PyAV's encoders and, as it lacks Vorbis, by soundfile's."""

from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import soundfile

__all__ = ["ENDINGS", "encode"]

_CODECS = {
    ".wav": ("pcm_s16le", "s16", 0),
    ".flac": ("flac", "s16", 0),
    ".mp3": ("libmp3lame", "s16p", 192_000),
    ".opus": ("libopus", "s16", 128_000),
    ".m4a": ("aac", "fltp", 160_000),
}
ENDINGS = (*_CODECS, ".ogg")
_SECONDS_A_WRITE = 10  # libsndfile's Vorbis encoder fails on longer writes


def encode(path: Path, samples: npt.NDArray[np.float32], sr: int) -> Path:
    """Write mono samples as a stereo file (the right channel a little softer) in the format its ending names."""
    stereo = np.stack([samples, 0.8 * samples]).astype(np.float32)
    if path.suffix == ".ogg":
        with soundfile.SoundFile(path, "w", sr, 2, format="OGG", subtype="VORBIS") as file:
            for start in range(0, len(samples), _SECONDS_A_WRITE * sr):
                file.write(stereo.T[start : start + _SECONDS_A_WRITE * sr])
        return path
    codec, form, bit_rate = _CODECS[path.suffix]
    rate = 48_000 if path.suffix == ".opus" else sr
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, layout="stereo")
        if bit_rate:
            stream.bit_rate = bit_rate
        resampler = av.AudioResampler(
            form, "stereo", rate, frame_size=getattr(stream, "frame_size", 0) or 1024
        )
        source = av.AudioFrame.from_ndarray(np.ascontiguousarray(stereo), "fltp", "stereo")
        source.sample_rate = sr
        for frame in [*resampler.resample(source), *resampler.resample(None)]:
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path
