"""The rule that turns a listener's reaction to a song into an outcome from 0 to 1; it is fixed before a trial."""

_PLAYED_S = 30.0  # as in player_engine.js: a song counts as played after this time, or half of the song
_OF_SKIP = 0.5  # maximum outcome of a skip, so that a skip is always worse than a play


def outcome_of(skipped_after_s: float | None, duration_s: float, thumb: int = 0) -> float:
    """Return the outcome of a song: 1 or 0 for a thumb (1 or -1), otherwise 1 for a play, whose first argument is None.

    A skip has half of the share of the time after which the song would have counted as a play.
    """
    if thumb or skipped_after_s is None:
        return float(thumb >= 0)
    needed = min(_PLAYED_S, duration_s / 2.0)
    return _OF_SKIP * min(skipped_after_s / needed, 1.0) if needed > 0 else _OF_SKIP
