"""Decode a file or bytes in any container and codec, damaged or not, to blocks of samples.

A block is a float32 array of shape (n_channels, n_samples), full scale 1.0; the sampling rate and the number of
channels may change between blocks. FFmpeg (PyAV) reads the first audio stream; cover pictures are video streams.
soundfile reads files that FFmpeg cannot read, for example free-format MP3. RIFX is also read by soundfile, because
FFmpeg swaps the bytes of each sample. Each link of a chained Ogg file is read separately, because FFmpeg stops when a
link changes the sampling rate. Tracker modules and MIDI files are rendered. Memory holds only one block of a file and
the decoder's own data.
"""

import contextlib
import io
import itertools
import os
import re
import stat
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import av
import numpy as np
import soundfile
from av.stream import Disposition

from musicsim._arrays import Float32Array
from musicsim.addresses import RemotePath
from musicsim.audio._no_sound import explain_no_sound
from musicsim.audio.rendering import NOTES_HEAD, explain_notes, recognize_notes, render_notes
from musicsim.errors import AudioDecodeError

AudioSource = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
Block = tuple[int, Float32Array]
_Decode = Callable[[av.Packet], list[av.AudioFrame]]

BLOCK_SAMPLES = 1 << 16
_MIN_RATE, _MAX_RATE = 1_000, 1_000_000
_MAX_DEMUX_ERRORS = 100
# A text file could pose as a playlist (HLS, concat) that names other files or hosts. So FFmpeg may only open
# containers that hold their own sound.
_CONTAINERS = (
    "wav,w64,mp3,flac,ogg,aac,loas,mov,mp4,m4a,3gp,matroska,webm,asf,xwma,aiff,au,caf,ape,wv,tta,tak,ac3,"
    "eac3,dts,dtshd,mlp,truehd,mpc,mpc8,amr,amrnb,amrwb,dsf,iff,voc,mpegts,mpeg,avi,flv,rm,shn,oma,gsm,nut,"
    "ircam,nistsphere,avr,sox,adx,qoa,osq,bonk,wavarc,rka,rso,qcp,vqf,spdif,mxf"
)
SAFE_OPTIONS = {"format_whitelist": _CONTAINERS, "protocol_whitelist": "file,pipe"}
# Broken tags must not make a file unreadable. PyAV 19 reads all tags leniently, without this option.
TAGS_MAY_BE_BROKEN: dict[str, Any] = {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < 19 else {}
# FFmpeg searches 5 MB of PCM for hidden DTS, which takes 22 ms per file. Searching 64 kB is enough.
_PCM_HEADS = (b"RIFF", b"RF64", b"FORM", b"riff")
_PCM_PROBE = {"probesize": "65536"}
# These containers do not state a length; FFmpeg guesses it from the file size and the first bit rate.
_GUESSED_LENGTH = {"aac", "loas", "ac3", "eac3", "dts", "mpegts", "amrnb", "amrwb", "gsm"}
# Planar frames with eight or more channels lack the null pointer after the last channel that PyAV needs.
_PLANES = 8
_UNKNOWN_SIZE = 0x7FFFF000
_SCALES = {"u1": 1 / 128, "i2": 1 / 32768, "i4": 1 / 2147483648}
_OGG_FIRST_PAGE = re.compile(rb"OggS\x00[\x02\x06]")
_OGG_HEADER, _OGG_MAX_PAGE = 27 + 255, 27 + 255 + 255 * 255
_CHUNK = 1 << 20


def open_source(source: AudioSource, name: str | None) -> tuple[Path | bytes, str]:
    """Check that a source can be read; return its path or its bytes, and its name for messages.

    Raises AudioDecodeError if the path is missing, not readable or not a regular file, or if the source is empty.
    Raises TypeError if `source` is not a path, bytes or a binary file object.

    Examples
    --------
    >>> from musicsim.audio import open_source
    >>> data, name = open_source(b"RIFF...", "upload.wav")
    >>> data, name
    (b'RIFF...', 'upload.wav')
    """
    if isinstance(source, (str, os.PathLike)):
        path = source if isinstance(source, Path) else Path(source)
        # a name that is not UTF-8 could not be printed or stored
        label = name or os.fsencode(path).decode(errors="replace")
        try:
            status = path.stat()
            if stat.S_ISDIR(status.st_mode):
                raise AudioDecodeError(f"{label} is a folder: give one of the audio files in it.")
            if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer
                raise AudioDecodeError(f"{label} is a pipe or a device: give an audio file.")
            with path.open("rb"):
                pass
        except FileNotFoundError:
            raise AudioDecodeError(f"{label} does not exist: check the path.") from None
        except (OSError, ValueError) as error:
            raise AudioDecodeError(
                f"{label} cannot be opened ({error}): check the path and its permissions."
            ) from error
        data: Path | bytes = path
        size = status.st_size
    else:
        data, label = _read_all(source), name or str(getattr(source, "name", "") or "audio data")
        size = len(data)
    if size == 0:
        raise AudioDecodeError(f"{label} is empty (0 bytes): copy or download it again.")
    return data, label


def _read_all(source: bytes | bytearray | memoryview | BinaryIO) -> bytes:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if not hasattr(source, "read"):
        raise TypeError(f"source must be a path, bytes or a binary file object, not {type(source).__name__}.")
    start = source.tell() if hasattr(source, "seekable") and source.seekable() else None
    data = source.read()
    if not isinstance(data, bytes):
        raise TypeError("source is a file object opened as text: open it with mode 'rb'.")
    if start is not None:
        source.seek(start)
    return data


def container_tags(file: Any, formats: str) -> list[tuple[str, str]]:
    """Return the tags of a binary file, and then the tags of its first audio stream, as (name, value) pairs.

    `formats` lists FFmpeg's names for the allowed containers, separated by commas. Other formats raise av.FFmpegError.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import container_tags
    >>> file = io.BytesIO()
    >>> with soundfile.SoundFile(file, "w", 22050, 1, format="FLAC") as sound:
    ...     sound.title = "Tides"
    ...     sound.write(np.zeros(22050))
    ...
    >>> _ = file.seek(0)
    >>> [value for name, value in container_tags(file, "flac") if name.lower() == "title"]
    ['Tides']
    """
    options = SAFE_OPTIONS | {"format_whitelist": formats, "probesize": "65536"}
    with av.open(file, options=options, **TAGS_MAY_BE_BROKEN) as container:
        sources = [container.metadata, *(stream.metadata for stream in container.streams.audio[:1])]
        return [item for tags in sources for item in tags.items()]


class SoundReader:
    """Reads the sound of one file (its path, or all of its bytes) block by block and records its damage.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import SoundReader
    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.zeros((44100, 2)), 44100, format="WAV")
    >>> reader = SoundReader(file.getvalue())
    >>> sum(samples.shape[1] for rate, samples in reader.blocks()), reader.damaged
    (44100, 0)
    >>> SoundReader(b"this is not music").explain_no_sound()
    'is a text file, not sound. Leave it out, or download it again if it should be music.'
    """

    def __init__(self, source: Path | bytes) -> None:
        self.source = source
        # length that the container states; None if it is missing, or if FFmpeg would only estimate it
        self.expected_s: float | None = None
        self.damaged = 0  # number of packets that could not be read or decoded
        self.has_audio = False
        self.has_film = False  # whether there is video but no audio stream
        self.cut_off = False  # whether the end of an Ogg file is missing

    def blocks(self) -> Generator[Block, None, None]:
        """Yield the sound as pairs of a sampling rate in Hz and a block."""
        if (kind := self._kind_of_notes()) is not None:
            if not explain_notes(kind, self._size()):
                self.has_audio = True
                yield from render_notes(self._bytes_at(0, self._size()), kind)
            return
        has_block = False
        for start, stop in [] if self._bytes_at(0, 4) == b"RIFX" else self._parts():
            try:
                for block in self._from_ffmpeg(start, stop):
                    has_block = True
                    yield block
            except (av.FFmpegError, ValueError):
                # the rest of this part is lost; earlier blocks are valid
                self.damaged += 1
        if not has_block:
            yield from self._from_soundfile()

    def explain_no_sound(self) -> str:
        """Explain why a source has no sound, as a predicate that follows its name."""
        kind = self._kind_of_notes()
        return explain_notes(kind, self._size()) if kind else explain_no_sound(self._bytes_at, has_film=self.has_film)

    def _kind_of_notes(self) -> str | None:
        return recognize_notes(self._bytes_at(0, NOTES_HEAD))

    def _parts(self) -> list[tuple[int, int]]:
        """Return the byte ranges to read one by one: the links of a chained Ogg file, otherwise the whole file."""
        size = self._size()
        if self._bytes_at(0, 4) != b"OggS":
            return [(0, size)]
        self.cut_off = not _ogg_has_end(self._bytes_at(max(size - _OGG_MAX_PAGE, 0), _OGG_MAX_PAGE))
        bounds = [*self._ogg_link_starts(), size]
        # a single link, or a recording that begins inside a link, is read as a whole
        return list(itertools.pairwise(bounds)) if len(bounds) > 2 else [(0, size)]

    def _ogg_link_starts(self) -> list[int]:
        """Return the positions of the links in an Ogg file; each link starts with a first page (RFC 3533, 4)."""
        starts: list[int] = []
        next_page = -1
        for chunk_at in range(0, self._size(), _CHUNK):
            # read in chunks, because a memory map would count as memory of this process
            chunk = self._bytes_at(chunk_at, _CHUNK + _OGG_HEADER)
            for match in _OGG_FIRST_PAGE.finditer(chunk):
                if match.start() >= _CHUNK:  # the next chunk contains all of this page
                    break
                if chunk_at + match.start() != next_page:
                    starts.append(chunk_at + match.start())
                next_page = chunk_at + _ogg_page_end(chunk, match.start())
        return starts

    def _bytes_at(self, start: int, n_bytes: int) -> bytes:
        if isinstance(self.source, bytes):
            return self.source[start : start + n_bytes]
        with self.source.open("rb") as file:
            file.seek(start)
            return file.read(n_bytes)

    def _from_ffmpeg(self, start: int, stop: int) -> Iterator[Block]:
        options = SAFE_OPTIONS | (_PCM_PROBE if self._bytes_at(0, 4) in _PCM_HEADS else {})
        with (
            self._open(start, stop) as target,
            av.open(target, mode="r", options=options, **TAGS_MAY_BE_BROKEN) as container,
        ):
            if not container.streams.audio:
                pictures = container.streams.video
                self.has_film = any(not stream.disposition & Disposition.attached_pic for stream in pictures)
                return
            self.has_audio = True
            stream = container.streams.audio[0]
            if stream.codec_context is None:  # damage can hide the codec
                return
            # one worker process per core is faster than threads inside a decoder
            stream.codec_context.thread_count = 1
            self._note_length(container, stream)
            yield from self._decode(container, stream)

    @contextlib.contextmanager
    def _open(self, start: int, stop: int) -> Iterator[str | io.IOBase]:
        """Yield the bytes from `start` to `stop` for FFmpeg: a path for a whole file, otherwise a file object."""
        if isinstance(self.source, bytes):
            yield io.BytesIO(self.source[start:stop])
        elif (start, stop) == (0, self._size()) and not isinstance(self.source, RemotePath):
            yield str(self.source.absolute())
        else:
            with self.source.open("rb") as file:
                yield _FilePart(file, start, stop, str(self.source))

    def _note_length(self, container: av.container.InputContainer, stream: av.AudioStream) -> None:
        name = container.format.name
        if name in _GUESSED_LENGTH or (name == "mp3" and not self._mp3_states_length()):
            return
        if stream.duration is not None and stream.time_base is not None:
            seconds = float(stream.duration * stream.time_base)
        elif container.duration is not None:
            seconds = container.duration / 1_000_000
        else:
            return
        self.expected_s = (self.expected_s or 0.0) + max(seconds, self._cut_wav_s())

    def _cut_wav_s(self) -> float:
        """Return the length in a truncated WAV file's header, which FFmpeg ignores for PCM; 0 for a complete file."""
        head = self._bytes_at(0, 1 << 16)
        at, byte_rate = 12, 0
        while head[:4] == b"RIFF" and at + 8 <= len(head):
            kind, n_bytes = head[at : at + 4], int.from_bytes(head[at + 4 : at + 8], "little")
            if kind == b"fmt ":
                byte_rate = int.from_bytes(head[at + 16 : at + 20], "little")
            if kind == b"data":
                # recorders that do not know the length write the largest number
                cut = byte_rate > 0 and self._size() - at - 8 < n_bytes < _UNKNOWN_SIZE
                return n_bytes / byte_rate if cut else 0.0
            at += 8 + n_bytes + n_bytes % 2
        return 0.0

    def _size(self) -> int:
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    def _mp3_states_length(self) -> bool:
        """Return whether the first MP3 frame is a Xing, Info or VBRI header."""
        head, start = self._bytes_at(0, 10), 0
        if head[:3] == b"ID3" and len(head) == 10:
            start = 10 + sum((byte & 127) << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=True))
        first = self._bytes_at(start, 2048)
        return any(mark in first for mark in (b"Xing", b"Info", b"VBRI"))

    def _decode(self, container: av.container.InputContainer, stream: av.AudioStream) -> Iterator[Block]:
        fifo, n_channels = av.AudioFifo(), 0
        for frame in self._frames(container, stream):
            frame.pts = None  # lost packets leave gaps in the time stamps, which the fifo rejects
            if frame.layout.nb_channels != n_channels:  # the fifo would read beyond the frame
                yield from _drain(fifo)
                fifo, n_channels = av.AudioFifo(), frame.layout.nb_channels
            try:
                fifo.write(frame)
            except ValueError:  # the format, layout or rate changes within the file
                yield from _drain(fifo)
                fifo = av.AudioFifo()
                fifo.write(frame)
            while fifo.samples >= BLOCK_SAMPLES:
                yield from _drain(fifo, BLOCK_SAMPLES)
        yield from _drain(fifo)

    def _frames(self, container: av.container.InputContainer, stream: av.AudioStream) -> Iterator[av.AudioFrame]:
        decode, n_errors = _choose_decoder(stream), 0
        while n_errors < _MAX_DEMUX_ERRORS:
            try:
                for packet in container.demux(stream):
                    try:
                        frames = decode(packet)
                    except av.FFmpegError:
                        self.damaged += 1
                        continue
                    for frame in frames:
                        if frame.samples and _MIN_RATE <= frame.sample_rate <= _MAX_RATE:
                            yield frame
                return
            except av.error.EOFError:
                return
            except av.FFmpegError:
                # continue after the damage; a plain loop over frames would end here
                n_errors += 1
                self.damaged += 1

    def _from_soundfile(self) -> Iterator[Block]:
        # an open file instead of a path: libsndfile would treat any text file with the suffix .mp3 as MP3
        source = io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb")
        try:
            with source, soundfile.SoundFile(_FilePart(source, 0, self._size())) as file:
                if not _MIN_RATE <= file.samplerate <= _MAX_RATE:
                    return
                self.has_audio, self.expected_s = True, file.frames / file.samplerate
                for block in file.blocks(BLOCK_SAMPLES, dtype="float32", always_2d=True):
                    yield file.samplerate, block.T
        except soundfile.SoundFileError:
            # neither library can read the source; the caller raises an error because there are no samples
            return


def _choose_decoder(stream: av.AudioStream) -> _Decode:
    """Return a function that decodes packets: libopus for Opus, because FFmpeg's own decoder is less exact."""
    own = stream.codec_context
    if own.name != "opus" or "libopus" not in av.codecs_available:
        return stream.decode
    reference = av.CodecContext.create("libopus", "r")
    reference.extradata, reference.sample_rate, reference.layout = own.extradata, own.sample_rate, own.layout
    reference.options = {"request_sample_fmt": "flt"}
    return reference.decode


def _drain(fifo: av.AudioFifo, n_samples: int = 0) -> Iterator[Block]:
    """Yield the next `n_samples` samples (by default, all samples) as a block; yield nothing if `fifo` is empty."""
    frame = fifo.read(n_samples, partial=True)
    if frame is not None and frame.samples:
        yield _as_block(frame)


def _as_block(frame: av.AudioFrame) -> Block:
    if frame.format.is_planar and frame.layout.nb_channels >= _PLANES:
        packer = av.AudioResampler(frame.format.packed, frame.layout, frame.sample_rate)
        (frame,) = packer.resample(frame)
    samples = frame.to_ndarray()
    if not frame.format.is_planar:
        samples = samples.reshape(-1, frame.layout.nb_channels).T
    scale = _SCALES.get(samples.dtype.str[1:])
    if scale is not None:
        # contiguous channels, because later steps process whole channels
        scaled = np.empty(samples.shape, np.float32)
        samples = np.multiply(samples, np.float32(scale), out=scaled, dtype=np.float32)
        if frame.format.name.startswith("u8"):
            samples -= np.float32(1)
    return frame.sample_rate, samples.astype(np.float32, copy=False)


class _FilePart(io.RawIOBase):
    """A part of an open file as a file object; seeking before the start of the part goes to its start."""

    def __init__(self, file: BinaryIO, start: int, stop: int, name: str = "") -> None:
        self.name = name  # FFmpeg uses the name's suffix if the bytes are ambiguous
        self._file, self._start, self._stop = file, start, stop
        self._at = start

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        origin = {os.SEEK_SET: self._start, os.SEEK_CUR: self._at, os.SEEK_END: self._stop}[whence]
        self._at = max(origin + offset, self._start)
        return self._at - self._start

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer)[: max(self._stop - self._at, 0)]
        self._file.seek(self._at)
        n_read = self._file.readinto(view)  # type: ignore[attr-defined]
        self._at += n_read
        return n_read


def _ogg_page_end(data: bytes, start: int) -> int:
    table = start + 27
    n_segments = data[table - 1] if table <= len(data) else 0
    return table + n_segments + sum(data[table : table + n_segments])


def _ogg_has_end(tail: bytes) -> bool:
    """Return whether a file's last page is complete and marked as the last; `tail` contains at least one page."""
    last = tail.rfind(b"OggS")
    return last >= 0 and _ogg_page_end(tail, last) <= len(tail) and bool(tail[last + 5] & 4)
