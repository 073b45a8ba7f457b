"""Live fades on the beat: how far are the beats of two songs apart in what the player plays?

Chromium plays pairs of songs with the player's own engine, from the app's own addresses. The sound of each deck is
recorded on its own channel, with its volume.

- drum loops: kick, snare and hat with known beats, in several file formats. The second tempo is within 7 % of the first
  one, or of its half or double.
- real songs: neighbors in the order for mixing of a library (``--library``) that have a fade on the beat. Their beats
  are not known.

Onset strengths during the fade are averaged per beat, at the common tempo. *Moved* is how far the recorded ones are
from those of the same parts of the files: the error of the player. *Offset* is the distance of the beats in the
recording. For drum loops, this is the error of the plan plus that of the player; for real songs, the beats that librosa
finds count as true. *Clocks* is the median offset that the engine itself reads during the fade. Recordings are kept in
``data/experiments/live_mixing``.
"""

import base64
import contextlib
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import uvicorn
from playwright.sync_api import Page, sync_playwright
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from benchmarks.support.app import FLAGS, chromium
from benchmarks.support.report import Claim, Progress, Settings, Skipped, at_least, at_most, main
from experiments.mixing import NEAR, RATE, drum_loop
from experiments.support.results import ROOT
from musicsim import audio
from musicsim._arrays import Float32Array, Float64Array
from musicsim.api.routes import routes
from musicsim.explorer import open_library, order_for_mixing
from musicsim.explorer.mixing.song_ends import find_browser_delay, find_ends
from musicsim.explorer.mixing.transitions import Transition, plan_transition
from musicsim.library import Library, Song
from musicsim.ui.base.scripts import loader, script_routes

COINCIDE_S = 0.035
N_LOOP_PAIRS, N_REAL_PAIRS = 10, 10
LOOP_S = 30.0
_FORMATS = (".wav", ".flac", ".ogg", ".mp3", ".m4a", ".opus")
_CODECS = {".mp3": ("libmp3lame", "fltp"), ".m4a": ("aac", "fltp"), ".opus": ("libopus", "flt")}
_HOP = 32  # samples per value of the onset strength, 1.5 ms
_N_MOMENTS = 128
_ONSET_RATE = 22_050
_EDGE = 0.15  # share of the fade at either end in which one of the songs is too quiet to be measured
_PATIENCE_MS = 120_000
_RECORDINGS = ROOT / "data" / "experiments" / "live_mixing"
_PAGE = """<!doctype html><script type="module">
import { Engine } from "ENGINE";
window.engine = new Engine();
</script>"""
_RECORDER = """
registerProcessor("recorder", class extends AudioWorkletProcessor {
  process([input]) {
    if (input.length === 2) this.port.postMessage([currentFrame, input[0].slice(), input[1].slice()]);
    return true;
  }
});"""
_START = """async (code) => {
  const context = window.context = new AudioContext({ latencyHint: "interactive" });
  await context.audioWorklet.addModule(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const merger = context.createChannelMerger(2);
  const recorder = new AudioWorkletNode(context, "recorder", { channelCount: 2, channelCountMode: "explicit" });
  window.decks = [engine.deck, engine.spare];
  decks.forEach((deck, i) => context.createMediaElementSource(deck.audio).connect(merger, 0, i));
  merger.connect(recorder).connect(context.destination);
  window.blocks = [];
  window.log = [];
  recorder.port.onmessage = ({ data }) => window.isRecording && window.blocks.push(data);
  const align = engine.mixer.align.bind(engine.mixer);
  engine.mixer.align = (...args) => {
    const isAligned = align(...args);
    const { phase, offsets } = engine.mixer;
    log.push([context.currentTime, phase, offsets.at(-1) ?? null, args[2].audio.playbackRate]);
    return isAligned;
  };
  return context.sampleRate;
}"""
_PLAY = """async ([library, first, second]) => {
  Object.assign(window, { blocks: [], log: [], isRecording: false });
  // the first answer takes long, because workers load librosa
  const answer = await fetch(`/api/songs/${first}/transition?next_id=${second}&library=${encodeURIComponent(library)}`);
  const plan = await answer.json();
  engine.set({ between: "beats", radio: false, level: true });
  engine.playSongs([first, second], 0, { library });
  const { audio } = engine;
  if (audio.readyState < 1) await new Promise((done) => audio.addEventListener("loadedmetadata", done, { once: true }));
  window.isRecording = true;
  engine.seek(Math.max(0, plan.leave_s - 16)); // a mix begins at most 11 s before the fade
  return plan;
}"""
_RECORDED = """() => {
  window.isRecording = false;
  const { blocks } = window;
  const begin = blocks[0][0];
  const last = blocks.at(-1);
  const out = new Float32Array(2 * (last[0] - begin + last[1].length));
  for (const [frame, one, other] of blocks) for (let i = 0; i < one.length; i += 1) {
    out[2 * (frame - begin + i)] = one[i];
    out[2 * (frame - begin + i) + 1] = other[i];
  }
  const bytes = new Uint8Array(out.buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return { sound: btoa(text), begin: begin / context.sampleRate, log: window.log, first: decks.indexOf(engine.spare) };
}"""


@dataclass(frozen=True)
class Recording:
    """The sound of both decks: samples (2, n), those of the earlier song first, from a time of the audio clock on."""

    samples: Float32Array
    rate: int
    begin_s: float
    log: list[tuple[float, str, float | None, float]]  # time, phase, offset by the decks' clocks, and rate

    @property
    def fade_s(self) -> tuple[float, float]:
        """The first and last time at which both songs were heard, in seconds of the recording."""
        times = [at - self.begin_s for at, phase, _, _ in self.log if phase == "fading"]
        return (times[0], times[-1]) if times else (0.0, 0.0)

    @property
    def clocks_s(self) -> float:
        """The median offset that the engine read during the fade."""
        offsets = [offset for _, phase, offset, _ in self.log if phase == "fading" and offset is not None]
        return float(np.median(np.abs(offsets))) if offsets else np.nan


@contextlib.contextmanager
def _serve(library: Path) -> Iterator[str]:
    """Serve a library's songs and the player's engine; yield the address."""
    engine = loader("web/player/engine.js").split('new URL("')[1].split('"')[0]
    page = Route("/", lambda _: HTMLResponse(_PAGE.replace("ENGINE", f"./{engine}")))
    os.environ["MUSICSIM_LIBRARY"] = str(library)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        app = Starlette(routes=[page, *script_routes(), *routes()])
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(timeout=10)


def _write_loop(path: Path, samples: Float32Array) -> None:
    if path.suffix not in _CODECS:
        soundfile.write(path, samples.T, RATE)
        return
    codec, sample_format = _CODECS[path.suffix]
    rate = 48_000 if path.suffix == ".opus" else RATE
    blocks = iter([(RATE, samples)])
    with audio.open_encoder(path, codec, sample_format, layout="stereo", rate=rate, bit_rate=192_000) as encode:
        for frame in audio.resample_blocks(blocks, sample_format, "stereo", rate):
            encode(frame)


def _find_delay(path: Path, samples: Float32Array) -> float:
    """Return the seconds by which the sound in a file is later than the one that was encoded."""
    decoded, original = audio.decode(path, sr=RATE).samples, samples.mean(axis=0)
    n = len(decoded) + len(original)
    lags = np.fft.irfft(np.fft.rfft(decoded, n) * np.conj(np.fft.rfft(original, n)), n)
    at = int(np.argmax(lags))
    return (at if at < n // 2 else at - n) / RATE


def _make_loops(folder: Path, seed: int, n_pairs: int) -> tuple[list[tuple[int, int]], dict[int, tuple[float, float]]]:
    """Make a library of drum loops; return the pairs of ids, and the tempo and first beat of each."""
    rng = np.random.default_rng(seed)
    music = folder / "music"
    music.mkdir()
    truth = []
    for i in range(n_pairs):
        tempo = float(np.exp(rng.uniform(np.log(85), np.log(150))))
        other = tempo * NEAR ** rng.uniform(-1, 1) * float(rng.choice([0.5, 1.0, 1.0, 2.0]))
        for k, bpm in enumerate((tempo, other)):
            loop = drum_loop(bpm, rng, LOOP_S)
            n = 2 * i + k
            path = music / f"{n:02d}{_FORMATS[(i + k) % len(_FORMATS)]}"
            _write_loop(path, loop.samples)
            truth.append((bpm, loop.first_s + _find_delay(path, loop.samples)))
    library = Library.open(folder / "library")
    failures = library.add(music, n_workers=2, anyway=True).failures
    if failures:
        raise RuntimeError(f"loops cannot be added: {failures}")
    ids = [song.id for song in sorted(library.songs(), key=lambda song: song.path.name)]
    return [(ids[2 * i], ids[2 * i + 1]) for i in range(n_pairs)], dict(zip(ids, truth, strict=True))


def _choose_neighbors(library: Library, n_pairs: int, progress: Progress) -> list[tuple[int, int]]:
    """Return consecutive songs in the order for mixing that have a fade on the beat."""
    songs = [song for song in library.songs() if song.tempo and song.path.is_file()]
    pairs: list[tuple[int, int]] = []
    ends: dict[int, Any] = {}
    for first, second in pairwise(order_for_mixing(songs)):
        for song in (first, second):
            if song.id not in ends:
                ends[song.id] = find_ends(song.path, song.tempo)
        plan = plan_transition(first, second, (ends[first.id], ends[second.id]))
        progress(f"{first.title} to {second.title}: {plan.reason or 'on the beat'}")
        if not plan.reason:
            pairs.append((first.id, second.id))
        if len(pairs) == n_pairs:
            break
    return pairs


def record_pair(page: Page, address: str, library: str, pair: tuple[int, int]) -> tuple[Transition, Recording] | str:
    """Play the end of a song and the start of the next one; return the plan and what was heard, or the reason."""
    page.goto(address)
    page.wait_for_function("() => window.engine")
    rate = page.evaluate(_START, _RECORDER)
    answer = page.evaluate(_PLAY, [library, *pair])
    if answer["reason"]:
        return str(answer["reason"])
    page.wait_for_function("() => engine.index === 1 && !engine.leaving", timeout=_PATIENCE_MS)
    time.sleep(1.0)
    found = page.evaluate(_RECORDED)
    page.evaluate("() => engine.pause()")
    samples = np.frombuffer(base64.b64decode(found["sound"]), np.float32).reshape(-1, 2).T
    if found["first"] == 1:
        samples = samples[::-1]
    log = [tuple(entry) for entry in found["log"]]
    return Transition(**answer), Recording(np.ascontiguousarray(samples), round(rate), found["begin"], log)


def average_beat(samples: Float32Array, rate: int, period_s: float) -> Float64Array:
    """Return the mean onset strength at moments of a beat of known length, (_N_MOMENTS,); its start is arbitrary."""
    import librosa

    sound = librosa.resample(samples, orig_sr=rate, target_sr=_ONSET_RATE)
    strength = librosa.onset.onset_strength(y=sound, sr=_ONSET_RATE, hop_length=_HOP, n_fft=512, lag=8)
    moments = np.floor(np.arange(len(strength)) * _HOP / _ONSET_RATE / period_s % 1 * _N_MOMENTS).astype(int)
    sums = np.bincount(moments, strength, _N_MOMENTS)
    return np.asarray(sums / np.maximum(np.bincount(moments, minlength=_N_MOMENTS), 1))


def find_lag(beat: Float64Array, other: Float64Array) -> float:
    """Return by which share of a beat the other one is later, from -0.5 to 0.5: the best circular shift."""
    spectra = [np.fft.rfft(one - one.mean()) for one in (beat, other)]
    fits = np.fft.irfft(np.conj(spectra[0]) * spectra[1], _N_MOMENTS)
    at = int(np.argmax(fits))
    left, middle, right = fits[at - 1], fits[at], fits[(at + 1) % _N_MOMENTS]
    shift = 0.5 * (left - right) / (left - 2 * middle + right)
    return wrap((at + shift) / _N_MOMENTS, 1.0)


def wrap(seconds: float, period_s: float) -> float:
    """Return a difference of phases between minus half a period and half a period."""
    return float((seconds + period_s / 2) % period_s - period_s / 2)


def main_period(plan: Transition) -> float:
    """Return the common period of the beats of both songs during the fade."""
    return plan.duration_s / plan.n_beats


def measure(plan: Transition, heard: Recording, songs: tuple[Song, Song], truth: tuple[Any, Any]) -> dict[str, Any]:
    """Return how far the beats of two songs were apart during a fade, in seconds, and why."""
    start_s, end_s = heard.fade_s
    edge_s = _EDGE * (end_s - start_s)
    part = heard.samples[:, round((start_s + edge_s) * heard.rate) : round((end_s - edge_s) * heard.rate)]
    period_s = main_period(plan)
    begins = [at_s + edge_s * rate for at_s, rate in zip((plan.leave_s, plan.enter_s), plan.rates, strict=True)]
    lags, known = [], []
    for channel, song, played_s, rate, true in zip(part, songs, begins, plan.rates, truth, strict=True):
        y = audio.decode(song.path, sr=_ONSET_RATE).samples
        n = round((part.shape[1] / heard.rate) * rate * _ONSET_RATE)
        begin_s = played_s - find_browser_delay(song.path)
        first = round(begin_s * _ONSET_RATE)
        in_file = average_beat(y[first : first + n], _ONSET_RATE, period_s * rate)
        lags.append(find_lag(in_file, average_beat(channel, heard.rate, period_s)) * period_s)
        known.append((true[1] - begin_s) / rate if true else None)
    # the later song has two beats per period if it is twice as fast, and both are equal
    fold_s = min(period_s, *(60 / tempo / rate for tempo, rate in zip(plan.tempos, plan.rates, strict=True) if tempo))
    moved_s = wrap(lags[1] - lags[0], fold_s)
    planned_s = wrap(known[1] - known[0], fold_s) if None not in known else 0.0
    return {
        "planned_s": planned_s, "moved_s": moved_s, "offset_s": wrap(planned_s + moved_s, fold_s),
        "clocks_s": heard.clocks_s, "fade_s": end_s - start_s,
    }  # fmt: skip


def _play_pairs(
    folder: Path, pairs: list[tuple[int, int]], truth: dict[int, Any], progress: Progress
) -> Iterator[dict[str, Any]]:
    with _serve(folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=[*FLAGS, "--autoplay-policy=no-user-gesture-required"]
        )
        library = open_library()
        for pair in pairs:
            page = browser.new_page()
            found = record_pair(page, address, library.name, pair)
            page.close()
            first, second = (library.song(song) for song in pair)
            name = f"{first.path.name} to {second.path.name}"
            if isinstance(found, str):
                progress(f"{name}: {found}")
                continue
            plan, heard = found
            _RECORDINGS.mkdir(parents=True, exist_ok=True)
            target = _RECORDINGS / f"{first.path.stem} to {second.path.stem}.flac"
            soundfile.write(target, np.clip(heard.samples, -1, 1).T, heard.rate)
            measured = measure(plan, heard, (first, second), (truth.get(pair[0]), truth.get(pair[1])))
            progress(f"{name}: " + ", ".join(f"{key} {value:.4f}" for key, value in measured.items()))
            yield measured
        browser.close()


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Play all pairs."""
    if not chromium():
        raise Skipped("Chromium is missing.")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        pairs, truth = _make_loops(Path(scratch), settings.seed, N_LOOP_PAIRS)
        found = list(_play_pairs(Path(scratch) / "library", pairs, truth, progress))
        rows.append(_summarize("drum loops", len(pairs), found))
    if settings.library:
        pairs = _choose_neighbors(Library.open(settings.library, create=False), N_REAL_PAIRS, progress)
        found = list(_play_pairs(settings.library, pairs, {}, progress))
        rows.append(_summarize("real songs", len(pairs), found))
    return rows, list(_claims(rows))


def _summarize(material: str, n_pairs: int, found: list[dict[str, Any]]) -> dict[str, Any]:
    offsets, moved = (np.abs([one[name] for one in found]) for name in ("offset_s", "moved_s"))
    return {
        "material": material, "pairs": n_pairs, "fades": len(found),
        "median offset, ms": float(1000 * np.median(offsets)),
        "share up to 15 ms": float((offsets <= 0.015).mean()),
        "share up to 35 ms": float((offsets <= COINCIDE_S).mean()),
        "largest offset, ms": float(1000 * offsets.max()),
        "median moved, ms": float(1000 * np.median(moved)), "largest moved, ms": float(1000 * moved.max()),
        "median by the clocks, ms": float(1000 * np.nanmedian([one["clocks_s"] for one in found])),
    }  # fmt: skip


def _claims(rows: list[dict[str, Any]]) -> Iterator[Claim]:
    for row in rows:
        yield at_most(f"median error of the player in ms, {row['material']}", row["median moved, ms"], 15)
        yield at_least(f"share of fades that coincide, {row['material']}", row["share up to 35 ms"], 0.9)


if __name__ == "__main__":
    main("live_mixing", __doc__.splitlines()[0], run, rivals=("librosa",), takes_library=True)
