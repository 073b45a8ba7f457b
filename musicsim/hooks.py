"""Everything that an extension can add: the record in which it lists its parts, and the hooks that it can implement.

An extension is a module or package with one record ``EXTENSION``. The core reads the record, and loads everything else
by name when it is first needed. A target such as ``"page:draw"`` names the object ``draw`` in the module ``page`` of
the extension's package; ``":draw"`` names an object next to the record.

The fields of the record register things, such as commands, jobs and sections. A hook is a function that the core calls
at one point; each Protocol below describes one hook, and names the modules that call it. The core calls all extensions
that implement a hook, in the order of their names. Some hooks have one implementer: the core must not import an
extension, and extensions must not import each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from musicsim.errors import ExtensionError

if TYPE_CHECKING:
    from pathlib import Path

    from scipy import sparse
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array
    from musicsim.audio.networks import AudioNetwork
    from musicsim.explorer.job_progress import JobProgress
    from musicsim.explorer.playlists.queue import QueueItem
    from musicsim.explorer.playlists.walk import Walk
    from musicsim.explorer.requests.playlist import PlaylistRequest
    from musicsim.explorer.search.query import Example
    from musicsim.explorer.snapshot.conditions import All
    from musicsim.explorer.snapshot.model_rows import ModelRows
    from musicsim.explorer.snapshot.snapshot import Snapshot
    from musicsim.library import Library, Song
    from musicsim.progress import Progress
    from musicsim.ui.playlist.sending import Sending

T = TypeVar("T")
MENU = "⋯"
"""Group of the tabs that a page shows in its menu, because they are rarely used."""

# --- the record -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    """A command or a group of commands for the command line."""

    target: str
    """A function, or a ``typer.Typer`` with several commands."""
    help: str
    """One sentence."""
    panel: str = ""
    """Group of the command: ``musicsim help PANEL`` lists it; a new one adds a group."""
    is_main: bool = False
    """True if ``musicsim --help`` lists the command, too."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of background job."""

    target: str
    """A function like :class:`RunJob`."""
    title: str
    """Title of the job on the pages."""
    unit: str = "step"
    """Unit of the job's progress, as a singular noun."""
    uses_pool: bool = False
    """True if the job uses the library's worker pool (when there is one)."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page, in one of the core's tabs or in a tab of its own. The parts of a tab are sorted by `place`."""

    page: str
    """“playlist” (Playlists), “train” (Teach), “library”, “research”, or “models” for the models of Teach. Without a
    tab: “playlists” are the groups of the Playlists page, and “open playlist” is below a playlist. “answers” is below
    the listener's answers in Compare. “folder” is next to a music folder."""
    target: str
    """A function like :class:`DrawSection`, or like :class:`DrawFolder` for the page “folder”."""
    place: int = 100
    """Sort key of tabs and sections; the core uses multiples of 10."""
    tab: str = ""
    """Name in URLs of the section's own tab or of one of the core's tabs; by default, the title."""
    title: str = ""
    """Title of the section's own tab; this and the next two fields do not apply to the core's tabs."""
    group: str = ""
    """Title of the page's section that contains the tab, or :data:`musicsim.hooks.MENU`; by default, its own."""
    needs_songs: bool = True
    """If True and the library is empty, Research shows a request for music instead."""
    about: str = ""
    """One sentence for the overview of Research, which lists its tabs."""
    summary: str = ""
    """A function like :class:`DrawSection` that draws on this overview in place of the sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """Everything that an optional feature adds to the core, referenced by name."""

    name: str
    """Name of the extension, which is unique."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    """Keyed by name; “models add-onnx” is the command “add-onnx” in the group “models”."""
    command_options: Mapping[str, str] = field(default_factory=dict)
    """Decorators that add options to commands, keyed by the command's name; see :mod:`musicsim.cli.options`."""
    jobs: Mapping[str, JobKind] = field(default_factory=dict)
    """Kinds of background jobs, keyed by name."""
    sections: tuple[Section, ...] = ()
    """Parts of pages."""
    playlist_edits: Mapping[str, str] = field(default_factory=dict)
    """Functions like :class:`EditPlaylist`, keyed by their names in *More* of a playlist."""
    routes: str = ""
    """A function like :class:`MakeRoutes`."""
    http_router: str = ""
    """A ``fastapi.APIRouter`` with routes below ``/api``. Only the owner may use them, except endpoints marked with
    :func:`musicsim.public.visitor_may`."""
    import_formats: str = ""
    """A mapping of names to :class:`musicsim.library.ImportFormat`, for files that imports read."""
    representations: str = ""
    """A mapping of names to :class:`musicsim.explorer.Representation`, for models."""
    settings: str = ""
    """A mapping of names to functions ``check(text: str) -> str``, which raise ValueError for invalid texts. The names
    become settings of a library that are empty by default and belong to the machine."""
    tables: str = ""
    """Module with SQLAlchemy tables in :data:`musicsim.library.db.schema.metadata`, imported before a library opens."""
    remote_folder: str = ""
    """Name of the folder, in the library's folder, in which the paths of songs on servers lie; it has no files."""
    backup_files: tuple[str, ...] = ()
    """Files in the library's folder that contain passwords; a backup contains them only if the user asks for it."""
    hooks: Mapping[str, str] = field(default_factory=dict)
    """Implementations of hooks, keyed by the hook's name."""
    package: str = ""
    """Package or module of the targets; musicsim sets it."""
    origin: str = ""
    """File or distribution of an extension that is not part of musicsim; musicsim sets it."""

    def load(self, target: str) -> Any:
        """Import and return the object that a target names, or the module if the target has no colon.

        Raises ExtensionError if an extension that is not part of musicsim cannot be imported.
        """
        module, _, name = target.partition(":")
        try:
            loaded = import_module(f"{self.package}.{module}" if module else self.package)
            return getattr(loaded, name) if name else loaded
        except (Exception, SystemExit) as error:  # code of others may raise anything
            if not self.origin:
                raise
            reason = f"{type(error).__name__}: {' '.join(str(error).split()).removesuffix('.')}"
            raise ExtensionError(f"The target {target!r} of the extension {self.origin} fails: {reason}.") from error

    def targets(self) -> list[str]:
        """Return all targets in the record."""
        fields = (self.routes, self.http_router, self.import_formats, self.representations, self.settings, self.tables)
        records: list[Command | JobKind | Section] = [*self.commands.values(), *self.jobs.values(), *self.sections]
        tables = (self.command_options, self.playlist_edits, self.hooks)
        named = (target for table in tables for target in table.values())
        return [*filter(None, fields), *(record.target for record in records), *named]


class RunJob(Protocol):
    """Run a background job, with the arguments with which it was started; return False if it was canceled."""

    def __call__(self, library: Library, /, *, progress: JobProgress, **arguments: Any) -> bool | None: ...


class DrawSection(Protocol):
    """Draw a section; `busy` is True while a job is running.

    Only the owner sees the section, unless the function is marked with :func:`musicsim.public.visitor_may`.
    """

    def __call__(self, snapshot: Snapshot, /, *, busy: bool) -> None: ...


class DrawFolder(Protocol):
    """Draw a section of the page “folder”, next to one of the library's music folders."""

    def __call__(self, snapshot: Snapshot, /, *, busy: bool, folder: Path) -> None: ...


class EditPlaylist(Protocol):
    """Return the owner's playlist after a change, and a sentence about it."""

    def __call__(self, snapshot: Snapshot, song_ids: Sequence[int], /) -> tuple[tuple[int, ...], str]: ...


class MakeRoutes(Protocol):
    """Return routes below a path prefix.

    Only the owner may use them, except endpoints marked with :func:`musicsim.public.visitor_may`.
    """

    def __call__(self, prefix: str, /) -> list[BaseRoute]: ...


# --- hooks ------------------------------------------------------------------------------------------------------------


class Hook(NamedTuple):
    """The name under which extensions implement a hook, and the modules that call it."""

    name: str
    callers: tuple[str, ...]


HOOKS: dict[Callable[..., Any], Hook] = {}
"""All hooks, keyed by their Protocols."""


def _hook(name: str, *callers: str) -> Callable[[type[T]], type[T]]:
    """Register a Protocol as a hook that these modules of musicsim call."""

    def register(protocol: type[T]) -> type[T]:
        HOOKS[protocol] = Hook(name, callers)
        return protocol

    return register


@_hook("lifespan", "ui.app")
class Lifespan(Protocol):
    """Return a context that the app enters when its server starts, and leaves when it stops; not for visitors."""

    def __call__(self) -> AbstractAsyncContextManager[None]: ...


@_hook("after_snapshot", "ui.base.openers")
class AfterSnapshot(Protocol):
    """Start work after the app has loaded a snapshot; it must not block, and is not called for visitors."""

    def __call__(self, snapshot: Snapshot, /) -> None: ...


@_hook("after_refresh", "explorer.refresh.refresh")
class AfterRefresh(Protocol):
    """Do more after the models and the map were updated; if it is canceled, the library is up to date nevertheless."""

    def __call__(self, library: Library, progress: Progress, /) -> None: ...


@_hook("pool", "explorer.pools")
class UsePool(Protocol):
    """Return a context that sets the library's pool, so that jobs run on other machines."""

    def __call__(self, library: Library, /) -> AbstractContextManager[None]: ...


@_hook("audio_networks", "library.scan.networks")
class LoadNetworks(Protocol):
    """Return the networks that describe the new songs of the library in a folder during a scan."""

    def __call__(self, folder: Path, /) -> LibraryNetworks: ...


class LibraryNetworks(Protocol):
    """The networks of one extension in a library."""

    @property
    def networks(self) -> Sequence[AudioNetwork]: ...

    def keep(self, content_hash: str, vectors: Mapping[str, Float32Array], /) -> None:
        """Store the vectors of a song, keyed by the network's key; other networks' vectors may be among them."""


@_hook("search_engine", "explorer.snapshot.snapshot")
class ChooseEngine(Protocol):
    """Return an engine that replaces the local search in the active model, whose rows it gets; None for no engine."""

    def __call__(self, snapshot: Snapshot, rows: ModelRows, /) -> SearchEngine | None: ...


class SearchEngine(Protocol):
    """An external engine that replaces the local search for neighbors."""

    @property
    def trouble(self) -> str | None:
        """The reason for searching locally instead, in one sentence; None if the engine works."""

    def nearest(
        self, vector: Float32Array, k: int, allowed: BoolArray | None, condition: All | None, /
    ) -> Int64Array | None:
        """Return rows like :meth:`Snapshot.nearest`; None if they have to be found locally."""


@_hook("text_filter", "explorer.snapshot.words")
class FilterByWord(Protocol):
    """Return the meaning of a word of a search, and the ids of the matching songs; None if it is unknown."""

    def __call__(self, library: Library, word: str, /) -> tuple[str, Int64Array] | None: ...


@_hook("text_ranking", "explorer.snapshot.words")
class RankByText(Protocol):
    """Return a function from a text to the ids of songs, best match first; None if texts cannot be compared.

    The function gets words that nothing else matches, and all words after "sounds like". The best third of its songs
    match.
    """

    def __call__(self, library: Library, /) -> Callable[[str], Int64Array] | None: ...


@_hook("below_why", "api.why")
class ListFacts(Protocol):
    """Return more facts for *Why?* about a query and a song, as lines of text keyed by their title.

    Visitors get them if the function is marked with :func:`musicsim.public.visitor_may`.
    """

    def __call__(self, snapshot: Snapshot, query: int | Example, other_id: int, /) -> dict[str, list[str]]: ...


@_hook("last_plays", "explorer.snapshot.last_plays")
class ReadLastPlays(Protocol):
    """Return song ids and times of plays in seconds since 1970, both (n,); a song may occur several times."""

    def __call__(self, library: Library, /) -> tuple[Int64Array, Float64Array]: ...


@_hook("next_songs", "explorer.playlists.queue")
class ChooseNextSongs(Protocol):
    """Return the songs that continue a queue; None leaves the choice to the walk. Visitors always get the walk.

    A queue that starts from one song then has no nearest songs, unless they are compared in one factor.
    """

    def __call__(
        self, walker: Walk, request: PlaylistRequest, random_state: int | None, /
    ) -> list[QueueItem] | None: ...


@_hook("song_words", "explorer.playlists.song_labels")
class SongWords(Protocol):
    """Words of songs, from which playlists learn topics; a module with two functions implements it."""

    def read(self, library: Library, progress: Progress, /) -> object:
        """Update the words from the songs' files."""

    def table(self, library: Library, /) -> WordTable:
        """Return the words of all songs."""


class WordTable(Protocol):
    """Counts of words, in a sparse array (n, n_words), for the songs with these ids, (n,)."""

    @property
    def song_ids(self) -> Int64Array: ...

    @property
    def vocabulary(self) -> list[str]: ...

    @property
    def counts(self) -> sparse.csr_array: ...


@_hook("songs_named", "cli.playlist")
class FindSongsNamed(Protocol):
    """Return the songs of the extension's list with this name, for commands that take a saved playlist, or None."""

    def __call__(self, library: Library, name: str, model: str | None, /) -> Sequence[Song] | None: ...


@_hook("playlist_targets", "ui.playlist.sending")
class OfferTarget(Protocol):
    """Return a function that draws buttons to send a playlist to a program; None if the user has not set it up."""

    def __call__(self, sending: Sending, /) -> Callable[[], None] | None: ...


@_hook("connections", "explorer.health.doctor")
class CheckConnections(Protocol):
    """Raise LibraryError if the extension's file with connections to other programs cannot be read."""

    def __call__(self, library: Library, /) -> object: ...


@_hook("known_faults", "explorer.evaluation.quality")
class ListFaults(Protocol):
    """Return known faults in the labels of a library's songs, one sentence each."""

    def __call__(self, library: Library, /) -> list[str]: ...


@_hook("sound", "library.media.sound", "api.routes")
class RemoteSound(Protocol):
    """The sound of songs that have no file on this machine; a module with two functions implements it."""

    def songs_with_sound(self, library: Library, song_ids: Collection[int], /) -> set[int]:
        """Return the songs that a server can play."""

    def respond(self, library: Library, song: Song, request: Request, /) -> Response | None:
        """Answer a browser's request to play a song; None if the song is on no server."""


@_hook("foreign_ids", "extensions.player_engine.answering")
class KnowForeignIds(Protocol):
    """Return the ids that music servers gave to a library's songs."""

    def __call__(self, library: Library, /) -> ForeignIds: ...


class ForeignIds(Protocol):
    """Ids of songs on connected servers. The name of each server must be unique among all extensions."""

    def find_song(self, server_id: str, /) -> tuple[str, int] | None:
        """Return the server that an id belongs to, and the matching song in the library."""

    def first_server(self) -> str | None:
        """Return the first server that has songs."""

    def ids_of(self, song_ids: Iterable[int], server: str, /) -> dict[int, str]:
        """Map song ids to the server's ids; return an empty dict if the server belongs to a different extension."""

    def artist(self, item_id: str, /) -> tuple[str, str] | None:
        """Return the server that an artist id belongs to, and the artist's name; may raise ServerError."""


@_hook("playlist_servers", "extensions.daily.mixes")
class ListPlaylistServers(Protocol):
    """Return the connected servers that store playlists, keyed by name."""

    def __call__(self, library: Library, /) -> Mapping[str, PlaylistServer]: ...


class PlaylistServer(Protocol):
    """A server that stores playlists. Both methods raise MusicsimError if the server refuses or does not answer."""

    def save(self, name: str, song_ids: Sequence[int], comment: str, /) -> None:
        """Write a playlist, which replaces the one with this name that this library wrote."""

    def delete(self, name: str, /) -> None:
        """Delete a playlist that this library wrote."""
