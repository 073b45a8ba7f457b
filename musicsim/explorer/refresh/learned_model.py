"""Learn a metric on the vectors of one or more models, and store it as a separate model."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from musicsim.errors import ModelError
from musicsim.explorer.learning.automatic import Attempts, learn_automatically
from musicsim.explorer.learning.closed_form import learn_means
from musicsim.explorer.learning.multi_kernel import source_shares
from musicsim.explorer.learning.ranking import learn_from_relevance, learn_from_survey
from musicsim.explorer.learning.task import Rising, TrainingProgress
from musicsim.explorer.models.artifacts import load_report, readable_arrays
from musicsim.explorer.refresh.fitting import new_record, publish
from musicsim.explorer.refresh.joined_model import COMBINED_KIND, combine
from musicsim.explorer.refresh.placing import follow_owner
from musicsim.explorer.requests.training import ANSWERS, AUTOMATIC, RANKING, LearningSettings
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import BUILT_IN, Library, ModelRecord, save_arrays

LEARNED_KIND = "learned"
_ATTEMPTS = "attempts.npz"
_MIN_COVERAGE = 0.9  # minimum share of songs with a vector, for a model that is used by default


def learn(
    library: Library, settings: LearningSettings, name: str, watcher: TrainingProgress, *, use: bool = False
) -> str:
    """Learn a metric on the vectors of a model, store it as a separate model, and return its id.

    By default, this is the model in use, or the model that it was learned from. A model of the same name is replaced.
    With `use`, the new model becomes active if it is better. Raises ModelError if supervision or held-out data is
    missing, there are too few artists, or nothing is learned. Raises NotFoundError for an unknown model in `settings`,
    and StoreLockedError if another process is adding to this library.

    Larger libraries are sampled with a seed: 4,000 songs, or 1,500 if several models are kernels. Memory: 16 bytes
    times songs times dimensions, plus the memory of :class:`~musicsim.metric.MLR` for 4,000 songs, or 18 MB per kernel.
    """
    with library.exclusive("training a model"):
        try:
            if not settings.on:
                # name other models than the built-in ones, so that a refit uses them again
                chosen = choose_default_models(library, settings.method)
                names = [] if _are_built_in(chosen) else [record.name for record in chosen]
                settings = replace(settings, on=tuple(names))
            model_id = learn_unlocked(library, settings, name, watcher)
            if use and load_report(library.models.path(model_id))["is_better"]:
                library.models.activate(model_id)
            return model_id
        finally:
            library.models.discard_unfinished()


def learn_unlocked(library: Library, settings: LearningSettings, name: str, watcher: TrainingProgress) -> str:
    """Do the work of :func:`learn` on the models in `settings`, or the built-in ones; the caller holds the lock."""
    started, watcher = time.time(), Rising(watcher)
    watcher("reading the examples")
    chosen = _base_models(library, settings)
    base = chosen[0] if len(chosen) == 1 else combine(library, chosen, watcher)
    snapshot = take_snapshot(library, base.id)
    assert snapshot.model is not None
    blocks = snapshot.model.encoder_.blocks if len(chosen) > 1 else []
    model = None
    if settings.method == AUTOMATIC:
        L, report = learn_automatically(snapshot, settings, blocks, watcher, _attempts(library, settings))
        if blocks and not L[:, blocks[0].stop :].any():  # the other models did not help, so their columns are 0
            chosen, base, L, blocks = chosen[:1], chosen[0], L[:, blocks[0]], []
            snapshot = take_snapshot(library, base.id)
    elif settings.method == RANKING:
        learn_from = learn_from_survey if settings.supervision == ANSWERS else learn_from_relevance
        L, report = learn_from(snapshot, settings, blocks, watcher)
    else:
        model, L, report = learn_means(snapshot, settings, blocks, watcher)
    if model is None:
        assert snapshot.model is not None
        model = snapshot.model.add_metric(L, snapshot.X)
    names = " + ".join(record.name for record in chosen)
    report |= {"name": name, "base": names, "created_at": started, "seconds": time.time() - started}
    alone, attempts = report.pop("alone"), report.pop("attempts", {})
    if blocks:
        shares = source_shares(np.asarray(snapshot.X, dtype=np.float64), L, blocks)
        report["sources"] = [
            {"name": record.name, "dimensions": record.n_dimensions, "share": share, "alone": quality}
            for record, share, quality in zip(chosen, shares, alone, strict=True)
        ]
    n_songs = len(library.models.features(base.id).song_ids)
    record = new_record(LEARNED_KIND, name, model, n_songs, base_id=base.features_of, **asdict(settings))

    def fill() -> None:
        follow_owner(library, record)
        if base.kind == COMBINED_KIND:  # retire it, because only models that share its features need it
            library.models.finish(base.id)
            library.models.delete(base.id)
        if attempts:
            save_arrays(library.models.path(record.id) / _ATTEMPTS, **attempts)

    watcher.finish("saving the model")
    return publish(library, model, record, fill=fill, report=report, progress=watcher)


def _attempts(library: Library, settings: LearningSettings) -> Attempts:
    """Return the attempts of the latest quick training whose other settings are the same."""
    quick = replace(settings, quick=True)
    for record in reversed(library.models.all() if not settings.quick else []):
        if record.kind == LEARNED_KIND and LearningSettings(**record.settings) == quick:
            return readable_arrays(library.models.path(record.id) / _ATTEMPTS)
    return {}


def choose_default_models(library: Library, method: str) -> list[ModelRecord]:
    """Return the model in use, or those that it was learned from; for Sound, these are the built-in models."""
    active = library.models.active()
    if active is None:
        return []
    names = active.settings["on"] if active.kind == LEARNED_KIND else [active.name]
    known = {record.name: record for record in library.models.all() if record.kind != LEARNED_KIND}
    chosen = [known[name] for name in names if name in known]
    return choose_built_in(library, method) if _are_built_in(chosen) else chosen


def _are_built_in(chosen: Sequence[ModelRecord]) -> bool:
    """Return whether the models are Sound, alone or with Codewords, or none."""
    return tuple(record.kind for record in chosen) == BUILT_IN[: len(chosen)]


def choose_built_in(library: Library, method: str) -> list[ModelRecord]:
    """Return Sound, and for the automatic method also Codewords, if it has vectors for most songs."""
    native, codewords = library.models.native(), library.models.codewords()
    if native is None:
        return []
    if method != AUTOMATIC:
        return [native]
    n_least = _MIN_COVERAGE * len(library.models.song_rows(native.id).rows)
    if codewords is None or len(library.models.song_rows(codewords.id).rows) < n_least:
        return [native]
    return [native, codewords]


def _base_models(library: Library, settings: LearningSettings) -> list[ModelRecord]:
    if library.models.native() is None:
        raise ModelError("this library has no songs to learn from yet: add a folder first.")
    if settings.on:
        chosen = [library.models.find(name) for name in settings.on]
    else:
        chosen = choose_built_in(library, settings.method)
    for record in chosen:
        if record.kind == LEARNED_KIND:
            raise ModelError(f"{record.name!r} is itself a learned model: train on the model it was trained on.")
    return chosen
