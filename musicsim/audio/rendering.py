"""Tracker modules and MIDI files: notes that libopenmpt and FluidSynth render to sound.

Both libraries are optional. They are loaded with ctypes, because no registry has wheels of libopenmpt. They run in the
worker that decodes a file, within its limits of time and memory; a program could outlive it.
"""

import ctypes
import functools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import c_char_p, c_double, c_int, c_int32, c_size_t, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from musicsim._arrays import Float32Array

NOTES_HEAD = 1084  # number of bytes that reveal the format
SOUNDFONT_VARIABLE = "MUSICSIM_SOUNDFONT"
_RATE = 44_100
_BLOCK = 4096  # samples; FluidSynth finds the end of a song only between blocks
_MAX_S = 3600  # maximum length; a few bytes can ask for days of sound
_MAX_BYTES = 64 << 20  # both libraries need the whole file in memory
_MARKS = (
    (re.compile(rb"MThd|RIFF....RMID", re.DOTALL), "MIDI"),
    (re.compile(rb"Extended Module: "), "XM"),
    (re.compile(rb"IMPM"), "IT"),
    (re.compile(rb".{44}SCRM", re.DOTALL), "S3M"),
    (re.compile(rb".{1080}(M[.!&]K[.!]|N\.T\.|FLT[48]|[1-9]CHN|[1-3][0-9]C[HN])", re.DOTALL), "MOD"),
)
# Linux, then macOS. ctypes.util.find_library would start programs, which public demonstrations forbid.
_OPENMPT = ("libopenmpt.so.0", "libopenmpt.0.dylib")
_FLUIDSYNTH = ("libfluidsynth.so.3", "libfluidsynth.3.dylib")
_SOUNDFONT_FOLDERS = (
    *("/usr/share/sounds/sf2", "/usr/share/sounds/sf3", "/usr/share/soundfonts"),
    *("/usr/local/share/soundfonts", "/opt/homebrew/share/soundfonts"),
)
_SETTINGS = {b"synth.dynamic-sample-loading": 1, b"synth.lock-memory": 0}  # loads only the instruments that play
_GAIN = 0.5  # FluidSynth's 0.2 is 8 dB quieter, and meant for a mix with other sound
_LOG_LEVELS = 5
_PLAYING = 1
_NO_TITLE = re.compile(rb"\s*(track\W*\d*|untitled)\s*", re.IGNORECASE)  # names that sequencers give by default
_META, _TITLE, _SYSEX = 0xFF, 3, (0xF0, 0xF7)  # bytes of MIDI events


class Lack(NamedTuple):
    """A clause that says what is missing, and a sentence with the remedy."""

    problem: str
    remedy: str


def recognize_notes(head: bytes) -> str | None:
    """Return "MIDI", "XM", "IT", "S3M" or "MOD" from a file's first :data:`NOTES_HEAD` bytes; None for sound."""
    return next((kind for mark, kind in _MARKS if mark.match(head)), None)


def find_lack(kind: str) -> Lack | None:
    """Return what this machine lacks to render a format; None if it lacks nothing."""
    if kind != "MIDI":
        return None if _openmpt() else Lack("libopenmpt is not installed", "Install it, on Debian as libopenmpt0.")
    library, path = _fluidsynth(), _find_soundfont()
    if library is None:
        return Lack("FluidSynth is not installed", "Install it, on Debian as libfluidsynth3.")
    if path is None:
        return Lack("there is no soundfont", f"Install one, on Debian fluid-soundfont-gm, or set {SOUNDFONT_VARIABLE}.")
    if not library.fluid_is_soundfont(os.fsencode(path)):
        return Lack(f"{path.name} is not a soundfont", f"Set {SOUNDFONT_VARIABLE} to an .sf2 or .sf3 file.")
    return None


def explain_notes(kind: str, n_bytes: int) -> str:
    """Explain why a file of `n_bytes` cannot be rendered, as a predicate that follows its name; "" if it can be."""
    file = "is a MIDI file" if kind == "MIDI" else f"is a tracker module ({kind})"
    if n_bytes > _MAX_BYTES:
        return f"{file} larger than {_MAX_BYTES >> 20} MB. Render it to an audio file, or leave it out."
    lack = find_lack(kind)
    return f"{file}, but {lack.problem}. {lack.remedy} Then retry, or leave the file out." if lack else ""


def render_notes(data: bytes, kind: str) -> Iterator[tuple[int, Float32Array]]:
    """Yield the first hour of a file's sound as pairs of a sampling rate and an array of shape (2, n_samples).

    A module that repeats forever is played once. There is no block if the file is damaged, or if :func:`find_lack`
    returns a lack.
    """
    for n_blocks, block in enumerate(_render(data, kind), 1):
        yield _RATE, block
        if n_blocks * _BLOCK >= _MAX_S * _RATE:
            return


def note_tags(file: Any) -> list[tuple[str, str]]:
    """Return the titles and artists in a binary file of notes as (name, value) pairs; empty for other files.

    Examples
    --------
    >>> import io
    >>> from musicsim.audio import note_tags
    >>> track = bytes.fromhex("00ff0305") + b"Tides" + bytes.fromhex("00ff2f00")
    >>> midi = b"MThd" + bytes.fromhex("00000006000000010060") + b"MTrk" + len(track).to_bytes(4, "big") + track
    >>> note_tags(io.BytesIO(midi))
    [('title', 'Tides')]
    """
    head = file.read(NOTES_HEAD)
    kind = recognize_notes(head)
    if kind == "MIDI":
        return [("title", _decode_text(title)) for title in _midi_titles(head + file.read())]
    library = _openmpt() if kind else None
    if library is None:
        return []
    tags = []
    with _open_module(library, head + file.read()) as module:
        for name in ("title", "artist") if module is not None else ():
            text = library.openmpt_module_get_metadata(module, name.encode())
            tags.append((name, ctypes.string_at(text).decode(errors="replace")))
            library.openmpt_free_string(text)
    return tags


def _decode_text(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")


def _render(data: bytes, kind: str) -> Iterator[Float32Array]:
    if kind != "MIDI":
        library = _openmpt()
        return _render_module(library, data) if library else iter(())
    library, soundfont = _fluidsynth(), _find_soundfont()
    # the notes in a RIFF file follow its header
    return _render_midi(library, soundfont, data[data.find(b"MThd") :]) if library and soundfont else iter(())


def _load(names: tuple[str, ...]) -> ctypes.CDLL | None:
    for name in names:
        with suppress(OSError):  # the library is not installed under this name
            return ctypes.CDLL(name)
    return None


@functools.cache
def _openmpt() -> ctypes.CDLL | None:
    library = _load(_OPENMPT)
    if library is None:
        return None
    library.openmpt_module_create_from_memory2.restype = c_void_p
    library.openmpt_module_create_from_memory2.argtypes = (c_char_p, c_size_t, *(c_void_p,) * 7)
    library.openmpt_module_read_float_stereo.restype = c_size_t
    library.openmpt_module_read_float_stereo.argtypes = (c_void_p, c_int32, c_size_t, c_void_p, c_void_p)
    library.openmpt_module_get_metadata.restype = c_void_p  # not c_char_p, because the text must be freed
    library.openmpt_module_get_metadata.argtypes = (c_void_p, c_char_p)
    library.openmpt_free_string.argtypes = library.openmpt_module_destroy.argtypes = (c_void_p,)
    return library


@contextmanager
def _open_module(library: ctypes.CDLL, data: bytes) -> Iterator[int | None]:
    """Yield libopenmpt's handle of a module; None if it is damaged."""
    silent = ctypes.cast(library.openmpt_log_func_silent, c_void_p)
    module = library.openmpt_module_create_from_memory2(data, len(data), silent, *(None,) * 6)
    try:
        yield module
    finally:
        if module is not None:
            library.openmpt_module_destroy(module)


def _render_module(library: ctypes.CDLL, data: bytes) -> Iterator[Float32Array]:
    with _open_module(library, data) as module:
        n_samples = _BLOCK
        while module is not None and n_samples == _BLOCK:
            block = np.empty((2, _BLOCK), np.float32)
            left, right = (channel.ctypes.data for channel in block)
            n_samples = library.openmpt_module_read_float_stereo(module, _RATE, _BLOCK, left, right)
            yield block[:, :n_samples]


@functools.cache
def _fluidsynth() -> ctypes.CDLL | None:
    library = _load(_FLUIDSYNTH)
    if library is None:
        return None
    for name in ("new_fluid_settings", "new_fluid_synth", "new_fluid_player"):
        getattr(library, name).restype = c_void_p
    for name in (
        *("new_fluid_synth", "new_fluid_player", "delete_fluid_settings", "delete_fluid_synth", "delete_fluid_player"),
        *("fluid_player_play", "fluid_player_get_status"),
    ):
        getattr(library, name).argtypes = (c_void_p,)
    library.fluid_settings_setint.argtypes = (c_void_p, c_char_p, c_int)
    library.fluid_settings_setnum.argtypes = (c_void_p, c_char_p, c_double)
    library.fluid_is_soundfont.argtypes = (c_char_p,)
    library.fluid_synth_sfload.argtypes = (c_void_p, c_char_p, c_int)
    library.fluid_player_add_mem.argtypes = (c_void_p, c_char_p, c_size_t)
    library.fluid_synth_write_float.argtypes = (c_void_p, c_int, *(c_void_p, c_int, c_int) * 2)
    library.fluid_set_log_function.argtypes = (c_int, c_void_p, c_void_p)
    for level in range(_LOG_LEVELS):
        library.fluid_set_log_function(level, None, None)
    return library


@contextmanager
def _open_player(library: ctypes.CDLL, soundfont: Path, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield FluidSynth's handles of a synthesizer, and of a player that plays a MIDI file on it."""
    settings = library.new_fluid_settings()
    for name, number in _SETTINGS.items():
        library.fluid_settings_setint(settings, name, number)
    library.fluid_settings_setnum(settings, b"synth.sample-rate", _RATE)
    library.fluid_settings_setnum(settings, b"synth.gain", _GAIN)
    synth = library.new_fluid_synth(settings)
    player = library.new_fluid_player(synth)
    try:
        library.fluid_synth_sfload(synth, os.fsencode(soundfont), 1)
        library.fluid_player_add_mem(player, data, len(data))
        library.fluid_player_play(player)
        yield synth, player
    finally:
        library.delete_fluid_player(player)
        library.delete_fluid_synth(synth)
        library.delete_fluid_settings(settings)


def _render_midi(library: ctypes.CDLL, soundfont: Path, data: bytes) -> Iterator[Float32Array]:
    with _open_player(library, soundfont, data) as (synth, player):
        while True:
            block = np.empty((2, _BLOCK), np.float32)
            left, right = (channel.ctypes.data for channel in block)
            library.fluid_synth_write_float(synth, _BLOCK, left, 0, 1, right, 0, 1)
            if library.fluid_player_get_status(player) != _PLAYING:  # the last note has faded, or the file is damaged
                return
            yield block


def _find_soundfont() -> Path | None:
    """Return the soundfont of the environment or the first one in the usual folders, a default one if possible."""
    if path := os.environ.get(SOUNDFONT_VARIABLE):
        return Path(path)
    found = (path for folder in _SOUNDFONT_FOLDERS for path in Path(folder).glob("*.sf[23]"))
    return min(found, key=lambda path: (not path.name.startswith("default"), path), default=None)


def _midi_titles(data: bytes) -> Iterator[bytes]:
    """Yield the names before the first note of a MIDI file's first track, which are the titles of the song."""
    start = data.find(b"MTrk")
    at = start + 8 if start >= 0 else len(data)
    with suppress(IndexError):  # the file is cut off
        while True:
            _, at = _read_length(data, at)  # the time of the event
            if data[at] not in (_META, *_SYSEX):
                return
            is_title = data[at : at + 2] == bytes((_META, _TITLE))
            n_bytes, at = _read_length(data, at + (2 if data[at] == _META else 1))
            text = data[at : at + n_bytes]
            if is_title and not _NO_TITLE.fullmatch(text):
                yield text
            at += n_bytes


def _read_length(data: bytes, at: int) -> tuple[int, int]:
    """Return a MIDI number with seven bits per byte, and the position after it."""
    number = data[at] & 127
    while data[at] > 127:
        at += 1
        number = number << 7 | data[at] & 127
    return number, at + 1
