"""The mix on the Playlists page: the playlist as one audio file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.audio import media_type
from musicsim.explorer import BEATS, Snapshot, options_of
from musicsim.extensions.mixtape.cue import write_cue
from musicsim.extensions.mixtape.encoding import MIX_ENDINGS
from musicsim.extensions.mixtape.mixes import new_path, track_of
from musicsim.extensions.mixtape.mixtape import Mix, render_mix
from musicsim.extensions.mixtape.request import MixRequest
from musicsim.library import Library, Song
from musicsim.ui import PLAYLIST, PLAYLIST_NAME, change_draft, file_name
from musicsim.ui.base import (
    Key,
    describe_option,
    download,
    get_desk,
    off_if,
    option_keys,
    plain,
    show_errors,
    value_of,
    wait_for,
)
from musicsim.ui.components import show_play_button
from musicsim.wording import clock, count

_DESK = "mixes"
_OPTIONS = options_of(MixRequest)
_KEYS = option_keys("playlist_mix", MixRequest, seconds=30, crossfade_s=4)
_ENDING: Key[str] = Key("playlist_mix_format", lambda: ".m4a", "format of the mix")
_MIX: Key[Path | None] = Key("playlist_mix", lambda: None, "file of the last mix")


def _start(library: Library, songs: Sequence[Song]) -> None:
    target = new_path(_ENDING.get())
    values = {field: key.get() for field, key in _KEYS.items()}
    seconds = float(values["seconds"])
    request = MixRequest(**values | {"seconds": seconds, "crossfade_s": min(float(values["crossfade_s"]), seconds / 2)})
    get_desk(_DESK).ask(
        ("mix", target), lambda progress: render_mix(library, songs, target, request, progress=progress)
    )
    _MIX.set(target)


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the options and the last mix of the open playlist."""
    draft = PLAYLIST.get()
    songs = snapshot.songs_at(snapshot.rows_of(draft.song_ids)) if draft else []
    with st.expander("Mix: the playlist as one audio file", icon=":material/graphic_eq:"):
        st.caption("A part of each song or whole songs, at equal loudness, with fades in between.")
        _draw_options()
        key = ("mix", _MIX.get())
        task = get_desk(_DESK).find(key)
        is_mixing = task is not None and not task.future.done()
        with st.container(horizontal=True):
            st.button(
                "Make the mix", icon=":material/graphic_eq:", key="playlist_mix_it", on_click=_start,
                args=(snapshot.library, songs), **off_if(is_mixing, "The mix is being made."),
            )  # fmt: skip
            if is_mixing:
                cancel = get_desk(_DESK).cancel
                st.button("Cancel", icon=":material/close:", key="playlist_mix_cancel", on_click=cancel, args=(key,))
        if task is None:
            return
        wait_for([task], n_shown=int(not is_mixing))
        with show_errors(OSError, ValueError):
            mix = value_of(task)
            if mix is not None:
                _show_mix(snapshot.library, mix)


def _draw_options() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input(
            _OPTIONS["seconds"].label, 5, 600, step=5, width=170,
            **_KEYS["seconds"].widget(), **off_if(_KEYS["whole"].get(), "Whole songs are mixed."),
        )  # fmt: skip
        st.number_input(_OPTIONS["crossfade_s"].label, 0, 20, width=170, **_KEYS["crossfade_s"].widget())
        st.selectbox(
            **_widget("beats"), options=(None, *BEATS), width=170, format_func=lambda n: f"{n} beats" if n else "No"
        )
        st.selectbox(
            "Format", MIX_ENDINGS, width=120, format_func=lambda ending: ending.lstrip("."), **_ENDING.widget()
        )
    with st.container(horizontal=True):
        for name in ("whole", "reorder"):
            st.toggle(**_widget(name))


def _widget(field: str) -> dict[str, Any]:
    return describe_option(MixRequest, field) | _KEYS[field].widget()


def _show_mix(library: Library, mix: Mix) -> None:
    if not mix.path.exists():  # deleted to make room for other mixes
        st.caption("The last mix was deleted. You can make it again.")
        return
    track = track_of(mix.path, file_name(mix.path.suffix), mix.duration_s)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        show_play_button("Play the mix", key="playlist_mix_play", library=library, tracks=[track])
        name = file_name(mix.path.suffix)
        download("Download the mix", mix.path.read_bytes, name, media_type(mix.path), key="playlist_mix_download")
        cue = write_cue(mix, name, PLAYLIST_NAME.get())
        download("Download the cue sheet", lambda: cue, file_name(".cue"), "application/x-cue", key="playlist_mix_cue")
        ids = [song.id for song in mix.songs]
        draft = PLAYLIST.get()
        if draft is not None and ids != [i for i in draft.song_ids if i in ids]:
            st.button(
                "Use this order in the playlist", icon=":material/swap_vert:", key="playlist_mix_order",
                on_click=change_draft, args=(replace(draft.insert(0, ids), is_edited=draft.is_edited),),
            )  # fmt: skip
        st.caption(f"{count(len(mix.songs), 'song')} in {clock(mix.duration_s)}.")
    for song, reason in mix.left_out:
        st.caption(f":material/info: Left out of the mix: {plain(song.label)} ({plain(reason.rstrip('.'))})")
    rows = [
        {"Start": clock(start_s), "Song": plain(song.label), "Key": song.key_words, "Fade": fade.words if fade else ""}
        for start_s, song, fade in zip(mix.starts, mix.songs, (None, *mix.fades), strict=True)
    ]
    st.table(pd.DataFrame(rows), hide_index=True, border="horizontal")
