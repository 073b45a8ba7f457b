"""Errors that reading sound raises."""

from musicsim.errors import AudioDecodeError, AudioError, AudioTooShortError

__all__ = ["AudioDecodeError", "AudioError", "AudioTooShortError"]
