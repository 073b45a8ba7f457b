"""Search by example: drop a file, record, or choose a song; hear what is like it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.refresh.add_music import keep_upload
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.query import Example, Hit, Query
from musicsim.explorer.search.requested import find_requested, with_examples
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.library.scan.files import content_hash
from musicsim.public import is_public, visitor_may
from musicsim.ui.base.keys import CHOSEN
from musicsim.ui.base.openers import snapshot
from musicsim.ui.base.option_widgets import UPLOAD_TYPES
from musicsim.ui.base.text import plain
from musicsim.ui.base.uploads import EXAMPLE, Upload, example_of
from musicsim.ui.components.cover import show_cover
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.components.jobs_view import start_job
from musicsim.ui.components.listening import follow, play_songs
from musicsim.ui.components.player_routes import play_upload
from musicsim.ui.components.search_examples import PART, chosen_part, search_like
from musicsim.ui.components.song_finder import MatchKind, find_song, ids_of_match, song_matches
from musicsim.ui.components.song_list import Action, clock, hit_rows, song_list
from musicsim.ui.components.song_map import song_map
from musicsim.ui.components.wave_part import choose_part
from musicsim.ui.components.why_view import ask_why, show_why
from musicsim.ui.search.examples import WORDS, add_examples
from musicsim.ui.search.feedback import THUMBS, feedback_bar, feedback_on, say
from musicsim.ui.search.request_form import search_form

FILE_KEY, MICROPHONE_KEY = "search_file", "search_microphone"
_RECORDING = "your recording"


@dataclass(frozen=True, slots=True)
class _Searched:
    """The first example of a search."""

    example: int | Example  # a song's id, or sound from outside
    seed: Song | None  # the song of the library that it is
    upload: Upload | None = None  # the file or recording that it comes from

    @property
    def seed_id(self) -> int | None:
        """The id of the song that it is."""
        return self.seed.id if self.seed is not None else None

    def name_in(self, snapshot: Snapshot) -> str:
        """Name under which a session remembers thumbs about the results."""
        return f"{snapshot.library.name}:{self.upload.digest if self.upload is not None else self.example}"


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Search by example", anchor=False)
    stop_without_songs(now)
    _ways_in(now)
    try:
        query = _query(now)
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")
        return
    if query is None and not WORDS.get():
        st.info(
            "Drop an audio file, hum into the microphone, choose a song, or say in words what you look for. Songs "
            "from your collection will appear here.",
            icon=":material/hearing:",
        )
        return
    if query is not None:
        _about(now, query)
        more = st.expander(
            "More examples, or only a part of it", icon=":material/tune:", key="search_more", on_change="rerun"
        )
        if more.open:
            with more:
                add_examples(now, query.name_in(now), query.seed_id)
                _part(now, query)
    _answers(now, query, search_form(now, "" if query is None else query.name_in(now)))


def _ways_in(now: Snapshot) -> None:
    """A file, a recording, or a song of the library."""
    drop, record, choose = st.columns([4, 2, 4], gap="medium")
    drop.file_uploader("Drop a file", type=UPLOAD_TYPES, key=FILE_KEY, on_change=_took, args=(FILE_KEY,))
    record.audio_input("Or record", key=MICROPHONE_KEY, on_change=_took, args=(MICROPHONE_KEY,))
    with choose:
        find_song(
            "Or choose songs", key="search_song", on_pick=partial(_took_match, now), search=partial(song_matches, now)
        )


def _took(key: str) -> None:
    """Search with the file or recording that has just come, instead of the one before."""
    before = EXAMPLE.get()
    if before is not None and before.decoding is not None:
        before.decoding.drop()
    sent = st.session_state[key]
    if sent is not None:
        data = sent.getvalue()  # the very bytes that Streamlit holds; getbuffer() would copy them
        EXAMPLE.set(Upload(sent.name if key == FILE_KEY else _RECORDING, data, content_hash(data)))
    else:
        EXAMPLE.set(None)


def _took_match(now: Snapshot, kind: MatchKind, value: str) -> None:
    """Search with a song of the library, or with those of an artist or an album; or for what words mean."""
    if kind == "words":
        WORDS.set(value)
    else:
        search_like(now, ids_of_match(now, kind, value).tolist())


def _query(now: Snapshot) -> _Searched | None:
    """The upload, or else the chosen song if it has a vector."""
    upload, chosen = EXAMPLE.get(), CHOSEN.get()
    if upload is not None:
        example = example_of(now, upload)
        known = now.songs_by_id([example.song_id]) if example.song_id else []
        return _Searched(example, next(iter(known), None), upload)
    if chosen is not None and now.rows_of([chosen])[0] >= 0:
        (seed,) = now.songs_by_id([chosen])
        return _Searched(chosen, seed)
    return None


def _about(now: Snapshot, query: _Searched) -> None:
    """What is searched with, to be heard, and what can be done with it."""
    upload, seed = query.upload, query.seed
    with st.container(border=True):
        what, act = st.columns([3, 1], vertical_alignment="center")
        if upload is not None and isinstance(query.example, Example):
            what.markdown(f"**{plain(upload.name)}** · {clock(query.example.duration_s)}")
            what.button(
                "Play", icon=":material/play_arrow:", key="search_play_upload", on_click=play_upload,
                args=(upload, query.example.duration_s),
            )  # fmt: skip
            for note in query.example.notes:
                what.caption(f":material/info: {plain(note)}")
            is_owner = not is_public()
            if query.example.is_cut and not upload.is_whole and is_owner:
                act.button("Analyse the whole", icon=":material/hearing:", on_click=_take_whole, args=(upload,))
            if seed is not None:
                act.caption(f"This recording is in your collection: {plain(seed.label)}.")
                act.button("Show it", icon=":material/scatter_plot:", on_click=search_like, args=(now, [seed.id]))
            elif upload.name != _RECORDING and is_owner:
                busy = jobs.current(now.library) is not None
                act.button(
                    "Add to the collection", icon=":material/add:", on_click=_add_upload, args=(now, upload),
                    disabled=busy, help="Another job is running: see the Library page." if busy else None,
                )  # fmt: skip
        elif seed is not None:
            with what.container(horizontal=True, vertical_alignment="center"):
                show_cover(now.library, seed)
                st.markdown(f"**{plain(seed.title)}** · {plain(seed.by)} · {clock(seed.duration_s)}")
            act.button(
                "Play", icon=":material/play_arrow:", on_click=play_songs, args=(now.library, [seed]), width="stretch"
            )


def _part(now: Snapshot, query: _Searched) -> None:
    """The waveform, on which a part can be chosen where frames were stored and the model compares sound."""
    if now.model is None or not now.model.encoder_.uses_audio:
        return
    name = query.name_in(now)
    if isinstance(query.example, Example):
        peaks, duration_s = query.example.peaks, query.example.duration_s
    elif query.seed is not None and now.library.frame_files.path(query.seed.content_hash).exists():
        peaks, duration_s = now.library.outline(query.example), query.seed.duration_s
    else:
        return
    choose_part(
        name, peaks, duration_s, chosen_part(name), key="search_part_wave", on_part=lambda part: PART.set((name, part))
    )


def _take_whole(upload: Upload) -> None:
    """Search with all of a long upload."""
    upload.is_whole, upload.decoding = True, None


def _add_upload(now: Snapshot, upload: Upload) -> None:
    """Put an uploaded file into the collection."""
    try:
        start_job(now.library, "add", paths=[str(keep_upload(now.library, upload.name, upload.data))])
    except MusicsimError as error:
        st.toast(plain(error), icon=":material/warning:")


@st.fragment
def _answers(now: Snapshot, query: _Searched | None, request: SearchRequest) -> None:
    """The songs that were found, as a list and on the map.

    A fragment: a thumb, and a question why, run nothing else.
    """
    try:
        _find_and_show(now, query, request)
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")


def _find_and_show(now: Snapshot, query: _Searched | None, request: SearchRequest) -> None:
    if query is None:
        _list_and_map(now, None, find_requested(now, None, request))
        return
    said = feedback_on(now, query.name_in(now), query.seed_id)
    examples = with_examples(now, query.example, request)
    hits = find_requested(now, examples, request, said)
    hits_before = find_requested(now, examples, request, said.undone()) if said.said else hits
    _list_and_map(
        now, query, hits, judged=said.judged, asked=examples,
        bar=partial(feedback_bar, now, query.name_in(now), query.seed_id, hits_before, hits),
    )  # fmt: skip


def _list_and_map(
    now: Snapshot,
    query: _Searched | None,
    hits: list[Hit],
    *,
    judged: Mapping[int, int] | None = None,
    asked: Query | None = None,
    bar: Callable[[], None] | None = None,
) -> None:
    """Results with what can be done with each; thumbs and reasons where there is something to be similar to."""
    songs = [hit.song for hit in hits]
    found, where = st.columns([3, 2], gap="large")
    with found:
        n_songs = "1 song" if len(hits) == 1 else f"{len(hits)} songs"
        what = f"{n_songs} that fit" if query is None else n_songs.replace(" ", " most similar ")
        st.subheader(what if hits else "No songs match these filters", anchor=False)
        if not hits:
            st.caption("Loosen the filters or the words.")
        if query is not None and now.search_trouble:
            st.caption(f":material/cloud_off: {plain(now.search_trouble)}")

        def act_on(action: Action) -> None:
            """Play, queue, or search on with an answer, say whether it fits, or ask why it is one."""
            if action.kind == "why":
                ask_why(action.song_id)
            elif action.kind in THUMBS and query is not None:
                say(query.name_in(now), action.song_id, THUMBS[action.kind])
            else:
                follow(action, now, songs)
                st.rerun()

        if bar is not None:
            bar()
        song_list(hit_rows(hits, can_explain=asked is not None, judged=judged), key="hits", on_action=act_on)
        if asked is not None:
            show_why(now, asked)
    upload = None if query is None else query.upload
    with where:
        song_map(
            now, key="search_map", chosen=query.seed_id if query is not None and upload is None else None,
            found=[song.id for song in songs], query=None if upload is None else upload.place, height=480, legend=False,
            on_pick=partial(_heard, now),
        )  # fmt: skip
        st.caption("The star is your query; rings are the answers." if upload else "Rings are the answers.")


def _heard(now: Snapshot, song_id: int) -> None:
    """A click on a point of the map plays its song."""
    play_songs(now.library, now.songs_by_id([song_id]), preview=True)


if __name__ == "__main__":
    draw()
