"""Models from estimators that were fitted outside of the library, on the vectors of one of its models."""

from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array
from musicsim.errors import ModelError
from musicsim.explorer.refresh.fitting import free_name, new_record, publish
from musicsim.explorer.refresh.placing import follow_owner
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.progress import Progress, no_progress

FITTED_KIND = "fitted"
_TOLERANCE = 1e-4  # of the transformed vectors' root mean square; vectors are stored as float32


def add_fitted(
    library: Library, estimator: Any, name: str, *, on: str | None = None, use: bool = False,
    progress: Progress = no_progress,
) -> str:  # fmt: skip
    """Make a model whose distance is the Euclidean distance of ``estimator.transform``, and return its id.

    Parameters
    ----------
    library : Library
    estimator : object with a method `transform`
        Fitted on the vectors of a model, float32 (n_songs, d). Its transform must be linear, up to a constant vector:
        :class:`musicsim.metric.MLR`, `GMML` or `WCCN`, PCA, a pipeline with a StandardScaler, and others.
    name : str; a number is added if another model has this name
    on : str, optional
        Name or id of that model; the model in use by default.
    use : bool; whether the app uses the new model from now on
    progress : callable

    Notes
    -----
    Distances are those of the estimator times one factor, so the nearest songs are the same. The factor keeps the mean
    squared distance of the model `on`, on which the similarity from 0 to 1 depends. New songs get vectors, too. Unlike
    a trained model, this one is never refitted.

    Raises
    ------
    ModelError
        If the estimator is not linear, does not fit the model, or maps all songs to one point.
    NotFoundError
        If the library has no such model.
    """
    with library.exclusive("making a model"):
        try:
            base = library.models.get() if on is None else library.models.find(on)
            snapshot = take_snapshot(library, base.id)
            if snapshot.model is None:
                raise ModelError(snapshot.no_model_words)
            model = snapshot.model.add_metric(_linear_map(estimator, snapshot.X), snapshot.X)
            n_songs = len(library.models.features(base.id).song_ids)
            record = new_record(
                FITTED_KIND, free_name(library, name), model, n_songs, base_id=base.features_of, on=base.name,
                estimator=type(estimator).__name__,
            )  # fmt: skip
            return publish(
                library, model, record, fill=lambda: follow_owner(library, record), progress=progress, activate=use
            )
        finally:
            library.models.discard_unfinished()


def _linear_map(estimator: Any, X: npt.NDArray[Any]) -> Float64Array:
    """Return L (r, d) of the estimator's transform ``X @ L.T + constant``; raise ModelError if it has another form."""
    called = type(estimator).__name__
    n_dimensions = X.shape[1]
    points = np.vstack([np.zeros(n_dimensions), np.eye(n_dimensions)])
    try:
        images = np.asarray(estimator.transform(points), dtype=np.float64)
        transformed = np.asarray(estimator.transform(np.asarray(X, dtype=np.float64)), dtype=np.float64)
    except AttributeError:
        raise ModelError(f"{called} has no method transform: pass an estimator that maps songs to vectors.") from None
    except ValueError as error:
        raise ModelError(
            f"{called} cannot transform vectors with {n_dimensions} dimensions: fit it on `vectors` of this model. "
            f"({error})"
        ) from error
    L = (images[1:] - images[0]).T
    expected = X @ L.T + images[0]
    spread = float(np.sqrt(np.mean((transformed - transformed.mean(axis=0)) ** 2)))
    if not np.abs(transformed - expected).max(initial=0.0) <= _TOLERANCE * max(spread, np.finfo(float).tiny):
        raise ModelError(
            f"{called} is not linear, and a model of a library must be: export its vectors, and add them with "
            "`musicsim models add-embedding`."
        )
    return np.asarray(L, dtype=np.float64)
