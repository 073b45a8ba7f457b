"""Search by example: drop a file, record, or choose a song; hear what is like it."""

import numpy as np
import numpy.typing as npt
import streamlit as st

from musicsim.audio import AUDIO_EXTENSIONS
from musicsim.errors import MusicsimError
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.query import Example, Filters, Hit, find_similar
from musicsim.explorer.snapshot.map_view import MOST_DRAWN, place_by_neighbours
from musicsim.explorer.upkeep.add_music import keep_upload
from musicsim.library.scan.files import content_hash
from musicsim.ui.base.state import CHOSEN, EXAMPLE, Upload, example, map_placer, snapshot
from musicsim.ui.base.text import plain
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.components.jobs_view import start_job
from musicsim.ui.components.listening import follow, play_songs
from musicsim.ui.components.map_chart import map_chart
from musicsim.ui.components.song_finder import find_names, find_song, song_matches
from musicsim.ui.components.song_list import Action, clock, hit_rows, song_list
from musicsim.ui.components.why_view import ask_why, show_why
from musicsim.ui.search.feedback import THUMBS, feedback_bar, feedback_on, say

now = snapshot()
st.title("Search by example", anchor=False)
stop_without_songs(now)

FILE_KEY, MICROPHONE_KEY = "search_file", "search_microphone"


def took(key: str) -> None:
    """Search with the file or recording that has just come, instead of the one before."""
    before = EXAMPLE.get()
    if before is not None and before.decoding is not None:
        before.decoding.drop()
    sent = st.session_state[key]
    if sent is not None:
        data = sent.getvalue()  # the very bytes that Streamlit holds; getbuffer() would copy them
        name = sent.name if key == FILE_KEY else "your recording"
        EXAMPLE.set(Upload(name, data, content_hash(data)))
    else:
        EXAMPLE.set(None)


def take_whole(upload: Upload) -> None:
    """Search with all of a long upload."""
    upload.is_whole, upload.decoding = True, None


def took_song(_: str, value: str) -> None:
    """Search with a song of the library."""
    for song in now.songs_by_id([int(value)]):
        CHOSEN.set(song.id)
        EXAMPLE.set(None)


def place_of(query: Example) -> npt.NDArray[np.float32]:
    """Where an upload stands on the map."""
    if now.n_indexed <= MOST_DRAWN:
        return map_placer(now).place(query.vector[None, :])[0]
    _, rows = now.index.query(query.vector[None, :], 10)
    return place_by_neighbours(now.map, rows[0])


def heard(song_id: int) -> None:
    """A click on a point of the map plays its song."""
    play_songs(now.library, now.songs_by_id([song_id]), preview=True)


def add_upload(upload: Upload) -> None:
    """Put an uploaded file into the collection."""
    try:
        start_job(now.library, "add", paths=[str(keep_upload(now.library, upload.name, upload.data))])
    except MusicsimError as error:
        st.toast(plain(error), icon=":material/warning:")


drop, record, choose = st.columns([2, 1, 1], gap="medium")
drop.file_uploader(
    "Drop a file",
    type=sorted(e.lstrip(".") for e in AUDIO_EXTENSIONS),
    key=FILE_KEY,
    on_change=took,
    args=(FILE_KEY,),
)
record.audio_input("Or record", key=MICROPHONE_KEY, on_change=took, args=(MICROPHONE_KEY,))
with choose:
    find_song(
        "Or choose a song", key="search_song", on_pick=took_song,
        search=lambda text: song_matches(now, text, with_artists=False),
    )  # fmt: skip

upload, query, place, seed = EXAMPLE.get(), None, None, None
if upload is not None:
    try:
        query = example(now, upload)
        place = place_of(query)
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")
        st.stop()
    seed = next(iter(now.songs_by_id([query.song_id])), None) if query.song_id else None
elif CHOSEN.get() is not None and now.rows_of([CHOSEN.get()])[0] >= 0:
    query = CHOSEN.get()
    (seed,) = now.songs_by_id([query])
if query is None:
    st.info(
        "Drop an audio file, hum into the microphone, or choose a song. Similar songs from your "
        "collection will appear here.",
        icon=":material/hearing:",
    )
    st.stop()

with st.container(border=True):
    what, act = st.columns([3, 1], vertical_alignment="center")
    if upload is not None:
        what.markdown(f"**{plain(upload.name)}** · {clock(query.duration_s)}")
        what.audio(upload.data)
        for note in query.notes:
            what.caption(f":material/info: {plain(note)}")
        if query.is_cut:
            act.button("Analyse the whole", icon=":material/hearing:", on_click=take_whole, args=(upload,))
        if seed is not None:
            act.caption(f"This recording is in your collection: {plain(seed.label)}.")
        elif upload.name != "your recording":
            act.button("Add to the collection", icon=":material/add:", on_click=add_upload, args=(upload,))
    else:
        what.markdown(f"**{plain(seed.title)}** · {plain(seed.by)} · {clock(seed.duration_s)}")
        act.button(
            "Play",
            icon=":material/play_arrow:",
            on_click=play_songs,
            args=(now.library, [seed]),
            width="stretch",
        )

n, limit, narrow = st.columns([1, 1, 2], vertical_alignment="bottom")
k = n.segmented_control("Songs", (10, 20, 50), default=10, key="search_k") or 10
per_artist = limit.number_input("Max. songs per artist (0 = no limit)", 0, 50, 2, key="search_per_artist")
with narrow.popover("Filters", icon=":material/filter_alt:", width="stretch"):
    columns = now.columns
    artists = find_names("Artists", columns.artist.names, key="search_artists")
    genres = find_names("Genres", columns.genre.names, key="search_genres")
    folders = find_names("Folders", columns.folder.names, key="search_folders")
    known = columns.year[columns.year > 0]
    first, last = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    years = st.slider("Years", first, last, (first, last)) if first < last else (first, last)
    longest = int(columns.duration_s.max()) + 1
    seconds = st.slider("Length in seconds", 0, longest, (0, longest))
filters = Filters(
    frozenset(artists),
    frozenset(genres),
    frozenset(folders),
    None if years == (first, last) else years,
    None if seconds == (0, longest) else seconds,
)

searched = f"{now.library.name}:{upload.digest if upload is not None else query}"
said = feedback_on(now.library, searched, seed.id if seed is not None else None)


def found_with(thumbs: Thumbs) -> list[Hit]:
    """Answers after what was said of some of them."""
    return find_similar(
        now, query, k, max_per_artist=per_artist or None, filters=filters, thumbs=thumbs,
    )  # fmt: skip


hits = found_with(said)
hits_before = found_with(said.undone()) if said.said else hits
songs = [hit.song for hit in hits]
found, where = st.columns([3, 2], gap="large")
with found:
    st.subheader(f"{len(hits)} most similar songs" if hits else "No songs match these filters", anchor=False)
    if not hits:
        st.caption("Loosen the filters.")

    def act_on(action: Action) -> None:
        """Play, queue, or search on with an answer, say whether it fits, or ask why it is one."""
        if action.kind == "why":
            ask_why(action.song_id)
        elif action.kind in THUMBS:
            say(searched, action.song_id, THUMBS[action.kind])
        else:
            follow(action, now, songs)

    feedback_bar(now, searched, seed.id if seed is not None else None, hits_before, hits)
    song_list(hit_rows(hits, can_explain=True, judged=said.judged), key="hits", on_action=act_on)
    show_why(now, query)
with where:
    map_chart(
        now, key="search_map", chosen=seed.id if seed is not None and upload is None else None,
        found=[song.id for song in songs], query=place, height=480, legend=False, on_pick=heard,
    )  # fmt: skip
    st.caption("The star is your query; rings are the answers." if upload else "Rings are the answers.")
