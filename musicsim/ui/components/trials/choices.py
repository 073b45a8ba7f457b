"""The buttons of a blind question with two options, undo, and songs without names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from musicsim.explorer.playlists.tracks import make_track
from musicsim.library import Library, Song
from musicsim.ui.base import off_if
from musicsim.ui.components.play_button import show_play_button
from musicsim.ui.components.trials.session import Session

_CHOICES = ((0, "1"), (None, "0"), (1, "2"))  # the chosen option, and its key


def show_choices(session: Session[Any], labels: Sequence[str], *, key: str, disabled_because: str = "") -> None:
    """Show buttons for the first option, neither, and the second one, with the keys 1, 0 and 2.

    `disabled_because` is the reason why only neither can be chosen; empty if both options can.
    """
    for (chosen, shortcut), label in zip(_CHOICES, labels, strict=True):
        is_off = off_if(bool(disabled_because) and chosen is not None, disabled_because)
        st.button(label, key=f"{key}_{chosen}", shortcut=shortcut, on_click=session.answer, args=(chosen,), **is_off)


def show_undo(session: Session[Any], library: Library, *, key: str) -> None:
    """Show the button that deletes the last answer, if there is one."""
    if session.last_answer(library) is not None:
        st.button("Undo last answer", icon=":material/undo:", key=f"{key}_undo", on_click=session.undo)


def show_songs(library: Library, songs: Sequence[Song], *, key: str, is_named: bool) -> None:
    """Show buttons that play the songs; without names, only the sound counts."""
    tracks = [make_track(library, song) for song in songs]
    if not is_named:
        tracks = [
            replace(track, title=f"Song {n}", artist="", cover_url="", is_blind=True)
            for n, track in enumerate(tracks, start=1)
        ]
    with st.container(horizontal=True):
        for place, (track, song) in enumerate(zip(tracks, songs, strict=True)):
            label = song.label if is_named else track.title
            show_play_button(label, key=f"{key}_song_{place}", library=library, tracks=tracks, start=place)
