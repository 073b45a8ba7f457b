"""Format counts, durations and names in texts."""

from collections.abc import Collection, Sequence


def clean(text: object) -> str:
    """Return text that every browser accepts: lone surrogates from file names become question marks."""
    return str(text).encode("utf-8", "replace").decode()


def count(n: int, noun: str) -> str:
    """Return a number with its noun, such as “1 song” or “2,000 songs”."""
    plural = noun[:-1] + "ies" if noun.endswith("ry") else noun + ("es" if noun.endswith(("ch", "x")) else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def count_are(n: int, noun: str) -> str:
    """Return a number with its noun and verb, such as “1 song is” or “2 songs are”."""
    return f"{count(n, noun)} {'is' if n == 1 else 'are'}"


def join_words(words: Sequence[str]) -> str:
    """Join words with commas, and with "and" before the last one."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def duration(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours, such as “25 seconds” or “7.5 hours”."""
    if seconds < 60:
        return count(round(seconds), "second")
    return count(round(seconds / 60), "minute") if seconds < 5400 else f"{seconds / 3600:,.1f} hours"


def speed(songs_per_second: float) -> str:
    """Return the speed of an analysis, such as “2.5 songs/s”, or “1.5 songs/min” if it is low."""
    is_low = songs_per_second < 0.1
    return f"{60 * songs_per_second:.1f} songs/min" if is_low else f"{songs_per_second:.1f} songs/s"


def clock(seconds: float) -> str:
    """Return a duration as m:ss, or h:mm:ss if it is an hour or more."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def time_left(seconds: float) -> str:
    """Return words for the estimated time left; below a second, no number."""
    return f"{clock(seconds)} left" if seconds >= 1 else "almost done"


def add_number(name: str, used: Collection[str]) -> str:
    """Return an unused name, such as “Jazz 2” if “Jazz” is used."""
    numbered = (f"{name} {n}" for n in range(2, len(used) + 3))
    return name if name not in used else next(other for other in numbered if other not in used)


def capitalize(text: str) -> str:
    """Capitalize the first letter of a text; unlike str.capitalize, keep the other letters."""
    return text[:1].upper() + text[1:]
