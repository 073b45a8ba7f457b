"""A playlist as one audio file: a part of each song or whole songs, at equal loudness, with fades in between.

Samples are float32 (2, n) at 44.1 kHz, or 48 kHz for Opus. At most three excerpts are in memory.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from musicsim.errors import AudioDecodeError, AudioError
from musicsim.explorer import order_for_mixing
from musicsim.extensions.mixtape.encoding import find_format, open_writer
from musicsim.extensions.mixtape.excerpts import Excerpt, read_excerpt
from musicsim.extensions.mixtape.fades import Fade, Mixer
from musicsim.extensions.mixtape.request import MixRequest
from musicsim.library import Library, Song, atomic_path
from musicsim.progress import Progress, no_progress


@dataclass(frozen=True, slots=True)
class Mix:
    path: Path
    duration_s: float
    starts: tuple[float, ...]  # time in seconds at which each song begins to fade in; ascending, starting at 0
    fades: tuple[Fade, ...]  # between each song and the next one
    left_out: tuple[tuple[Song, str], ...]  # songs that are not in the mix, with the reasons
    songs: tuple[Song, ...]  # songs in the mix, in order


def render_mix(
    library: Library,
    songs: Sequence[Song],
    target: Path,
    request: MixRequest | None = None,
    *,
    progress: Progress = no_progress,
) -> Mix:
    """Write a mix of the most typical part of each song, or of whole songs; shorter songs are used in full.

    The extension of `target` selects the format (see :data:`musicsim.extensions.mixtape.encoding.MIX_ENDINGS`).
    Equal-power fades join the songs and end the mix. They take at most half an excerpt. All excerpts get the same
    RMS level, unless their peaks would clip. Raises AudioDecodeError if none of the songs can be read.
    """
    request = request or MixRequest()
    form = find_format(target)
    if not songs:
        raise ValueError("songs is empty: a mix needs at least one song.")
    current = {song.id: song for song in library.songs({song.id for song in songs}, missing=True)}
    if request.reorder:
        songs = order_for_mixing([current.get(song.id, song) for song in songs])
    mixed: list[Song] = []
    left_out: list[tuple[Song, str]] = []
    with atomic_path(target) as partial, contextlib.ExitStack() as stack:
        mixer: Mixer | None = None
        for song, excerpt in _excerpts(current, songs, request, form.rate, left_out, progress):
            if mixer is None:  # start the file only once there is audio
                write = stack.enter_context(open_writer(partial, form))
                mixer = Mixer(write, form.rate, round(request.crossfade_s * form.rate), request.beats)
            mixed.append(song)
            mixer.add(excerpt)
        if mixer is None:
            first, reason = left_out[0]
            raise AudioDecodeError(
                f"the mix was not made, because none of the {len(songs)} songs can be read. “{first.title}”: {reason}"
            )
        mixer.finish()
    starts = tuple(start / form.rate for start in mixer.starts)
    duration_s = mixer.n_written / form.rate
    return Mix(target, duration_s, starts, tuple(mixer.fades), tuple(left_out), tuple(mixed))


def _excerpts(
    current: Mapping[int, Song],
    songs: Sequence[Song],
    request: MixRequest,
    rate: int,
    left_out: list[tuple[Song, str]],
    progress: Progress,
) -> Iterator[tuple[Song, Excerpt]]:
    for n_done, wanted in enumerate(songs):
        progress(f"mixing “{wanted.title}”", n_done, len(songs))
        song = current.get(wanted.id)
        if song is None or song.is_missing:
            left_out.append((wanted, "the file is missing." if song else "the song is no longer in the library."))
            continue
        try:
            excerpt = read_excerpt(song, request, rate)
        except (AudioError, OSError) as error:
            left_out.append((song, str(error)))
            continue
        yield song, excerpt
