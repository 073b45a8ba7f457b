"""From a file to delta-MFCC frames: ours against the librosa reference and against bliss, one process, one thread.

Ours: `analyze_sound` (mono, 22,050 Hz, 13 MFCC, outline, typical part, hash of the sound) and the derivatives. The
librosa reference: `librosa.load` at 22,050 Hz mono, `mfcc`, two `delta`s. The rival bliss: `bliss_audio.Song(path)`,
the fastest open rival, in a separate process. bliss computes other features (23 numbers per song). It may panic, or
crash if the processor lacks an instruction set; those files are counted and left out of its ratio. Seconds are CPU
seconds: the minimum of several alternating rounds, after one to warm up.

Harmony and rhythm, computed in the same pass, may cost half of what MFCC, outline and hash do. Their share is measured
on the decoded samples as a plain WAV file, so that the decoder adds little to the difference.

Recordings: those of the optional data folder, about one minute each. They are used unchanged, and re-encoded for
formats without a long recording. Without that folder, pieces of the demo collection are joined to two minutes and
encoded in every format.
"""

import io
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.support.columns import NUMBER_0, KeptRows, Lines, Table, format_share, list_values
from benchmarks.support.encoding import ENDINGS, encode
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main, race, version
from benchmarks.support.rival import RivalError, RivalProcess
from musicsim._arrays import Float32Array
from musicsim.audio import analyze_sound, decode, delta_mfcc, derivatives
from musicsim.datasets import find
from musicsim.demo import SAMPLE_RATE, plan_collection, render
from musicsim.errors import DataSetAbsentError

REFERENCE_SR = 22050


def by_us(path: Path) -> np.ndarray:
    """Return delta-MFCC as the library stores them: MFCC in half precision, derivatives computed from these."""
    sound = analyze_sound(path)
    return derivatives(sound.mfcc.astype(np.float32))


def librosa_samples(path: Path) -> np.ndarray:
    """Read a file as the reference does."""
    import librosa

    return librosa.load(path, sr=REFERENCE_SR, mono=True)[0]


def aspects_share(path: Path, repeats: int) -> float:
    """Return the seconds that harmony and rhythm add to `analyze_sound`, over its seconds without them and decoding."""
    import soundfile

    plain = io.BytesIO()
    soundfile.write(plain, decode(path).samples, REFERENCE_SR, format="WAV", subtype="FLOAT")
    data = plain.getvalue()
    seconds = race(
        {
            "decoding": partial(decode, data),
            "timbre": partial(analyze_sound, data),
            "all": partial(analyze_sound, data, aspects=True),
        },
        repeats=repeats,
    )
    return (seconds["all"] - seconds["timbre"]) / (seconds["timbre"] - seconds["decoding"])


def by_librosa(path: Path) -> np.ndarray:
    """Return the frames of the reference: (n_frames, 39)."""
    import librosa

    y, sr = librosa_samples(path), REFERENCE_SR
    mfcc = librosa.feature.mfcc(y=y, sr=sr, n_mfcc=13, n_fft=512, hop_length=256, n_mels=40)
    return np.concatenate([mfcc, librosa.feature.delta(mfcc), librosa.feature.delta(mfcc, order=2)]).T


def librosa_frames(path: Path) -> int:
    """Return the number of frames of the reference; a module-level function that worker processes can run."""
    return len(by_librosa(path))


def exact_by_us(path: Path) -> np.ndarray:
    """Return delta-MFCC of our decoder in full precision, for the numeric comparison."""
    return delta_mfcc(decode(path).samples)


class Bliss:
    """Rival that computes numbers of a file."""

    def __init__(self) -> None:
        import bliss_audio

        self._song = bliss_audio.Song

    def analyze(self, path: str | Path) -> Float32Array:
        """Return about twenty numbers from -1 to 1."""
        return np.array(self._song(str(path)).analysis, dtype=np.float32)


def _refusal_of_librosa(path: Path) -> str:
    """Return librosa's error for a file, or an empty string if it reads the file."""
    try:
        by_librosa(path)
    except Exception as error:  # any failure counts
        return f"{type(error).__name__}: {error}".splitlines()[0][:80]
    return ""


def start_analyzer(
    make: Callable[[], object], package: str, path: Path, held: ExitStack
) -> tuple[RivalProcess | None, str]:
    """Return a process of an installed rival if it can analyze the file, or else None and the reason."""
    if not version(package):
        return None, "not installed"
    try:
        rival = held.enter_context(RivalProcess(make))
        rival.call("analyze", str(path))
    except RivalError as error:
        return None, str(error)
    return rival, ""


def recordings(folder: Path, seed: int) -> list[Path]:
    """Return two recordings per suffix: those of the data folder; missing ones are encoded from its longest."""
    try:
        originals = sorted((find("audio") / "originals").glob("*.*"))
    except DataSetAbsentError:
        originals = []
    long = [p for p in originals if p.stat().st_size > 500_000]
    if long:
        pieces = {p.stem: decode(p, sr=44100).samples for p in sorted(long, key=lambda p: -p.stat().st_size)[:2]}
    else:
        pieces = demo_pieces(seed)
    files = [p for p in long if p.suffix in ENDINGS]
    for ending in ENDINGS:
        for name, samples in pieces.items():
            here = [p.stem for p in files if p.suffix == ending]
            if len(here) < 2 and name not in here:
                files.append(encode(folder / f"{name}{ending}", samples, 44100))
    return sorted(files, key=lambda p: (p.suffix, p.name))


def demo_pieces(seed: int, n_pieces: int = 2, songs_a_piece: int = 5) -> dict[str, np.ndarray]:
    """Return songs of the demo collection joined to about two minutes each, mono, 44,100 Hz."""
    import soxr

    plans = plan_collection(seed=seed)
    chosen = [plans[i] for i in np.linspace(0, len(plans) - 1, n_pieces * songs_a_piece).astype(int)]
    pieces = {}
    for n in range(n_pieces):
        songs = [render(plan) for plan in chosen[n::n_pieces]]
        joined = np.concatenate([song.mean(axis=1) if song.ndim == 2 else song for song in songs])
        pieces[f"piece {n}"] = soxr.resample(joined, SAMPLE_RATE, 44100).astype(np.float32)
    return pieces


def measure(path: Path, repeats: int) -> dict[str, Any]:
    """Return the CPU seconds of all three on one file, and the deviation of our numbers from librosa's."""
    decoded = decode(path)
    rivals: dict[str, Callable[[], object]] = {
        "ours": partial(by_us, path),
        "ours, decoding alone": partial(decode, path),
    }
    refused = {"librosa": _refusal_of_librosa(path)}
    if not refused["librosa"]:
        rivals["librosa"] = partial(by_librosa, path)
    with ExitStack() as held:
        bliss, refused["bliss"] = start_analyzer(Bliss, "bliss-audio", path, held)
        if bliss is not None:
            rivals["bliss"] = partial(bliss.call, "analyze", path)
        seconds = race(rivals, repeats=repeats)
    row: dict[str, Any] = {"file": path.name, "format": path.suffix[1:], "minutes": decoded.duration_s / 60}
    for name in ("ours", "librosa", "bliss"):
        row[f"{name}_s"] = seconds.get(name)
    row["ours_s_a_minute"] = seconds["ours"] / row["minutes"]
    row["decoding_share"] = seconds["ours, decoding alone"] / seconds["ours"]
    row["aspects_share"] = aspects_share(path, repeats)
    for name in ("librosa", "bliss"):
        row[f"times_faster_than_{name}"] = seconds[name] / seconds["ours"] if name in seconds else None
        if refused[name]:
            row[f"{name}_says"] = refused[name]
    if "librosa" in seconds:
        reference, ours = by_librosa(path), exact_by_us(path)
        # librosa reads some formats only in part: compare only files that it reads completely
        row["librosa_reads_whole"] = abs(len(reference) - len(ours)) <= 1
        if row["librosa_reads_whole"]:
            n = min(len(reference), len(ours)) - 8  # the last frames depend on the end of the sound
            row["largest_difference"] = float(np.abs(reference[:n] - ours[:n]).max())
            same = delta_mfcc(librosa_samples(path))
            row["same_samples"] = float(np.abs(reference - same).max())
    return row


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        progress("recordings")
        files = recordings(Path(folder), settings.seed)
        for path in files:
            progress(path.name)
            rows.append(measure(path, repeats=15 if settings.full else 5))
    settings.facts.update(files=len(rows), threads=1)

    def ratios(rival: str, ending: str | None = None) -> list[float]:
        chosen = (r for r in rows if ending in (None, r["format"]) and r.get(f"times_faster_than_{rival}"))
        whole = (r for r in chosen if rival != "librosa" or r["librosa_reads_whole"])
        return [r[f"times_faster_than_{rival}"] for r in whole]

    def mean(values: list[float]) -> float | None:
        return float(np.exp(np.mean(np.log(values)))) if values else None

    claims = [at_least("times faster than librosa, geometric mean", mean(ratios("librosa")), 1.5)]
    for ending in ENDINGS:
        if ratios("librosa", ending[1:]):
            claim = f"times faster than librosa, {ending[1:]}"
            claims.append(at_least(claim, mean(ratios("librosa", ending[1:])), 1.25))
        else:
            settings.facts[f"librosa on {ending[1:]}"] = "does not read it whole"
    claims.append(at_least("times faster than bliss, geometric mean", mean(ratios("bliss")), 1.5))
    shares = [r["aspects_share"] for r in rows]
    claims.append(
        at_most(
            "what harmony and rhythm add, share of the time without them and decoding, mean",
            float(np.mean(shares)),
            0.5,
        )
    )
    for key, claim in (
        ("largest_difference", "largest difference of a feature from librosa's, each with its own decoder"),
        ("same_samples", "largest difference of a feature from librosa's, on the same samples"),
    ):
        claims.append(at_most(claim, max((r[key] for r in rows if key in r), default=None), 1e-3))
    settings.facts["bliss failed on"] = sum("bliss_says" in r for r in rows)
    settings.facts["share of time spent decoding"] = float(np.mean([r["decoding_share"] for r in rows]))
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate_formats(rows: KeptRows) -> Lines:
    yield "CPU time in ms per minute of audio", "musicsim", "librosa", "bliss-audio", "share of decoding in musicsim"
    for name in list_values(rows, "format"):
        of = [row for row in rows if row["format"] == name]
        minutes = sum(row["minutes"] for row in of)
        line = []
        for column in ("ours_s", "librosa_s", "bliss_s"):
            seconds = [row[column] for row in of]
            line.append(NUMBER_0(None if None in seconds else 1e3 * sum(seconds) / minutes))
        yield name, *line, format_share(sum(row["decoding_share"] for row in of) / len(of))


TABLES: dict[str, Table] = {"extraction: formats": _tabulate_formats}


if __name__ == "__main__":
    main(
        "extraction",
        "features of a file",
        run,
        data=("audio",),
        rivals=("librosa", "bliss-audio", "av", "soxr", "soundfile"),
        short="5 of 15 repeats. The full form is worth running for FLAC, which only just misses its goal",
    )
