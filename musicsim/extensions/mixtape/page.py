"""The mix on the Playlist page: the playlist as one audio file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import streamlit as st

from musicsim.audio import media_type
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.mixtape.cue import write_cue
from musicsim.extensions.mixtape.encoding import MIX_ENDINGS
from musicsim.extensions.mixtape.mixes import new_path, track_of
from musicsim.extensions.mixtape.mixtape import Mix, render_mix
from musicsim.extensions.mixtape.request import BEATS, MixRequest
from musicsim.library import Library, Song
from musicsim.ui.base.desk import desk, value_of, wait_for
from musicsim.ui.base.keys import Key
from musicsim.ui.base.offered_files import download
from musicsim.ui.base.text import off_if, plain, show_errors
from musicsim.ui.components.play_button import play_button
from musicsim.ui.playlist.draft import NAME, PLAYLIST, change
from musicsim.ui.playlist.export import file_name
from musicsim.wording import clock, count

_DESK = "mixes"
_OPTIONS = options_of(MixRequest)
_SECONDS: Key[int] = Key("playlist_mix_seconds", lambda: 30, "seconds of each song in a mix")
_WHOLE: Key[bool] = Key("playlist_mix_whole", lambda: False, "True if a mix contains whole songs")
_FADE: Key[int] = Key("playlist_mix_fade", lambda: 4, "length of a crossfade in seconds")
_BEATS: Key[int | None] = Key("playlist_mix_beats", lambda: None, "length of a fade in beats; None: crossfades")
_REORDER: Key[bool] = Key("playlist_mix_reorder", lambda: False, "True if the songs of a mix are ordered for mixing")
_ENDING: Key[str] = Key("playlist_mix_format", lambda: ".m4a", "format of the mix")
_MIX: Key[Path | None] = Key("playlist_mix", lambda: None, "file of the last mix")


def _start(library: Library, songs: Sequence[Song]) -> None:
    target = new_path(_ENDING.get())
    request = MixRequest(
        seconds=float(_SECONDS.get()), whole=_WHOLE.get(), crossfade_s=min(float(_FADE.get()), _SECONDS.get() / 2),
        beats=_BEATS.get(), reorder=_REORDER.get(),
    )  # fmt: skip
    desk(_DESK).ask(("mix", target), lambda progress: render_mix(library, songs, target, request, progress=progress))
    _MIX.set(target)


def draw(snapshot: Snapshot, songs: Sequence[Song]) -> None:
    with st.expander("Mix: the playlist as one audio file", icon=":material/graphic_eq:"):
        st.caption("A part of each song or whole songs, at equal loudness, with fades in between.")
        _draw_options()
        key = ("mix", _MIX.get())
        task = desk(_DESK).find(key)
        busy = task is not None and not task.future.done()
        with st.container(horizontal=True):
            st.button(
                "Make the mix", icon=":material/graphic_eq:", key="playlist_mix_it", on_click=_start,
                args=(snapshot.library, songs), **off_if(busy, "The mix is being made."),
            )  # fmt: skip
            if busy:
                cancel = desk(_DESK).cancel
                st.button("Cancel", icon=":material/close:", key="playlist_mix_cancel", on_click=cancel, args=(key,))
        if task is None:
            return
        wait_for([task], n_shown=int(not busy))
        with show_errors(OSError, ValueError):
            mix = value_of(task)
            if mix is not None:
                _show_mix(snapshot.library, mix)


def _draw_options() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input(
            _OPTIONS["seconds"].label, 5, 600, step=5, width=170,
            **_SECONDS.widget(), **off_if(_WHOLE.get(), "Whole songs are mixed."),
        )  # fmt: skip
        st.number_input(_OPTIONS["crossfade_s"].label, 0, 20, width=170, **_FADE.widget())
        st.selectbox(
            _OPTIONS["beats"].label, (None, *BEATS), help=_OPTIONS["beats"].help, width=170,
            format_func=lambda n: f"{n} beats" if n else "No", **_BEATS.widget(),
        )  # fmt: skip
        st.selectbox(
            "Format", MIX_ENDINGS, width=120, format_func=lambda ending: ending.lstrip("."), **_ENDING.widget()
        )
    with st.container(horizontal=True):
        for name, key in (("whole", _WHOLE), ("reorder", _REORDER)):
            st.toggle(_OPTIONS[name].label, help=_OPTIONS[name].help, **key.widget())


def _show_mix(library: Library, mix: Mix) -> None:
    if not mix.path.exists():  # deleted to make room for other mixes
        st.caption("The last mix was deleted. You can make it again.")
        return
    track = track_of(mix.path, file_name(mix.path.suffix), mix.duration_s)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        play_button("Play the mix", key="playlist_mix_play", library=library, tracks=[track])
        name = file_name(mix.path.suffix)
        download("Download the mix", mix.path.read_bytes, name, media_type(mix.path), key="playlist_mix_download")
        cue = write_cue(mix, name, NAME.get())
        download("Download the cue sheet", lambda: cue, file_name(".cue"), "application/x-cue", key="playlist_mix_cue")
        ids = [song.id for song in mix.songs]
        draft = PLAYLIST.get()
        if draft is not None and ids != [i for i in draft.song_ids if i in ids]:
            st.button(
                "Use this order in the playlist", icon=":material/swap_vert:", key="playlist_mix_order",
                on_click=change, args=(replace(draft.insert(0, ids), is_edited=draft.is_edited),),
            )  # fmt: skip
        st.caption(f"{count(len(mix.songs), 'song')} in {clock(mix.duration_s)}.")
    for song, reason in mix.left_out:
        st.caption(f":material/info: Left out of the mix: {plain(song.label)} ({plain(reason.rstrip('.'))})")
    rows = [
        {"Start": clock(start_s), "Song": plain(song.label), "Key": song.key_words, "Fade": fade.words if fade else ""}
        for start_s, song, fade in zip(mix.starts, mix.songs, (None, *mix.fades), strict=True)
    ]
    st.table(pd.DataFrame(rows), hide_index=True, border="horizontal")
