"""Parameters of indexes, as in scikit-learn's BaseEstimator, which commands would take too long to import.

scikit-learn's ``clone`` and pipelines also work with this class.
"""

from inspect import signature
from typing import Any, Self


class Estimator:
    """Base class whose constructor stores each argument in an attribute of the same name."""

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return a dict from parameter name to value; `deep` has no effect."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; raise ValueError for an unknown name."""
        names = self._names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}, only {', '.join(names)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({params})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def _check_is_fitted(self, attribute: str) -> None:
        """Raise NotFittedError if `fit` has not set the attribute."""
        if not hasattr(self, attribute):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted: call `fit` first.")
