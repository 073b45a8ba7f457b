"""The tab Albums of the Library page: the covers of all albums or artists, or one open album."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.extensions.albums.album_view import OPEN, show_album, tile_of
from musicsim.extensions.albums.catalogue import Album, find_albums, list_albums
from musicsim.extensions.albums.request import SORT_KEYS, AlbumListRequest
from musicsim.extensions.albums.tiles import Tile, show_tiles
from musicsim.ui.base import BY_STATE, Key, kept
from musicsim.wording import count

_PER_PAGE = 24
_ALBUMS, _ARTISTS = "Albums", "Artists"
_KIND: Key[str] = Key("albums_kind", lambda: _ALBUMS, "whether covers are those of albums or artists")
_SEARCH: Key[str] = Key("albums_search", str, "words that albums or artists must contain", per_library=True)
_PAGE: Key[int] = Key("albums_page", lambda: 1, "number of the shown page of covers", per_library=True)


@st.cache_resource(max_entries=8, show_spinner="Reading the albums…", hash_funcs=BY_STATE)
def _find(snapshot: Snapshot, search: str, sort: str) -> list[Album]:
    is_descending = sort in ("year", "songs", "minutes")
    return find_albums(snapshot, AlbumListRequest(search=search, sort=sort, descending=is_descending))


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the open album, or all covers."""
    for album in list_albums(snapshot) if OPEN.get() is not None else ():
        if album.id == OPEN.get():
            show_album(snapshot, album)
            return
    # a new list starts with its first page
    common: dict[str, Any] = {"label_visibility": "collapsed", "on_change": _PAGE.set, "args": (1,)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control("Covers of", (_ALBUMS, _ARTISTS), required=True, **_KIND.widget(), **common)
        st.text_input("Search albums", placeholder="Album or artist", **_SEARCH.widget(), **common)
        is_of_albums, sort = _KIND.get() == _ALBUMS, "artist"
        if is_of_albums:
            look: dict[str, Any] = {"format_func": "by {}".format, "width": 140}
            sort = st.selectbox("Sort by", SORT_KEYS, **look, **kept("albums_sort"), **common)
    albums = _find(snapshot, _SEARCH.get(), sort)
    groups = [[album] for album in albums] if is_of_albums else _group_by_artist(albums)
    if not groups:
        st.caption("No album matches. Albums come from the album tags of your files, or from folders without tags.")
        return
    n_pages = -(-len(groups) // _PER_PAGE)
    _PAGE.set(min(_PAGE.get(), n_pages))
    shown = groups[(_PAGE.get() - 1) * _PER_PAGE : _PAGE.get() * _PER_PAGE]
    st.caption(count(len(groups), "album" if is_of_albums else "artist"))
    tiles = [tile_of(own[0]) if is_of_albums else _artist_tile(own) for own in shown]
    show_tiles(snapshot.library, tiles, key="all")
    if n_pages > 1:
        st.pagination(n_pages, **_PAGE.widget())


def _group_by_artist(albums: Sequence[Album]) -> list[list[Album]]:
    """Return the albums of each known artist."""
    groups: dict[str, list[Album]] = {}
    for album in albums:
        if album.by:
            groups.setdefault(album.group, []).append(album)
    return list(groups.values())


def _artist_tile(albums: Sequence[Album]) -> Tile:
    """Return the tile of an artist; a click shows the artist's albums."""
    name, n_songs = albums[0].by, sum(len(album.song_ids) for album in albums)
    return Tile(
        albums[0].id, name, f"{count(len(albums), 'album')} · {count(n_songs, 'song')}", partial(_show_artist, name)
    )


def _show_artist(name: str) -> None:
    _KIND.set(_ALBUMS)
    _SEARCH.set(name)
    _PAGE.set(1)
