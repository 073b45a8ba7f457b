"""Errors raised when reading audio."""

from musicsim.errors import AudioDecodeError, AudioError, AudioTooShortError

__all__ = ["AudioDecodeError", "AudioError", "AudioTooShortError"]
