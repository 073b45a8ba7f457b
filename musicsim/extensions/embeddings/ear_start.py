"""The learned ear by default: once there is a map, a job describes the songs with MusiCNN, if it is installed."""

import os
from contextlib import suppress

from musicsim.errors import StorageError
from musicsim.explorer import jobs
from musicsim.explorer.refresh.add_music import FIRST_MAP
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.embeddings.ear import EAR
from musicsim.extensions.embeddings.weights import find_weights
from musicsim.library import Library

_MAX_TRIES = 3  # a job whose process crashes is not started for ever


def start_ear(snapshot: Snapshot) -> None:
    """Start the job once per library, after the running jobs; it does not replace a model that the user has chosen."""
    library = snapshot.library
    if (
        os.environ.get("MUSICSIM_EAR") != "0"
        and library.settings["learned_ear"]
        and snapshot.n_indexed >= FIRST_MAP
        and find_weights() is not None
        and _is_untried(library)
    ):
        with suppress(StorageError):  # the library is read-only
            jobs.start(library, "ear", {"use": None})


def _is_untried(library: Library) -> bool:
    """Return whether there is no ear, and no job has tried to add one; interrupted jobs do not count at first."""
    states = [job.state for job in library.jobs.recent(_MAX_TRIES, "ear")]
    if len(states) == _MAX_TRIES or any(state != "interrupted" for state in states):
        return False
    # a restored library has models, but no jobs
    return all(record.settings.get("representation") != EAR for record in library.models.all())
