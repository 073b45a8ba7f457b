"""Files with tags, written by FFmpeg or byte by byte."""

import av

from tests.sounds import sound


def encode(path, codec, container=None, **metadata):
    """Write a second of sound with FFmpeg."""
    with av.open(str(path), "w", format=container) as out:
        out.metadata.update(metadata)
        stream = out.add_stream(codec, rate=48000, layout="mono")
        stream.bit_rate = 128_000
        frame = av.AudioFrame.from_ndarray(sound("tones", 0, 2.0)[None], format="fltp", layout="mono")
        frame.sample_rate = 48000
        resampler = av.AudioResampler(stream.codec_context.codec.audio_formats[0], "mono", 48000)
        for part in [*resampler.resample(frame), *resampler.resample(None), None]:
            out.mux([packet for packet in stream.encode(part) if packet.size])
    return path


def id3v2(version, frames, flags=0, size=None):
    """Return the bytes of a tag with frames (name, data), and sizes in the form of `version`."""
    body = b""
    for name, data in frames:
        if version == 2:
            body += name + len(data).to_bytes(3) + data
        else:
            body += name + (safe(len(data)) if version == 4 else len(data).to_bytes(4)) + b"\0\0" + data
    return b"ID3" + bytes((version, 0, flags)) + safe(len(body) if size is None else size) + body


def safe(n):
    return bytes((n >> 21 & 127, n >> 14 & 127, n >> 7 & 127, n & 127))
