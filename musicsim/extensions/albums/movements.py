"""Works kept together in a playlist of songs."""

from collections.abc import Sequence

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.albums.catalogue import list_albums, songs_of
from musicsim.extensions.albums.works import group_works
from musicsim.wording import count

_MAX_NAMED = 3  # maximum number of works named in a sentence


def keep_together(snapshot: Snapshot, song_ids: Sequence[int]) -> tuple[tuple[int, ...], str]:
    """Put each whole work in place of its first movement in a playlist, once; return all ids and a sentence about it.

    The other songs stay in order. The ids can include those of songs that are missing.
    """
    wanted = set(song_ids)
    albums = (album for album in list_albums(snapshot) if not wanted.isdisjoint(album.song_ids))
    works = [work for album in albums for work in group_works(songs_of(snapshot, album)) if work.title]
    work_of = {song.id: tuple(one.id for one in work.songs) for work in works for song in work.songs}
    title_of = {work.songs[0].id: work.title for work in works}
    # a dict is an ordered set: each work is a single entry, and all other songs are entries of their own
    parts = dict.fromkeys(work_of.get(i, (i, place)) for place, i in enumerate(song_ids))
    whole = tuple(i for part in parts for i in (part if part[0] in work_of else part[:1]))
    changed = [title_of[ids[0]] for ids in parts if ids[0] in work_of and not _is_together(ids, song_ids)]
    return whole, _describe(changed, len(set(whole) - wanted))


def _is_together(ids: Sequence[int], song_ids: Sequence[int]) -> bool:
    places = [place for place, i in enumerate(song_ids) if i in ids]
    return [song_ids[place] for place in places] == list(ids) and places[-1] - places[0] == len(ids) - 1


def _describe(titles: Sequence[str], n_added: int) -> str:
    if not titles:
        return "Nothing changed: this playlist has no separate movements."
    names = [f"“{title}”" for title in titles[:_MAX_NAMED]]
    more = [count(len(titles) - len(names), "more work")] if len(titles) > len(names) else []
    return f"Together now: {', '.join(names + more)}. {count(n_added, 'song')} added."


EDITS = {"Keep movements together": keep_together}
"""Choices in the menu of a playlist."""
