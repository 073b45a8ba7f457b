"""The mix on the Playlist page: the playlist as one audio file."""

import tempfile
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import streamlit as st

from musicsim.audio import media_type
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.mixtape.mixtape import MIX_ENDINGS, Mix, render_mix
from musicsim.library import Song
from musicsim.ui.base.desk import desk, value_of, wait_for
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import off_if, plain, show_errors
from musicsim.ui.base.uploads import Upload
from musicsim.ui.components.listening import play_upload
from musicsim.ui.playlist.export import file_name
from musicsim.wording import clock, count

_SECONDS: Key[int] = Key("playlist_mix_seconds", lambda: 30, "seconds of each song in a mix")
_FADE: Key[int] = Key("playlist_mix_fade", lambda: 4, "length of a crossfade in seconds")
_ENDING: Key[str] = Key("playlist_mix_format", lambda: ".m4a", "format of the mix")
_MIX: Key[Path | None] = Key("playlist_mix", lambda: None, "file of the last mix")

_MAX_MIXES = 8  # maximum number of files that are kept for all sessions together


@st.cache_resource(show_spinner=False)
def _mixes() -> tempfile.TemporaryDirectory[str]:
    """Return the folder for mixes, which is deleted when the program ends."""
    return tempfile.TemporaryDirectory(prefix="musicsim-mixes-")


def _start(snapshot: Snapshot, songs: Sequence[Song]) -> None:
    folder = Path(_mixes().name)
    for old in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)[: -_MAX_MIXES + 1]:
        old.unlink(missing_ok=True)
    target = folder / f"{uuid.uuid4().hex}{_ENDING.get()}"
    seconds, fade = float(_SECONDS.get()), min(float(_FADE.get()), _SECONDS.get() / 2)

    render = partial(render_mix, snapshot.library, songs, target, seconds=seconds, crossfade_s=fade)
    desk().ask(("mix", target), lambda progress: render(progress=progress))
    _MIX.set(target)


def draw(snapshot: Snapshot, songs: Sequence[Song]) -> None:
    for key in (_SECONDS, _FADE, _ENDING):
        key.get()
    with st.expander("Mix: the playlist as one audio file", icon=":material/graphic_eq:"):
        st.caption("The most typical part of each song, at equal loudness and crossfaded.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.number_input(
                "Seconds of each song", 5, 600, step=5, key=_SECONDS.name, persist_state="session", width=170
            )
            st.number_input("Crossfade in seconds", 0, 20, key=_FADE.name, persist_state="session", width=170)
            st.selectbox(
                "Format", MIX_ENDINGS, key=_ENDING.name, persist_state="session", width=120,
                format_func=lambda ending: ending.lstrip("."),
            )  # fmt: skip
        task = desk().find(("mix", _MIX.get())) if _MIX.get() else None
        busy = task is not None and not task.future.done()
        st.button(
            "Make the mix", icon=":material/graphic_eq:", key="playlist_mix_it", on_click=_start,
            args=(snapshot, songs), **off_if(busy, "The mix is being made."),
        )  # fmt: skip
        if task is None:
            return
        wait_for([task], n_shown=int(not busy))
        with show_errors(OSError, ValueError):
            mix = value_of(task)
            if mix is not None:
                _show_mix(mix)


def _show_mix(mix: Mix) -> None:
    if not mix.path.exists():  # deleted to make room for other mixes
        st.caption("The last mix was deleted. You can make it again.")
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button("Play the mix", icon=":material/play_arrow:", key="playlist_mix_play", on_click=_play, args=(mix,))
        st.download_button(
            "Download the mix", mix.path.read_bytes, file_name(mix.path.suffix), media_type(mix.path),
            key="playlist_mix_download", icon=":material/download:", on_click="ignore",
        )  # fmt: skip
        st.caption(f"{count(len(mix.songs), 'song')} in {clock(mix.duration_s)}.")
    for song, reason in mix.left_out:
        st.caption(f":material/info: Left out of the mix: {plain(song.label)} ({plain(reason.rstrip('.'))})")


def _play(mix: Mix) -> None:
    with suppress(FileNotFoundError):  # the page then says that the mix was deleted
        sound = Upload(file_name(mix.path.suffix), mix.path.read_bytes(), digest=mix.path.stem)
        play_upload(sound, mix.duration_s)
