"""Simulated listeners, who answer questions about a library's songs by their shares of its parts."""

import numpy as np

from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.taste_card.parts import Parts


def answer_questions(library, listener, shares, n, *, total=12.0, seed=0):
    """Add n answers to questions of both forms, by a listener with these shares (a dict) of the parts."""
    rng = np.random.default_rng(seed)
    parts = Parts(take_snapshot(library))
    psi = np.array([total * shares.get(name, 0.0) for name in parts.names])
    ids = [song.id for song in library.songs()]
    for number in range(n):
        form = ("odd", "like")[number % 2]
        songs = rng.choice(ids, 3, replace=False)
        (options,) = parts.costs(songs[None, :], form)
        chosen = int(np.argmax(rng.gumbel(size=len(options)) - options @ psi)) + (form == "like")
        library.judgments.add(listener, form, songs.tolist(), chosen, is_random=True)
