"""Type of the callbacks of long fits."""

from collections.abc import Callable
from typing import Any

StepCallback = Callable[[dict[str, Any]], object]
"""Called with a dict at least once per step; returns True to stop with the best result so far."""
