"""Type of the progress callbacks that long-running fits call."""

from collections.abc import Callable
from typing import Any

StepCallback = Callable[[dict[str, Any]], object]
"""Called with a dict at least once per step. If it returns True, the fit stops and keeps the best result so far."""
