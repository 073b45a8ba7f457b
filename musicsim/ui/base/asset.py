"""The texts that ship beside the pages' code: styles, scripts and pictures in ``assets/``."""

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """The content of a file of ``assets/``."""
    return (files("musicsim.ui") / "assets" / name).read_text(encoding="utf-8")
