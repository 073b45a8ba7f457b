"""Two people with different tastes, whose models are trained on their answers in one library."""

import numpy as np

from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.requests.training import ANSWERS, LearningSettings
from musicsim.explorer.snapshot.snapshot import take_snapshot
from tests.learning import Watcher


def train_two(library, n, columns=((0,), (1,))):
    """Add n answers by Ann and by Ben, who each hear only some columns of Sound, and train a model on those of each."""
    snapshot = take_snapshot(library, library.models.native().id)
    X, ids = np.asarray(snapshot.X, dtype=np.float64), snapshot.row_ids
    rng = np.random.default_rng(0)
    for name, taste in zip(("Ann", "Ben"), columns, strict=True):
        for _ in range(n):
            first, *others = rng.choice(len(ids), 3, replace=False).tolist()
            apart = [((X[first] - X[other])[list(taste)] ** 2).sum() for other in others]
            songs = ids[[first, *others]].tolist()
            library.judgments.add(name, "like", songs, 1 + int(np.argmin(apart)), is_random=True)
        settings = LearningSettings(supervision=ANSWERS, listener=name, C=1e4, structure="diagonal")
        learn(library, settings, f"{name}'s ear", Watcher())
    return X, ids
