"""Analyzed sounds that clients have sent, in memory: whoever sends the same file gets the same name for it.

A name consists of the hash of the file and, if not the usual part of it was analyzed, of the number of minutes. The
sounds that were used last are kept; a client whose sound was dropped sends its file again.
"""

import threading
from collections import OrderedDict
from dataclasses import replace

from musicsim import audio
from musicsim.explorer.search.query import Example, make_example, networks_in_use
from musicsim.explorer.search.uploads import MINUTES
from musicsim.explorer.snapshot.snapshot import Snapshot

_MAX_SOUNDS = 200
_MAX_BYTES = 256 << 20


def name_sound(digest: str, minutes: float = MINUTES) -> str:
    """Return the name of the first minutes of a file with this hash."""
    return digest if minutes == MINUTES else f"{digest}-{minutes:g}"


class SentSound:
    """An analyzed sound, and the example that it was last, under one model."""

    def __init__(self, digest: str, sound: "audio.Sound", networks: frozenset[str]) -> None:
        self._digest, self.sound = digest, sound
        self.networks = networks  # keys of the networks that have analyzed it
        self._latest: tuple[tuple[object, ...], Example] | None = None

    @property
    def n_bytes(self) -> int:
        """Approximate size in memory."""
        sound = self.sound
        arrays = (sound.mfcc, sound.fluctuation, sound.spectral_shape, sound.outline, *sound.network_vectors.values())
        return sum(array.nbytes for array in arrays if array is not None)

    def example(self, snapshot: Snapshot, name: str) -> Example:
        """Return the sound as an example with a name, with the errors of :func:`make_example`."""
        # includes the revision, because the sound may have been added to the library in the meantime
        version = (snapshot.library.place, snapshot.revision, snapshot.model_id)
        latest = self._latest
        if latest is None or latest[0] != version:
            latest = self._latest = version, make_example(snapshot, self.sound, self._digest, name)
        return replace(latest[1], name=name)


class SentSounds:
    """A thread-safe cache of sounds, limited by their number and their bytes."""

    def __init__(self, max_sounds: int = _MAX_SOUNDS, max_bytes: int = _MAX_BYTES) -> None:
        self._max_sounds, self._max_bytes = max_sounds, max_bytes
        self._sounds: OrderedDict[str, SentSound] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, snapshot: Snapshot, name: str) -> SentSound | None:
        """Return a sound; None if it is not in memory, or was not analyzed by all networks of the model."""
        networks = {network.key for network in networks_in_use(snapshot)}
        with self._lock:
            found = self._sounds.get(name)
            if found is None or not networks <= found.networks:
                return None
            self._sounds.move_to_end(name)
            return found

    def keep(self, snapshot: Snapshot, name: str, digest: str, sound: "audio.Sound") -> SentSound:
        """Keep a sound, and drop the sounds whose latest use is the longest ago.

        The vectors that other networks computed for it stay. The newest sound is kept even if it alone is too large.
        """
        networks = frozenset(network.key for network in networks_in_use(snapshot))
        with self._lock:
            before = self._sounds.pop(name, None)
            if before is not None:
                vectors = {**before.sound.network_vectors, **sound.network_vectors}
                sound, networks = replace(sound, network_vectors=vectors), networks | before.networks
            kept = self._sounds[name] = SentSound(digest, sound, networks)
            n_bytes = sum(one.n_bytes for one in self._sounds.values())
            while len(self._sounds) > self._max_sounds or (n_bytes > self._max_bytes and len(self._sounds) > 1):
                n_bytes -= self._sounds.popitem(last=False)[1].n_bytes
            return kept


SENT_SOUNDS = SentSounds()
"""The sounds that this process keeps."""
