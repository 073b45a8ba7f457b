"""Text for the terminal; fast to import, because the program needs it before any command."""

from rich.console import Console
from rich.markup import escape

errors = Console(stderr=True, emoji=False)
STOPPED = 130  # exit code of a canceled command


def safe(text: object) -> str:
    """Escape markup, lone surrogates and control characters, so that rich and the terminal can show the text."""
    return escape(printable(text))


def printable(text: object) -> str:
    """Escape lone surrogates and control characters, so that the terminal can show the text."""
    shown = str(text).encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)
