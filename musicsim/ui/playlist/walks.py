"""The walk that playlists follow, computed in the background if the library is large."""

from musicsim.explorer import Snapshot, Walk, share_walk
from musicsim.progress import Progress
from musicsim.ui.base import AT_ONCE_S, get_desk, task_key, value_of, wait_for

_MANY = 20_000  # number of songs above which computing the walk takes more than a second


def open_walk(snapshot: Snapshot) -> Walk | None:
    """Return the walk; with many songs, show a progress bar and return None until the walk is computed."""

    def work(progress: Progress) -> Walk:
        progress("weighting the songs' common features", 0, 0)
        return share_walk(snapshot)

    task = get_desk("walks").ask(task_key(snapshot, "walk"), work)
    task.wait(AT_ONCE_S if snapshot.n_indexed > _MANY else None)
    wait_for([task])
    walker: Walk | None = value_of(task)
    return walker
