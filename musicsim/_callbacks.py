"""Type of the callbacks that long fits call."""

from collections.abc import Callable
from typing import Any

StepCallback = Callable[[dict[str, Any]], object]
"""Called with a dict at least once per step; return True to stop with the best result so far."""
