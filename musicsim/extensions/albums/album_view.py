"""One album on the page: its songs by work, ways to play it, and similar albums."""

from dataclasses import replace
from functools import partial

import streamlit as st

from musicsim.explorer import MAX_EXAMPLES, PlaylistDraft, Snapshot
from musicsim.extensions.albums.catalogue import Album, songs_of
from musicsim.extensions.albums.request import AlbumPlaylistRequest, SimilarAlbumsRequest
from musicsim.extensions.albums.similar import find_similar_albums, walk_albums
from musicsim.extensions.albums.tiles import Tile, show_tiles
from musicsim.extensions.albums.works import Work, group_works, name_movement
from musicsim.library import Song
from musicsim.ui import open_draft
from musicsim.ui.base import PAGES, Key, off_if, plain, show_errors
from musicsim.ui.components import row_of, show_cover, show_play_button, show_song_list
from musicsim.wording import clock, count

OPEN: Key[int | None] = Key("albums_open", lambda: None, "id of the open album", per_library=True)


def tile_of(album: Album, *facts: str) -> Tile:
    """Return an album's tile, with its artist and year, or the given facts; a click opens the album."""
    shown = facts or (album.by or count(len(album.song_ids), "song"), str(album.year or ""))
    return Tile(album.id, album.name, " · ".join(filter(None, shown)), partial(OPEN.set, album.id))


def show_album(snapshot: Snapshot, album: Album) -> None:
    """Show an album, its songs, and similar albums."""
    songs = songs_of(snapshot, album)
    st.button("All albums", icon=":material/arrow_back:", type="tertiary", on_click=OPEN.set, args=(None,))
    if not songs:
        st.caption("The songs of this album were just removed.")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        show_cover(snapshot.library, songs[0].id)
        with st.container(width="stretch", gap=None):
            st.header(plain(album.name), anchor=False)
            facts = (album.by, album.year, count(len(songs), "song"), clock(album.duration_s))
            st.caption(" · ".join(plain(fact) for fact in facts if fact))
    _show_actions(snapshot, album, songs)
    _show_songs(snapshot, songs)
    with show_errors():
        _show_similar(snapshot, album)


def _show_actions(snapshot: Snapshot, album: Album, songs: list[Song]) -> None:
    ids = snapshot.present_ids([song.id for song in songs])[:MAX_EXAMPLES]
    nothing = "" if ids else "These songs have not been compared yet."
    with st.container(horizontal=True):
        show_play_button(
            "Play", key="album_play", library=snapshot.library, song_ids=[song.id for song in songs], is_primary=True
        )
        show_play_button(
            "More like this album", key="album_more", library=snapshot.library, song_ids=ids, act="similar",
            disabled_because=nothing,
        )  # fmt: skip
        if st.button(
            "Playlist of similar albums", icon=":material/queue_music:", key="album_walk", **off_if(nothing, nothing)
        ):
            open_draft(snapshot, _draft(snapshot, album))
            st.switch_page(PAGES["playlist"])


def _draft(snapshot: Snapshot, album: Album) -> PlaylistDraft:
    """Return a playlist of this album and similar ones, each in track order."""
    steps = walk_albums(snapshot, album, AlbumPlaylistRequest())
    return PlaylistDraft(tuple(song.id for step in steps for song in songs_of(snapshot, step.album)))


def _show_songs(snapshot: Snapshot, songs: list[Song]) -> None:
    first = 0
    for work in group_works(songs):
        if work.title:
            st.markdown(f"**{plain(work.title)}**")
        _show_work(snapshot, songs, work, first)
        first += len(work.songs)


def _show_work(snapshot: Snapshot, songs: list[Song], work: Work, first: int) -> None:
    rows = [replace(row_of(song), title=name_movement(work, song)) for song in work.songs]
    plays = [song.id for song in songs]  # playing continues after the work
    show_song_list(snapshot.library, rows, key=f"album_songs_{first}", first=first, plays=plays)


def _show_similar(snapshot: Snapshot, album: Album) -> None:
    with st.spinner("Comparing albums…"):
        similar = find_similar_albums(snapshot, album, SimilarAlbumsRequest())
    if similar:
        st.header("Similar albums", anchor=False)
        tiles = [tile_of(one.album, one.album.by, f"similarity {one.similarity:.2f}") for one in similar]
        show_tiles(snapshot.library, tiles, key="similar")
