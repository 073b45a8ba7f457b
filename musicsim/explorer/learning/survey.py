"""Training from the answers of the Compare page, with the report for the model's card."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from musicsim.explorer.learning.from_answers import Answered, learn_from_answers, shares_in_order
from musicsim.explorer.learning.task import CS, FloatArray, TrainingProgress, what_changed
from musicsim.explorer.requests.training import ORDER, LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot


def learn_from_survey(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: TrainingProgress
) -> tuple[FloatArray, dict[str, Any]]:
    """Learn L from the answers of the Compare page; returns it and the report."""
    X = np.asarray(snapshot.X, dtype=np.float64)
    answered = Answered.collect(snapshot, settings.listener)

    def on_progress(message: str, point: dict[str, Any]) -> bool:
        watcher.trace(point)
        watcher(message)
        return watcher.is_enough()

    judged = learn_from_answers(
        X,
        answered,
        Cs=CS if settings.C is None else (settings.C,),
        loss=settings.loss,
        structure=settings.structure,
        blocks=blocks,
        random_state=settings.random_state,
        on_progress=on_progress,
    )
    leads = {} if judged.lead is None else {ORDER: judged.lead}
    compared = answered.all()
    n_questions, n_songs = len(set(answered.questions)), len(np.unique(compared))
    return judged.L, {
        "answers": {"n": len(answered), "questions": n_questions, "comparisons": len(compared), "songs": n_songs},
        "detail": f"{len(answered):,} answers",
        "C": judged.C,
        "untrained": judged.untrained,
        "path": judged.path,
        "alone": [float(shares_in_order(X[:, block], answered).mean()) for block in blocks],
        "stopped_early": watcher.is_enough(),
        **what_changed(snapshot, settings, X, X @ judged.L.T, leads),
    }
