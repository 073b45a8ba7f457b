"""LMNN, NCA and ITML of metric-learn, in the separate environment that ``make rivals`` builds.

metric-learn 0.7 uses names that scikit-learn 1.8 removed, so it cannot be imported here. This file also runs in that
environment, where musicsim is not installed. It reads one request per line, as JSON: the learner, its parameters, and
the path of a .npz with X and y. It answers with the seconds of the fit, and writes the components to answer.npz next to
the request.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from musicsim._arrays import Float64Array

__all__ = ["ENVIRONMENT", "MetricLearn"]

ENVIRONMENT = Path(__file__).parents[2] / ".venv" / "rivals"
LEARNERS = {"lmnn": "LMNN", "nca": "NCA", "itml": "ITML_Supervised"}


class MetricLearn:
    """A process that fits metric-learn's learners; a context manager.

    Raises
    ------
    FileNotFoundError
        If the environment does not exist.
    """

    def __init__(self) -> None:
        python = ENVIRONMENT / "bin" / "python"
        if not python.exists():
            raise FileNotFoundError(f"{ENVIRONMENT} is not there; build it with `make rivals`.")
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        self.version = self._answer()["version"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()

    def fit(
        self, learner: str, X: npt.ArrayLike, y: npt.ArrayLike, **parameters: Any
    ) -> tuple[Float64Array, dict[str, float]]:
        """Fit "lmnn", "nca" or "itml".

        Returns
        -------
        components : ndarray of shape (r, d)
        seconds : dict
            ``wall`` and ``cpu`` of the fit alone.

        Raises
        ------
        RuntimeError
            With the learner's message, if it failed.
        """
        request = Path(self._folder.name, "request.npz")
        np.savez(request, X=np.asarray(X), y=np.asarray(y))
        assert self._process.stdin is not None
        self._process.stdin.write(
            json.dumps({"learner": learner, "path": str(request), "parameters": parameters}) + "\n"
        )
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(f"metric-learn's {learner}: {answer['error']}")
        with np.load(request.with_name("answer.npz")) as held:
            return held["components"], {"wall": answer["wall"], "cpu": answer["cpu"]}

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("metric-learn's process ended; its own message is above.")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _serve() -> None:
    import metric_learn

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of the learners must not mix with the answers

    def say(**answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    say(version=metric_learn.__version__)
    for line in sys.stdin:
        request = json.loads(line)
        with np.load(request["path"]) as held:
            X, y = held["X"], held["y"]
        model = getattr(metric_learn, LEARNERS[request["learner"]])(**request["parameters"])
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            model.fit(X, y)
        except Exception as error:  # report any failure
            say(error=f"{type(error).__name__}: {error}")
            continue
        seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        np.savez(Path(request["path"]).with_name("answer.npz"), components=model.components_)
        say(**seconds)


if __name__ == "__main__":
    _serve()
