"""A waveform in which the user selects part of a song with the mouse, a finger or the keyboard."""

from collections.abc import Callable
from typing import Any

import numpy as np

from musicsim._arrays import Float32Array
from musicsim.ui.base.keys import read_event
from musicsim.ui.base.scripts import component

Part = tuple[float, float]


def choose_part(
    song: str, peaks: Float32Array, duration_s: float, part: Part | None, *, key: str,
    on_part: Callable[[Part | None], None],
) -> None:  # fmt: skip
    """Show the waveform; `part` is the selected (start, end) in seconds, or None for the whole song.

    `song` identifies the song; parts of a different song are ignored. `on_part` is called as a widget's callback.
    """

    def receive() -> None:
        sent = read_event(key, "part")
        if isinstance(sent, dict) and sent.get("song") == song:
            on_part(_parse(sent.get("seconds"), duration_s))

    component("wave_part")(
        key=key,
        data={"song": song, "peaks": np.round(peaks.astype(float), 3).tolist(), "duration_s": duration_s, "part": part},
        height="content",
        on_part_change=receive,
    )


def _parse(sent: Any, duration_s: float) -> Part | None:
    if not isinstance(sent, list) or len(sent) != 2 or not all(isinstance(s, int | float) for s in sent):
        return None
    return (float(sent[0]), float(sent[1])) if 0 <= sent[0] < sent[1] <= duration_s + 1 else None
