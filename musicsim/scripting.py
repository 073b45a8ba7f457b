"""The library for scripts and notebooks: songs, neighbors and playlists as data frames."""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import soundfile

from musicsim import library
from musicsim._arrays import Float32Array
from musicsim.audio import DESCRIPTORS, SAMPLE_RATE
from musicsim.cli.console import progress_bar
from musicsim.cli.playlist import export_playlist
from musicsim.errors import NotFoundError
from musicsim.explorer import (
    Example,
    GeneratedPlaylist,
    PlaylistRequest,
    SearchRequest,
    Snapshot,
    Walk,
    find_requested,
    find_titled,
    snapshot_under,
)
from musicsim.explorer.refresh.add_music import add_and_refresh
from musicsim.explorer.refresh.fitted_model import add_fitted
from musicsim.explorer.search.query import read_example
from musicsim.explorer.snapshot.words import parse_words
from musicsim.library import AddReport, Song
from musicsim.progress import no_progress

__all__ = ["Library", "Models", "Playlist"]

_MAX_ALIKE = 1_000  # songs with a title that are read to find the one by an artist
_FACTS = ("title", "artist", "album", "year", "genre", "duration_s", *DESCRIPTORS, "path")

SongLike = int | str | os.PathLike[str] | npt.NDArray[Any]
"""A song's id, its title, ``"artist - title"``, a sound file, samples, or words such as ``"fast dark"``."""


class Library:
    """A music library in a folder, which is created if it does not exist.

    Use it for scripts and notebooks. Results are data frames whose index is the id of a song. For filters, jobs and
    everything else, use :mod:`musicsim.library` and :mod:`musicsim.explorer`; :attr:`store` is the library there.

    Parameters
    ----------
    folder : str or Path

    Attributes
    ----------
    models : Models
        The similarity models.
    store : musicsim.library.Library

    See Also
    --------
    musicsim.evaluate : compare metrics on songs by artists that they have not seen

    Examples
    --------
    >>> import tempfile
    >>> import musicsim as ms
    >>> from musicsim.demo import plan_collection, write_song
    >>> plans = plan_collection(n_artists_per_style=2, n_songs_per_artist=1, styles=["Ambient", "Techno"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     songs = [write_song(plan, folder + "/Music") for plan in plans]
    ...     with ms.Library(folder + "/my-library") as lib:
    ...         report = lib.add(folder + "/Music", progress=False)
    ...         similar = lib.similar(plans[0].title, k=2)
    ...         print(len(lib), lib.vectors().shape[0], list(similar.columns))
    ...         print(lib.songs().genre[similar.index[0]])
    ...
    4 4 ['similarity', 'title', 'artist', 'reason']
    Ambient
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.store = library.Library.open(Path(folder).expanduser())
        self.models = Models(self.store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Library({os.fspath(self.store.folder)!r})"

    def __len__(self) -> int:
        return len(self.store)

    def close(self) -> None:
        """Close the library's database."""
        self.store.close()

    def add(self, *sources: str | os.PathLike[str], progress: bool = True) -> AddReport:
        """Add folders and files, and update models and map; files that are in the library take no time.

        `progress` shows a progress bar on stderr. The report lists unreadable files with the reason.
        """
        if not sources:
            raise ValueError("sources is empty: pass at least one folder or file.")
        paths = [Path(source).expanduser() for source in sources]
        if not progress:
            return add_and_refresh(self.store, paths, progress=no_progress)
        with progress_bar() as bar:
            return add_and_refresh(self.store, paths, progress=bar)

    def songs(self, model: str | None = None) -> pd.DataFrame:
        """Return the songs that a model can compare: one row each, indexed by id, without duplicates.

        Unknown values are None or NaN. `model` is a name, by default that of the model in use.
        """
        snapshot = snapshot_under(self.store, model)
        return _frame_of(snapshot.songs_at(), _FACTS)

    def vectors(self, model: str | None = None) -> Float32Array:
        """Return the vectors of a model, float32 (n_songs, n_dimensions), in the order of ``songs(model)``.

        The Euclidean distance of two rows is the model's distance of two songs.
        """
        return snapshot_under(self.store, model).X

    def similar(
        self, song: SongLike, k: int = 10, *, model: str | None = None, per_artist: int | None = None,
        hub_reduction: bool = False, sr: int = SAMPLE_RATE, **filters: Any,
    ) -> pd.DataFrame:  # fmt: skip
        """Return the songs nearest to a song or a sound, or the songs that words describe.

        Parameters
        ----------
        song : int, str, Path or ndarray
            The id of a song, its title or ``"artist - title"``, a sound file, or samples, float (n_samples,). Other
            text is a query such as ``"fast dark -metal"``.
        k : int; number of songs
        model : str, optional
            Name of a model; the one in use by default.
        per_artist : int, optional
            Maximum number of songs by the same artist; no limit by default.
        hub_reduction : bool
            Whether to re-rank by mutual proximity, as the app does. Otherwise the order is that of plain distances.
        sr : int; sampling rate of samples, in Hz
        **filters
            Fields of :class:`musicsim.explorer.Filters`, such as ``genres=("Jazz",)``.

        Returns
        -------
        DataFrame with the columns similarity (0 to 1; NaN for words), title, artist and reason

        Raises
        ------
        NotFoundError
            If no song or several songs have this title.
        AudioError
            If a sound cannot be decoded, or is too short.
        """
        snapshot = snapshot_under(self.store, model)
        query, words = _read_query(snapshot, song, sr)
        request = SearchRequest(
            k=k, per_artist=per_artist or 0, hub_reduction=hub_reduction, **{"words": words} | filters
        )
        hits = find_requested(snapshot, query, request)
        frame = _frame_of([hit.song for hit in hits], ("title", "artist"))
        frame.insert(0, "similarity", np.array([hit.similarity for hit in hits], dtype=np.float64))
        return frame.assign(reason=[hit.reason for hit in hits])

    def playlist(
        self, *, first: SongLike | None = None, through: Sequence[SongLike] = (), length: int | None = None,
        minutes: float | None = None, model: str | None = None, random_state: int | None = None, **options: Any,
    ) -> "Playlist":  # fmt: skip
        """Generate a playlist: a random walk over songs that have something in common.

        Parameters
        ----------
        first : int or str, optional
            The first song; any by default.
        through : sequence of int or str
            Songs to pass through. The playlist ends with the last one.
        length : int, optional; number of songs instead of minutes
        minutes : float, optional; duration, 60 by default
        model : str, optional; the model in use by default
        random_state : int, optional; the same seed gives the same playlist
        **options
            Other fields of :class:`musicsim.explorer.PlaylistRequest`, such as ``surprise`` or ``spacing``.

        Raises
        ------
        NotFoundError
            If a song is unknown, or if no songs match.
        """
        snapshot = snapshot_under(self.store, model)
        if length is not None:
            options["length"] = length
        request = PlaylistRequest(
            first=None if first is None else _song_id(snapshot, first),
            through=tuple(_song_id(snapshot, song) for song in through), minutes=minutes, **options,
        )  # fmt: skip
        return Playlist(self.store, Walk(snapshot).generate(request, random_state))


class Playlist:
    """A generated playlist.

    Attributes
    ----------
    songs : DataFrame, indexed by song id, with the columns title, artist, duration_s and reason
    notes : tuple of str
        Options that could not be met.

    Examples
    --------
    >>> import tempfile
    >>> import musicsim as ms
    >>> from musicsim.demo import plan_collection, write_song
    >>> plans = plan_collection(n_artists_per_style=2, n_songs_per_artist=1, styles=["Ambient", "Techno"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     songs = [write_song(plan, folder + "/Music") for plan in plans]
    ...     with ms.Library(folder + "/my-library") as lib:
    ...         report = lib.add(folder + "/Music", progress=False)
    ...         playlist = lib.playlist(first=plans[0].title, length=3, random_state=0)
    ...         print(len(playlist), playlist.songs.title.iloc[0] == plans[0].title, list(playlist.songs.columns))
    ...         print(playlist.to_m3u8(folder + "/evening.m3u8"))
    ...
    3 True ['title', 'artist', 'duration_s', 'reason']
    []
    """

    def __init__(self, store: library.Library, generated: GeneratedPlaylist) -> None:
        self._store, self._songs = store, generated.songs
        self.notes = generated.notes
        reasons = [reason or "" for reason in generated.reasons]
        self.songs = _frame_of(generated.songs, ("title", "artist", "duration_s")).assign(reason=reasons)

    def __len__(self) -> int:
        return len(self._songs)

    def __repr__(self) -> str:
        return repr(self.songs)

    def _repr_html_(self) -> str:
        return str(self.songs._repr_html_())

    def to_m3u8(self, path: str | os.PathLike[str], *, relative: bool = False) -> list[str]:
        """Write a playlist file; other endings are .xspf, .jspf and .pls. Returns a note for each missing file."""
        return export_playlist(self._songs, Path(path), is_relative=relative)

    def save(self, name: str) -> None:
        """Save the playlist in the library; replaces one of this name."""
        self._store.add_playlists(
            [(name, None, [song.id for song in self._songs], library.GENERATED)], source=library.OWN_PLAYLISTS
        )


class Models:
    """The similarity models of a library.

    Examples
    --------
    >>> import tempfile
    >>> import musicsim as ms
    >>> from musicsim.demo import plan_collection, write_song
    >>> plans = plan_collection(n_artists_per_style=2, n_songs_per_artist=1, styles=["Ambient", "Techno"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     songs = [write_song(plan, folder + "/Music") for plan in plans]
    ...     with ms.Library(folder + "/my-library") as lib:
    ...         report = lib.add(folder + "/Music", progress=False)
    ...         wccn = ms.WCCN(0.5).fit(lib.vectors(), lib.songs().genre)
    ...         name = lib.models.add("genres", wccn)
    ...         print(name, lib.models().kind["genres"], len(lib.similar(plans[0].title, k=2, model="genres")))
    ...
    genres fitted 2
    """

    def __init__(self, store: library.Library) -> None:
        self._store = store

    def __call__(self) -> pd.DataFrame:
        """Return one row per model, indexed by name: number of dimensions, kind, and whether it is in use."""
        records, active = self._store.models.all(), self._store.models.active()
        rows = [(r.n_dimensions, r.kind, active is not None and r.id == active.id) for r in records]
        columns = ["n_dimensions", "kind", "in_use"]
        return pd.DataFrame(rows, columns=columns, index=pd.Index([r.name for r in records], name="model"))

    def __repr__(self) -> str:
        return repr(self())

    def add(self, name: str, estimator: Any, *, on: str | None = None, use: bool = False) -> str:
        """Make a model whose distance is that of an estimator fitted on ``vectors(on)``, and return its name.

        Parameters and errors are those of :func:`musicsim.explorer.refresh.fitted_model.add_fitted`.
        """
        return self._store.models.get(add_fitted(self._store, estimator, name, on=on, use=use)).name

    def use(self, name: str) -> None:
        """Use a model in the app and by default. Raises NotFoundError, which lists the names."""
        self._store.models.activate(self._store.models.find(name).id)

    def delete(self, name: str) -> None:
        """Delete a model. Raises NotFoundError, or LibraryError for a built-in model."""
        self._store.models.delete(self._store.models.find(name).id)


def _frame_of(songs: Sequence[Song], facts: Sequence[str]) -> pd.DataFrame:
    rows = [[getattr(song, name) for name in facts] for song in songs]
    return pd.DataFrame(
        rows, columns=list(facts), index=pd.Index([song.id for song in songs], name="id", dtype=np.int64)
    )


def _read_query(snapshot: Snapshot, song: SongLike, sr: int) -> tuple[int | Example | None, str]:
    """Return the example to search by, or None and words."""
    if isinstance(song, np.ndarray):
        sound = io.BytesIO()
        soundfile.write(sound, song, sr, format="WAV", subtype="FLOAT")
        return read_example(snapshot, sound.getvalue(), "the samples"), ""
    if isinstance(song, int | np.integer):
        return int(song), ""
    path = Path(song).expanduser()
    if not isinstance(song, str) or path.is_file():
        return read_example(snapshot, path, path.name), ""
    if (found := _find_song(snapshot, song)) is not None:
        return found, ""
    words = parse_words(snapshot, song)
    if words.parts and not words.unknown:
        return None, song
    try:
        return find_titled(snapshot, song), ""
    except NotFoundError as error:
        strange = f" As a query, it contains unknown words: {', '.join(words.unknown)}." * bool(words.parts)
        raise NotFoundError(f"{error}{strange}") from None


def _song_id(snapshot: Snapshot, song: SongLike) -> int:
    """Return the id of a song of the library; raises NotFoundError."""
    if isinstance(song, int | np.integer):
        return int(song)
    if not isinstance(song, str):
        raise TypeError(f"{type(song).__name__} is not a song of the library: pass its id or its title.")
    found = _find_song(snapshot, song)
    return find_titled(snapshot, song) if found is None else found


def _find_song(snapshot: Snapshot, text: str) -> int | None:
    """Return the id of the song whose title, or ``artist - title``, is this text, ignoring case; None if none is.

    Raises NotFoundError if there are several.
    """
    artist, dash, title = (part.strip().casefold() for part in text.partition(" - "))
    wanted = {(text.strip().casefold(), "")} | ({(title, artist)} if dash else set())
    found = {
        song.id: song.label
        for name, by in wanted
        for song in snapshot.songs_with(name, _MAX_ALIKE)
        if song.title.casefold() == name and by in ("", song.by.casefold())
    }
    if len(found) > 1:
        ids = ", ".join(f"{song_id} ({label})" for song_id, label in list(found.items())[:5])
        raise NotFoundError(f"several songs are called “{text}”. Use the id of one instead: {ids}.")
    return next(iter(found), None)
