"""Networks that describe a song by its samples, while the song is decoded for the analysis."""

from typing import Protocol

from musicsim._arrays import Float32Array


class NetworkStream(Protocol):
    """Samples of one song, for a network."""

    def add(self, samples: Float32Array) -> None:
        """Add samples, float32 (n,); the array is valid only during the call."""

    def finish(self) -> Float32Array | None:
        """Return the network's vector for the song, float32 (d,), or None if the network failed."""


class AudioNetwork(Protocol):
    """A network that computes one vector per song; it can be sent to a worker process.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import analyze_sound
    >>> class Loudness:
    ...     key = "loudness"
    ...     def open(self, sample_rate):
    ...         self.total = self.n = 0
    ...         return self
    ...     def add(self, samples):
    ...         self.total, self.n = self.total + float(samples @ samples), self.n + len(samples)
    ...     def finish(self):
    ...         return np.array([self.total / self.n], np.float32)
    ...
    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.full(44100, 0.5), 22050, format="FLAC")
    >>> analyze_sound(file.getvalue(), networks=[Loudness()]).network_vectors["loudness"].round(2)
    array([0.25], dtype=float32)
    """

    @property
    def key(self) -> str: ...  # identifies the network and its settings

    def open(self, sample_rate: int) -> NetworkStream:
        """Begin a song with samples at this rate."""
