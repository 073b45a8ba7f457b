"""Rare options of the Listen page: the map's colors, ranking, examples, a part of the song, similar artists."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from musicsim.explorer.search.query import Example, find_similar_artists
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.text import plain
from musicsim.ui.components.listening import play_songs
from musicsim.ui.components.wave_part import choose_part
from musicsim.ui.listen.conditions import add_examples, ranking_options
from musicsim.ui.listen.map_column import map_options
from musicsim.ui.listen.seed import Seed
from musicsim.ui.listen.state import LISTEN, change

_N_ARTISTS = 5


def fill_more(snapshot: Snapshot, popover: DeltaGenerator, seed: Seed | None) -> None:
    """Show rare options in a popover; without a seed, show only the map's options."""
    with popover:
        map_options(snapshot)
        if seed is None:
            return
        ranking_options(snapshot)
        if seed.example is not None:
            add_examples(snapshot, seed.song_id)
            _choose_part(snapshot, seed)
        if seed.song_id is not None and snapshot.rows_of([seed.song_id])[0] >= 0:
            _show_similar_artists(snapshot, seed.song_id)


def _choose_part(snapshot: Snapshot, seed: Seed) -> None:
    """Show a waveform for selecting a part of the seed, if frames were stored and the model compares sound."""
    if snapshot.model is None or not snapshot.model.encoder_.uses_audio:
        return
    if isinstance(seed.example, Example):
        peaks, duration_s = seed.example.peaks, seed.example.duration_s
    elif seed.song is not None and snapshot.library.frame_files.path(seed.song.content_hash).exists():
        peaks, duration_s = snapshot.library.outline(seed.song.id), seed.song.duration_s
    else:
        return
    choose_part(
        seed.name, peaks, duration_s, LISTEN.get().part, key="search_part_wave", on_part=lambda part: change(part=part)
    )


def _show_similar_artists(snapshot: Snapshot, song_id: int) -> None:
    """Show similar artists, each with a button that plays the artist's songs nearest to the given song."""
    expander = st.expander("Similar artists", icon=":material/artist:", key="explore_artists", on_change="rerun")
    if not expander.open:
        return
    with expander:
        artists = find_similar_artists(snapshot, song_id, _N_ARTISTS)
        for place, (name, hits) in enumerate(artists.items()):
            songs = [hit.song for hit in hits]
            titles = " · ".join(plain(song.title) for song in songs)
            st.button(
                f"**{plain(name)}**: {titles}", icon=":material/play_arrow:", type="tertiary",
                key=f"similar_artist_{place}", on_click=partial(play_songs, snapshot.library, songs),
                help="Play this artist's songs closest to the selected one.",
            )  # fmt: skip
        if not artists:
            st.caption("This library does not have other artists.")
