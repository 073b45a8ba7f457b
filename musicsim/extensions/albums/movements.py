"""Works kept together in a playlist of songs."""

from collections.abc import Sequence

from musicsim.explorer import Snapshot
from musicsim.extensions.albums.catalogue import list_albums, songs_of
from musicsim.extensions.albums.works import group_works
from musicsim.wording import count

_MAX_NAMED = 3  # maximum number of works named in a sentence


def keep_together(snapshot: Snapshot, song_ids: Sequence[int]) -> tuple[tuple[int, ...], str]:
    """Put each whole work in place of its first movement in a playlist, once; return all ids and a sentence about it.

    The other songs stay in order, including missing ones. In works, songs that represent duplicates replace them.
    """
    ids = [snapshot.representative_of.get(i, i) for i in song_ids]
    titles = _find_works(snapshot, set(ids))
    work_of = {i: work for work in titles for i in work}
    # a dict is an ordered set: each work is one entry, and all other songs are entries of their own
    parts = dict.fromkeys(work_of.get(i, (place,)) for place, i in enumerate(ids))
    changed = [titles[part] for part in parts if part in titles and not _is_together(part, ids)]
    if not changed:
        return tuple(song_ids), "Nothing changed: this playlist has no separate movements."
    whole = tuple(i for part in parts for i in (part if part in titles else (song_ids[part[0]],)))
    return whole, _describe(changed, len(set(whole).difference(ids, song_ids)))


def _find_works(snapshot: Snapshot, song_ids: set[int]) -> dict[tuple[int, ...], str]:
    """Return the titles of works, keyed by the ids of their movements; the most complete ones come last."""
    titles = {}
    alike = song_ids.union(copy for copy, song_id in snapshot.representative_of.items() if song_id in song_ids)
    for album in list_albums(snapshot):
        if not alike.isdisjoint(album.song_ids):
            songs = {snapshot.representative_of.get(song.id, song.id): song for song in songs_of(snapshot, album)}
            id_of = {song.id: i for i, song in songs.items()}
            works = [work for work in group_works(list(songs.values())) if work.title]
            titles.update({tuple(id_of[song.id] for song in work.songs): work.title for work in works})
    return dict(sorted(titles.items(), key=lambda item: (len(song_ids.intersection(item[0])), len(item[0]))))


def _is_together(work: Sequence[int], ids: Sequence[int]) -> bool:
    places = [place for place, i in enumerate(ids) if i in work]
    return [ids[place] for place in places] == list(work) and places[-1] - places[0] == len(work) - 1


def _describe(titles: Sequence[str], n_added: int) -> str:
    names = [f"“{title}”" for title in titles[:_MAX_NAMED]]
    more = [count(len(titles) - len(names), "more work")] if len(titles) > len(names) else []
    return f"Together now: {', '.join(names + more)}. {count(n_added, 'song')} added."
