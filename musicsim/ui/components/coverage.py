"""Coverage of a library by each kind of supervision, computed once for all pages."""

from musicsim.explorer import Snapshot
from musicsim.explorer.learning.supervision import Coverage, coverage
from musicsim.library.stores.judgments import FORMS, RESULT
from musicsim.progress import Progress
from musicsim.ui.base import get_desk, task_key
from musicsim.ui.base.desk import Computation


def ask_coverage(snapshot: Snapshot) -> Computation:
    """Return the task that counts the songs covered by each kind of supervision."""

    def work(progress: Progress) -> list[Coverage]:
        progress("reading this library's data on similarity", 0, 0)
        return coverage(snapshot)

    # answers and thumbs do not change the revision, because that would redraw every page; they change this mark
    mark = snapshot.library.judgments.mark(*FORMS, RESULT)
    return get_desk().ask(task_key(snapshot, f"coverage {mark}"), work)
