"""Search by example: drop a file, record, or choose a song, and find similar songs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.refresh.add_music import keep_upload
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.query import Example, Hit, Query
from musicsim.explorer.search.requested import combine_examples, find_requested
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.library.scan.files import content_hash
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.keys import CHOSEN
from musicsim.ui.base.option_widgets import UPLOAD_TYPES
from musicsim.ui.base.text import plain, toast_errors
from musicsim.ui.base.uploads import EXAMPLE, Upload, example_of
from musicsim.ui.components.jobs_view import start_job, stop_without_songs
from musicsim.ui.components.listening import follow, play_preview, play_songs, play_upload
from musicsim.ui.components.search_examples import PART, get_part, search_like
from musicsim.ui.components.song_finder import MatchKind, find_song, ids_of_match, song_matches
from musicsim.ui.components.song_list import Action, clock, hit_rows, show_cover, song_list
from musicsim.ui.components.song_map import song_map
from musicsim.ui.components.wave_part import choose_part
from musicsim.ui.components.why_view import ask_why, show_why
from musicsim.ui.search.feedback import THUMBS, feedback_bar, press_thumb, thumbs_of
from musicsim.ui.search.form import WORDS, add_examples, search_form

FILE_KEY, MICROPHONE_KEY = "search_file", "search_microphone"
_RECORDING = "your recording"


@dataclass(frozen=True, slots=True)
class _Seed:
    """The first example of a search."""

    example: int | Example  # a song's id, or sound from outside the library
    name: str  # key under which the session stores further examples, a part and thumbs of this search
    song: Song | None  # the example as a song in the library, if the library has it
    upload: Upload | None = None  # the upload, if the example is sound from outside the library

    @property
    def song_id(self) -> int | None:
        """Id of the song, or None."""
        return self.song.id if self.song is not None else None


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    st.title("Search by example", anchor=False)
    stop_without_songs(snapshot)
    drop, record, choose = st.columns([4, 2, 4], gap="medium")
    drop.file_uploader("Drop a file", type=UPLOAD_TYPES, key=FILE_KEY, on_change=_take_upload, args=(FILE_KEY,))
    record.audio_input("Or record", key=MICROPHONE_KEY, on_change=_take_upload, args=(MICROPHONE_KEY,))
    with choose:
        find_song(
            "Or choose songs", key="search_song", on_pick=partial(_take_match, snapshot),
            search=partial(song_matches, snapshot),
        )  # fmt: skip
    try:
        seed = _seed(snapshot)
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")
        return
    if seed is None and not WORDS.get():
        st.info(
            "Drop an audio file, hum into the microphone, choose a song, or describe songs in words. Results from "
            "your library will appear here.",
            icon=":material/hearing:",
        )
        return
    if seed is not None:
        with st.container(border=True):
            _show_seed(snapshot, seed)
        more = st.expander(
            "Add examples, or use only part of the song", icon=":material/tune:", key="search_more", on_change="rerun"
        )
        if more.open:
            with more:
                add_examples(snapshot, seed.name, seed.song_id)
                _show_waveform(snapshot, seed)
    _show_results(snapshot, seed, search_form(snapshot, "" if seed is None else seed.name))


def _take_upload(key: str) -> None:
    """Search with the new file or recording instead of the previous one."""
    before = EXAMPLE.get()
    if before is not None and before.decoding is not None:
        before.decoding.drop()
    sent = st.session_state[key]
    if sent is None:
        EXAMPLE.set(None)
    else:
        data = sent.getvalue()  # the bytes that Streamlit holds; getbuffer() would copy them
        EXAMPLE.set(Upload(sent.name if key == FILE_KEY else _RECORDING, data, content_hash(data)))


def _take_match(snapshot: Snapshot, kind: MatchKind, value: str) -> None:
    """Search for words, or with the songs of a title, an artist or an album."""
    if kind == "words":
        WORDS.set(value)
    else:
        search_like(snapshot, ids_of_match(snapshot, kind, value).tolist())


def _seed(snapshot: Snapshot) -> _Seed | None:
    """Return the upload, or else the chosen song if it has a vector."""
    upload, chosen = EXAMPLE.get(), CHOSEN.get()
    prefix = f"{snapshot.library.name}:"
    if upload is not None:
        example = example_of(snapshot, upload)
        songs = snapshot.songs_by_id([example.song_id]) if example.song_id else []
        return _Seed(example, prefix + upload.digest, next(iter(songs), None), upload)
    if chosen is not None and snapshot.rows_of([chosen])[0] >= 0:
        (song,) = snapshot.songs_by_id([chosen])
        return _Seed(chosen, f"{prefix}{chosen}", song)
    return None


def _show_seed(snapshot: Snapshot, seed: _Seed) -> None:
    """Show the first example and actions on it."""
    library, upload, song = snapshot.library, seed.upload, seed.song
    about, actions = st.columns([3, 1], vertical_alignment="center")
    if upload is not None and isinstance(seed.example, Example):
        about.markdown(f"**{plain(upload.name)}** · {clock(seed.example.duration_s)}")
        about.button(
            "Play", icon=":material/play_arrow:", key="search_play_upload", on_click=play_upload,
            args=(upload, seed.example.duration_s),
        )  # fmt: skip
        for note in seed.example.notes:
            about.caption(f":material/info: {plain(note)}")
        is_owner = not is_public()
        if seed.example.is_cut and not upload.is_whole and is_owner:
            actions.button("Analyze the whole", icon=":material/hearing:", on_click=_analyze_whole, args=(upload,))
        if song is not None:
            actions.caption(f"This recording is in your library: {plain(song.label)}.")
            actions.button("Show it", icon=":material/scatter_plot:", on_click=search_like, args=(snapshot, [song.id]))
        elif upload.name != _RECORDING and is_owner:
            busy = jobs.current(library) is not None
            actions.button(
                "Add to the library", icon=":material/add:", on_click=_add_upload, args=(snapshot, upload),
                disabled=busy, help="Another job is running: see the Library page." if busy else None,
            )  # fmt: skip
    elif song is not None:
        with about.container(horizontal=True, vertical_alignment="center"):
            show_cover(library, song)
            st.markdown(f"**{plain(song.title)}** · {plain(song.by)} · {clock(song.duration_s)}")
        actions.button(
            "Play", icon=":material/play_arrow:", on_click=play_songs, args=(library, [song]), width="stretch"
        )


def _show_waveform(snapshot: Snapshot, seed: _Seed) -> None:
    """Show a waveform to select a part on, if frames were stored and the model compares sound."""
    if snapshot.model is None or not snapshot.model.encoder_.uses_audio:
        return
    if isinstance(seed.example, Example):
        peaks, duration_s = seed.example.peaks, seed.example.duration_s
    elif seed.song is not None and snapshot.library.frame_files.path(seed.song.content_hash).exists():
        peaks, duration_s = snapshot.library.outline(seed.example), seed.song.duration_s
    else:
        return
    choose_part(
        seed.name, peaks, duration_s, get_part(seed.name), key="search_part_wave",
        on_part=lambda part: PART.set((seed.name, part)),
    )  # fmt: skip


def _analyze_whole(upload: Upload) -> None:
    upload.is_whole, upload.decoding = True, None


def _add_upload(snapshot: Snapshot, upload: Upload) -> None:
    with toast_errors():
        start_job(snapshot.library, "add", paths=[str(keep_upload(snapshot.library, upload.name, upload.data))])


@st.fragment
def _show_results(snapshot: Snapshot, seed: _Seed | None, request: SearchRequest) -> None:
    """Show the results as a fragment, so that thumbs and explanations do not run other parts of the page."""
    try:
        if seed is None:
            _show_list_and_map(snapshot, None, find_requested(snapshot, None, request))
            return
        thumbs = thumbs_of(snapshot, seed.name, seed.song_id)
        query = combine_examples(snapshot, seed.example, request)
        hits = find_requested(snapshot, query, request, thumbs)
        before = find_requested(snapshot, query, request, thumbs.undo()) if thumbs.votes else hits
        _show_list_and_map(
            snapshot, seed, hits, judged=thumbs.judged, query=query,
            bar=partial(feedback_bar, snapshot, seed.name, seed.song_id, before, hits),
        )  # fmt: skip
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")


def _show_list_and_map(
    snapshot: Snapshot, seed: _Seed | None, hits: list[Hit], *, judged: Mapping[int, int] | None = None,
    query: Query | None = None, bar: Callable[[], None] | None = None,
) -> None:  # fmt: skip
    """Show results; `judged` adds thumbs, and `query` adds explanations."""
    songs = [hit.song for hit in hits]
    results, place = st.columns([3, 2], gap="large")
    with results:
        n_songs = "1 song" if len(hits) == 1 else f"{len(hits)} songs"
        title = f"{n_songs} that match" if seed is None else n_songs.replace(" ", " most similar ")
        st.subheader(title if hits else "No songs match these filters", anchor=False)
        if not hits:
            st.caption("Use fewer filters or words.")
        if seed is not None and snapshot.search_trouble:
            st.caption(f":material/cloud_off: {plain(snapshot.search_trouble)}")

        def act(action: Action) -> None:
            if action.kind == "why":
                ask_why(action.song_id)
            elif action.kind in THUMBS and seed is not None:
                press_thumb(seed.name, action.song_id, THUMBS[action.kind])
            else:
                follow(action, snapshot, songs)
                st.rerun()

        if bar is not None:
            bar()
        song_list(hit_rows(hits, can_explain=query is not None, judged=judged), key="hits", on_action=act)
        if query is not None:
            show_why(snapshot, query)
    upload = None if seed is None else seed.upload
    with place:
        song_map(
            snapshot, key="search_map", chosen=seed.song_id if seed is not None and upload is None else None,
            marked=[song.id for song in songs], query=None if upload is None else upload.place, height=480,
            legend=False, on_pick=partial(play_preview, snapshot),
        )  # fmt: skip
        st.caption("The star is your query; rings mark the results." if upload else "Rings mark the results.")


if __name__ == "__main__":
    draw()
