"""Text on the terminal; light to import, because the program needs it before any command."""

from rich.console import Console
from rich.markup import escape

errors = Console(stderr=True)


def safe(text: object) -> str:
    """Return text that rich and the terminal can show: without markup, lone surrogates and control characters."""
    return escape(printable(text))


def printable(text: object) -> str:
    """Return text that the terminal can show: without lone surrogates and control characters."""
    shown = str(text).encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)
