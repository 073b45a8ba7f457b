"""Damaged or crafted files: the valid part is read, or the file is refused in a sentence that names it."""

import json
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from musicsim.errors import LibraryError, MusicsimError
from musicsim.explorer.models.files import read_model_file
from musicsim.extensions.embeddings.vectors import EmbeddingStore
from musicsim.library import Library
from musicsim.library.archive.backups import restore
from musicsim.library.importing import preview_import, read_listening
from musicsim.library.importing.answers import export_answers, import_answers
from musicsim.progress import no_progress
from tests.audio.signals import as_bytes, encoded, music
from tests.children import command, complaint, finish
from tests.crafted_models import mutant as model_mutant
from tests.crafted_models import parts_of
from tests.shared import FORMATS
from tests.sounds import open_library
from tests.whole import faults_of
from torture._honest import honest_lists, honest_vectors
from torture._libraries import copied, in_child, whole_library
from torture._run import Attempt, Tried

__all__ = ["audio_mutants", "backup_mutants", "import_mutants", "model_mutants", "vector_mutants"]

Reader = Callable[[Path], Any]

_SOUNDS, _FILES = 40, 40  # per attempt
_LIMIT_S = 20.0  # per file
_MAX_SOUND = 400_000  # bytes


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage bytes: change some, cut, double or swap parts, or insert numbers out of all bounds."""
    changed = bytearray(data)
    start, end = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    match rng.integers(9):
        case 0:
            for place in rng.integers(0, len(data), rng.integers(1, 30)):
                changed[place] = rng.integers(256)
        case 1:
            changed[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        case 2:
            del changed[start:]
        case 3:
            del changed[start:end]
        case 4:
            changed[start:start] = changed[start:end]
        case 5:
            changed[start:end] = rng.bytes(end - start)
        case 6:  # numbers in headers
            place = int(rng.integers(0, min(len(data), 400)))
            changed[place : place + 4] = rng.choice([b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff"])
        case 7:
            words = [b"[" * 5000, b"\x00", b'"', b"\n", b"\xff\xfe", b"<", b"&x;", b"9" * 400, b"-1", b"1e999", b"null"]
            changed[start:start] = words[rng.integers(len(words))]
        case _:
            numbers = list(re.finditer(rb"-?\d+", data[:100_000]))
            if numbers:
                at = numbers[rng.integers(len(numbers))]
                values = [b"-1", b"0", b"1e999", b"99999999999999999999", b"NaN", b"true", b"{}", b'""', b"2147483648"]
                changed[at.start() : at.end()] = values[rng.integers(len(values))]
    return bytes(changed)


def _sounds() -> dict[str, bytes]:
    made = {
        "a.wav": as_bytes(music(2), subtype="PCM_16"),
        "a.flac": as_bytes(music(2), format="FLAC", subtype="PCM_16"),
        "a.ogg": as_bytes(music(2), format="OGG", subtype="VORBIS"),
        "a.aiff": as_bytes(music(2), format="AIFF", subtype="PCM_16"),
        "a.mp3": encoded(music(2), "libmp3lame", "mp3"),
        "a.m4a": encoded(music(2), "aac", "ipod"),
        "a.opus": encoded(music(2, 48_000), "libopus", "ogg", 48_000),
        "a.mka": encoded(music(2), "aac", "matroska"),
    }
    real = {path.name: path.read_bytes() for path in FORMATS if path.stat().st_size < _MAX_SOUND}
    return made | real


@contextmanager
def audio_mutants(folder: Path) -> Iterator[Attempt]:
    """Add a folder of mutated audio files: no worker dies, each is a song or listed with a reason."""
    honest = _sounds()

    def attempt(rng: np.random.Generator) -> Tried:
        shutil.rmtree(folder / "sounds", ignore_errors=True)
        shutil.rmtree(folder / "library", ignore_errors=True)
        (folder / "sounds").mkdir()
        names = rng.choice(sorted(honest), _SOUNDS)
        for n, name in enumerate(names):
            (folder / "sounds" / f"{n:02d} {name}").write_bytes(mutated(honest[name], rng))

        def add() -> None:
            with open_library(folder / "library") as library:
                library.set_setting("file_seconds", _LIMIT_S)
                library.add(folder / "sounds", anyway=True)

        ended = finish(add, folder / "said", 10 * _LIMIT_S)
        lost = [complaint(ended)]
        with Library.open(folder / "library") as library:
            failures = {failure.path.name: failure.reason for failure in library.files.failures()}
            known = {path.name for path in library.files.list_known()}
        for path in sorted((folder / "sounds").iterdir()):
            reason = failures.get(path.name, "")
            if path.name not in known and path.name not in reason:
                lost.append(f"{path.name} is no song, and no reason names it: {reason!r}")
            if re.search("crashed|exit code|died|longer than|Error:", reason):
                lost.append(reason)
        return Tried(_SOUNDS, tuple(filter(None, [*lost, *faults_of(folder / "library")])))

    yield attempt


class _TooLong(BaseException):
    pass


def _in_a_sentence(read: Callable[[], Any], name: str) -> str:
    """Read a file; return what is wrong with its refusal, or an empty string."""

    def late(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)
    try:
        read()
    except MusicsimError as error:
        words = str(error)
        return "" if "\n" not in words and len(words) < 1000 else f"{name}: {words[:300]!r}"
    except _TooLong:
        return f"{name}: not read within {_LIMIT_S:.0f} s"
    except Exception as error:
        return f"{name}: {type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    return ""


def _each(
    honest: Mapping[str, bytes], folder: Path, reader: Callable[[], AbstractContextManager[Reader]], n: int = _FILES
) -> Attempt:
    """Read mutants of some files in a child, because a library may crash it."""
    names, result = sorted(name for name, data in honest.items() if data), folder / "result.json"

    def attempt(rng: np.random.Generator) -> Tried:
        def read_all() -> None:
            lost, slowest = [], 0.0
            with reader() as read:
                for number, name in enumerate(rng.choice(names, n)):
                    path = folder / str(name)
                    path.write_bytes(mutated(honest[name], rng))
                    result.write_text(json.dumps([number, str(name), lost, slowest]))
                    began = time.monotonic()
                    if wrong := _in_a_sentence(lambda path=path: read(path), path.name):
                        lost.append(wrong)
                    slowest = max(slowest, time.monotonic() - began)
            result.write_text(json.dumps([n, "", lost, slowest]))

        ended = finish(read_all, folder / "said", n * _LIMIT_S)
        number, name, lost, slowest = json.loads(result.read_text())
        if wrong := complaint(ended):
            lost.append(f"{name}: {wrong}")
        return Tried(max(1, number), tuple(lost), slowest)

    return attempt


@contextmanager
def import_mutants(folder: Path) -> Iterator[Attempt]:
    """Read and preview mutants of every listening format, and of answers."""
    base = copied(whole_library(folder), folder / "library")
    honest = honest_lists(folder)
    with Library.open(base) as library:
        export_answers(library, folder / "answers.csv")
    honest["answers.csv"] = (folder / "answers.csv").read_bytes()

    @contextmanager
    def reader() -> Iterator[Reader]:
        with Library.open(base) as library:

            def read(path: Path) -> None:
                if path.name == "answers.csv":
                    import_answers(library, path)
                else:
                    preview_import(library, read_listening([path]))

            yield read

    yield _each(honest, folder, reader)
    if wrong := faults_of(base):
        raise RuntimeError(str(wrong))


@contextmanager
def vector_mutants(folder: Path) -> Iterator[Attempt]:
    """Read and store mutants of vector files."""
    base = copied(whole_library(folder), folder / "library")

    @contextmanager
    def reader() -> Iterator[Reader]:
        with Library.open(base) as library:
            store = EmbeddingStore(library)

            def read(path: Path) -> None:
                store.match(store.keep(path).key)
                shutil.rmtree(store.folder, ignore_errors=True)

            yield read

    yield _each(honest_vectors(folder), folder, reader)


@contextmanager
def model_mutants(folder: Path) -> Iterator[Attempt]:
    """Read mutants of a model file; import some of them with the command."""
    base = whole_library(folder)
    sent = folder / "sent.musicsim"
    in_child(command("models", "export", "Sound", sent, library=base), folder)
    parts = parts_of(sent)

    def attempt(rng: np.random.Generator) -> Tried:
        lost, slowest = [], 0.0
        for n in range(_FILES):
            path = folder / "mutant.musicsim"
            data = sent.read_bytes()
            path.write_bytes(model_mutant(parts, rng) if n % 2 else mutated(data, rng))
            scratch = folder / "scratch"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            began = time.monotonic()
            lost.append(_in_a_sentence(lambda place=scratch, path=path: read_model_file(path, place), path.name))
            slowest = max(slowest, time.monotonic() - began)
        library = copied(base, folder / "library")
        ended = finish(command("models", "import", path, library=library), folder / "said")
        lost += [complaint(ended, (0, 1)), *faults_of(library)]
        return Tried(_FILES, tuple(filter(None, lost)), slowest)

    yield attempt


@contextmanager
def backup_mutants(folder: Path) -> Iterator[Attempt]:
    """Restore mutants of a backup: refused, or the same library; a refused one leaves nothing behind."""
    base = whole_library(folder)
    in_child(command("backup", folder / "honest", library=base), folder)
    n_songs = 30

    def read(path: Path) -> None:
        place, packed = folder / "restored", folder / "packed"
        packed.write_bytes(zstandard.compress(path.read_bytes()))  # its own checksums would find every change
        shutil.rmtree(place, ignore_errors=True)
        try:
            if restore(packed, place, no_progress, accept=lambda _: True).n_songs != n_songs or faults_of(place):
                raise RuntimeError("another library came of it")
        except LibraryError:
            if place.exists():
                raise RuntimeError("something is left of what was refused") from None
            raise

    with (folder / "honest").open("rb") as stream, zstandard.ZstdDecompressor().stream_reader(stream) as unpacked:
        honest = unpacked.read()
    yield _each({"backup": honest}, folder, lambda: nullcontext(read), n=8)
