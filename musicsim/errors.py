"""Errors with external causes, which callers may want to catch. All of them derive from :class:`MusicsimError`."""


class MusicsimError(Exception):
    """Base class of every error that musicsim raises on purpose."""


class ExtensionError(MusicsimError):
    """An extension that is not part of musicsim cannot be loaded."""


class AudioError(MusicsimError):
    """The audio of one file cannot be used.

    Examples
    --------
    >>> from musicsim.audio import AudioError, load
    >>> try:
    ...     load(b"this is not music")
    ... except AudioError as error:
    ...     print("left out:", type(error).__name__)
    ...
    left out: NoSoundError
    """


class AudioDecodeError(AudioError):
    """A file's audio cannot be decoded.

    Examples
    --------
    >>> from musicsim.audio import AudioDecodeError, decode
    >>> try:
    ...     decode("no such file.mp3")
    ... except AudioDecodeError as error:
    ...     print(error)
    ...
    no such file.mp3 does not exist: check the path.
    """


class NoSoundError(AudioDecodeError):
    """A file is not an audio file, or has no audio stream."""


class AudioTooShortError(AudioError):
    """The audio is too short for the requested features.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import AudioTooShortError, delta_mfcc
    >>> try:
    ...     frames = delta_mfcc(np.zeros(1000))
    ... except AudioTooShortError as error:
    ...     print(str(error).split(";")[0])
    ...
    the sound is 0.045 s long (4 frames)
    """


class DataSetAbsentError(MusicsimError):
    """A public data set is not on this machine and could not be fetched; the message says how to get it."""


class LibraryError(MusicsimError):
    """A library's folder cannot be used as requested."""


class StorageError(LibraryError):
    """A folder is full or not writable, or its disk is failing."""


class DiskFullError(StorageError):
    """A disk or a quota has no room left."""


class LibraryAwayError(StorageError):
    """The disk of a library is not connected or not mounted."""


class OwnerOnlyError(StorageError):
    """A visitor to a public demonstration requests something that only its owner may do."""


class StoreLockedError(LibraryError):
    """Another process is writing to the library."""


class FeatureVersionError(LibraryError):
    """Stored features or a stored model come from a different version of musicsim."""


class NotFoundError(LibraryError, LookupError):
    """A song, playlist, model or library does not exist."""


class ServerError(MusicsimError):
    """A music server is unreachable, refuses a request, or sends an invalid response."""


class AddressError(MusicsimError):
    """The app cannot be served at the requested address."""


class ModelError(MusicsimError):
    """A similarity model cannot be fitted, saved or loaded."""
