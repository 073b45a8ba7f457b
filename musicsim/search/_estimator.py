"""Parameters as scikit-learn's estimators have them, without its base class: that one takes a second to import.

Whoever asks for a single search would wait for it; ``clone`` and pipelines of scikit-learn work all the same.
"""

from inspect import signature
from typing import Any, Self


class Estimator:
    """Base of what has parameters: the arguments of its constructor, kept under their names."""

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; `deep` says nothing here, as none of them is an estimator."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Set some parameters; raises ValueError for a name that is none."""
        known = self._names()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def _check_is_fitted(self, attribute: str) -> None:
        """Raise scikit-learn's NotFittedError unless there is an attribute that fitting sets."""
        if not hasattr(self, attribute):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} has not been fitted yet: call `fit` first.")
