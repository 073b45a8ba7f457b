"""The errors a caller of musicsim may want to catch, all under :class:`MusicsimError`.

Bad arguments raise ``ValueError`` or ``TypeError``; these classes are for what the outside world
does to us: files that cannot be read, libraries that are busy, stores of another version. Every
message names what is at fault and what to do.
"""


class MusicsimError(Exception):
    """Base class of every error that musicsim raises on purpose."""


class AudioError(MusicsimError):
    """Something is wrong with the sound of one file."""


class AudioDecodeError(AudioError):
    """A file holds no sound that can be decoded."""


class NoSoundError(AudioDecodeError):
    """A file is no audio file, or has no sound track."""


class AudioTooShortError(AudioError):
    """A sound is too short for the features asked of it."""


class LibraryError(MusicsimError):
    """A library's folder cannot be used as asked."""


class StorageError(LibraryError):
    """A folder has no room left, may not be written to, or lies on a disk that fails."""


class OwnerOnlyError(StorageError):
    """A visitor of a public demonstration asks for what only its owner may do."""


class StoreLockedError(LibraryError):
    """Another process is writing to the library."""


class FeatureVersionError(LibraryError):
    """Stored features or a stored model come from another version of the program."""


class NotFoundError(LibraryError, LookupError):
    """No such song, playlist, model or library."""


class ServerError(MusicsimError):
    """A music server cannot be reached, refuses what it is asked, or answers what cannot be understood."""


class AddressError(MusicsimError):
    """The app cannot be reached at an address as asked."""


class ModelError(MusicsimError):
    """A similarity model cannot be fitted, saved or loaded."""
