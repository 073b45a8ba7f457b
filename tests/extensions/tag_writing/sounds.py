"""One short file in each format whose tags can be written, with other tags that have to stay."""

from pathlib import Path

import av
import mutagen
import numpy as np
import soundfile
from mutagen.apev2 import APEv2
from mutagen.id3 import APIC, ID3, TIT2, TXXX, TYER

from tests.sounds import SAMPLE_RATE, sound

_ENCODERS = {".m4a": "aac", ".wma": "wmav2", ".wv": "wavpack", ".tta": "tta", ".spx": "libspeex"}
_SUBTYPES = {".opus": ("OGG", "OPUS"), ".oga": ("OGG", "VORBIS")}
FORMATS = (".mp3", ".flac", ".ogg", ".opus", ".m4a", ".wav", ".aiff", ".wma", ".wv", ".tta")
PICTURE = bytes(range(256)) * 200


def write_format(path: Path, seed: int = 0, seconds: float = 2.0) -> Path:
    """Write a song; the suffix selects the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = sound("tones", seed, seconds)
    if path.suffix in _ENCODERS:
        _encode(path, samples)
    elif path.suffix in _SUBTYPES:
        form, subtype = _SUBTYPES[path.suffix]
        rate = 24_000 if subtype == "OPUS" else SAMPLE_RATE
        soundfile.write(path, samples, rate, format=form, subtype=subtype)
    else:
        soundfile.write(path, samples, SAMPLE_RATE)
    easy = mutagen.File(path, easy=path.suffix != ".tta")
    if easy.tags is None:
        easy.add_tags()
    if isinstance(easy.tags, ID3):  # also of WAV and AIFF, which have no easy names
        easy.tags.add(TIT2(encoding=3, text=[f"Song {seed}"]))
        easy.tags.add(APIC(encoding=3, mime="image/png", type=3, desc="", data=PICTURE))
    else:
        easy["title"] = f"Song {seed}"
    easy.save()
    return path


def _encode(path: Path, samples: np.ndarray) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(_ENCODERS[path.suffix], rate=44_100, layout="mono")
        stream.bit_rate = 96_000  # the encoder of WMA needs one
        frame = av.AudioFrame.from_ndarray(samples[None, :], format="fltp", layout="mono")
        frame.sample_rate = SAMPLE_RATE
        resampler = av.AudioResampler(stream.codec_context.format, "mono", 44_100)
        fifo = av.AudioFifo()
        for resampled in [*resampler.resample(frame), *resampler.resample(None)]:
            resampled.pts = None
            fifo.write(resampled)
        size = stream.codec_context.frame_size or 4096
        while (block := fifo.read(size) or fifo.read(partial=True)) is not None and block.samples:
            container.mux(stream.encode(block))
        container.mux(stream.encode(None))


def give_old_id3(path: Path) -> Path:
    """Give an MP3 file an ID3v2.3 tag, an ID3v1 tag that differs from it, and an APEv2 tag between them."""
    ID3(path).delete(path)
    tags = ID3()
    tags.add(TIT2(encoding=1, text=["Old title"]))
    tags.add(TYER(encoding=0, text=["1999"]))
    tags.add(TXXX(encoding=1, desc="replaygain_track_gain", text=["-3.00 dB"]))
    tags.save(path, v2_version=3, v1=0)
    ape = APEv2()
    ape["Album"] = "Of the APE tag"
    ape.save(path)
    with path.open("ab") as stream:
        stream.write(b"TAG" + b"Title in ID3v1".ljust(30, b"\0") + bytes(94) + b"\x11")
    return path
