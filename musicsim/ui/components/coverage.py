"""What a library says about similarity, counted beside the page and once for all pages that ask for it."""

from musicsim.explorer.learning.supervision import Coverage, coverage
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.stores.judgments import FORMS, RESULT
from musicsim.progress import Progress
from musicsim.ui.base.desk import Task, desk, task_key


def ask_coverage(of: Snapshot) -> Task:
    """How many songs each kind of supervision speaks of, list of :class:`Coverage`."""

    def work(progress: Progress) -> list[Coverage]:
        progress("reading what this library says about similarity", 0, 0)
        return coverage(of)

    # answers and thumbs are no change of the library's revision, or every page would be drawn again after each of them
    said = of.library.judgments.mark(*FORMS, RESULT)
    return desk().ask(task_key(of, f"coverage {said}"), work)
