"""Sounds for the tests of this folder, and files of them."""

import io
import struct
import zlib

import av
import numpy as np
import soundfile

__all__ = ["as_bytes", "encoded", "music", "pitch", "png", "tone"]


def tone(hz=440.0, seconds=1.0, rate=44100, level=0.5):
    return (level * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def music(seconds=4.0, rate=44100, seed=0):
    """Return noise of varying level, which matches itself at one alignment only."""
    rng = np.random.default_rng(seed)
    n = round(seconds * rate)
    smooth = np.convolve(rng.standard_normal(n), np.ones(8) / 8, mode="same")
    return (0.2 * smooth * (1.2 + np.sin(np.arange(n) / rate * 5))).astype(np.float32)


def as_bytes(samples, rate=44100, **options):
    target = io.BytesIO()
    soundfile.write(target, samples, rate, **({"format": "WAV"} | options))
    return target.getvalue()


def encoded(samples, codec, container, rate=44100, layout="mono"):
    """Encode mono float samples with FFmpeg, at 128 kb/s if the codec has a bit rate."""
    target = io.BytesIO()
    with av.open(target, "w", format=container) as out:
        stream = out.add_stream(codec, rate=rate, layout=layout)
        stream.bit_rate = 128_000
        frame = av.AudioFrame.from_ndarray(samples[None, :], format="fltp", layout="mono")
        frame.sample_rate = rate
        resampler = av.AudioResampler(format=stream.codec_context.codec.audio_formats[0], layout=layout, rate=rate)
        for part in [*resampler.resample(frame), *resampler.resample(None), None]:
            # FLAC ends with an empty packet that the Ogg writer rejects
            out.mux([packet for packet in stream.encode(part) if packet.size])
    return target.getvalue()


def pitch(samples, sr=22050):
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return np.argmax(spectrum) * sr / len(samples)


def png():
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(72))) + chunk(b"IEND", b"")
