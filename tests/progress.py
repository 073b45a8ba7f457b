"""Progress for tests: recorded, or canceled at a certain step."""

from musicsim.progress import Canceled


class Steps(list):
    """A progress that records each step as (message, done, total, facts)."""

    def __call__(self, message, done=0, total=0, /, **facts):
        self.append((message, done, total, facts))


def cancel_when(is_enough):
    """Return a progress that cancels the work once `is_enough(message, done, total)`."""

    def progress(message, done=0, total=0, /, **_):
        if is_enough(message, done, total):
            raise Canceled

    return progress
