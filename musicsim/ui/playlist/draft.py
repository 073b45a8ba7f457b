"""The current playlist of a session, with undo and redo."""

from musicsim.explorer import PlaylistDraft
from musicsim.ui.base import Key
from musicsim.ui.base.keys import LIBRARY

_MAX_DRAFTS = 60

PLAYLIST: Key[PlaylistDraft | None] = Key("playlist", lambda: None, "current draft", per_library=True, is_kept=True)
PLAYLIST_NAME: Key[str] = Key("playlist_name", str, "name to save the playlist under")


_HISTORIES: Key[dict[str, tuple[tuple[PlaylistDraft, ...], int]]] = Key(
    "playlist_histories", dict, "drafts and index of the current one, keyed by library name", is_kept=True
)


def _history() -> tuple[tuple[PlaylistDraft, ...], int]:
    return _HISTORIES.get().get(LIBRARY.get(), ((), -1))


def _set_history(drafts: tuple[PlaylistDraft, ...], at: int) -> None:
    _HISTORIES.set(_HISTORIES.get() | {LIBRARY.get(): (drafts, at)})


def change_draft(draft: PlaylistDraft) -> None:
    """Make a draft the current playlist; :func:`undo` returns to the previous one."""
    drafts, at = _history()
    drafts = (*drafts[: at + 1], draft)[-_MAX_DRAFTS:]
    _set_history(drafts, len(drafts) - 1)
    PLAYLIST.set(draft)


def amend(draft: PlaylistDraft) -> None:
    """Replace the current playlist with one that has the same songs, without adding an undo step."""
    drafts, at = _history()
    if drafts and PLAYLIST.get() is not None:
        _set_history((*drafts[:at], draft, *drafts[at + 1 :]), at)
    PLAYLIST.set(draft)


def can_undo() -> bool:
    """Return True if an earlier draft exists."""
    drafts, at = _history()
    return at > 0 or (PLAYLIST.get() is None and bool(drafts))


def can_redo() -> bool:
    """Return True if an undone change can be redone."""
    drafts, at = _history()
    return PLAYLIST.get() is not None and at < len(drafts) - 1


def undo() -> None:
    """Return to the previous draft, or reopen the playlist if another page has closed it."""
    if can_undo():
        _step(-1 if PLAYLIST.get() is not None else 0)


def redo() -> None:
    """Repeat the change that was undone."""
    if can_redo():
        _step(1)


def _step(n: int) -> None:
    drafts, at = _history()
    _set_history(drafts, at + n)
    PLAYLIST.set(drafts[at + n])
