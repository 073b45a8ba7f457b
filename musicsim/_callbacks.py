"""Type of the callbacks of long fits."""

from collections.abc import Callable
from typing import Any

StepCallback = Callable[[dict[str, Any]], object]
"""Gets a dict once per step, or more often; returns True to stop with the best result so far."""
