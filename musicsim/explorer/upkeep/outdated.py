"""Whether the native model is of an older version of the program; light, as every page asks."""

from musicsim.explorer.models.schema import SOUND, AboutModel, read_json_file
from musicsim.library import Library


def native_is_outdated(library: Library) -> bool:
    """Whether it compares what older versions did, and all songs are analysed, and kept, as a new one needs them."""
    native = library.models.native()
    if native is None:
        return False
    try:
        about = read_json_file(AboutModel, library.models.path(native.id) / "model.json")
    except (OSError, ValueError):  # gone or damaged: the next refresh fits it whatever it was
        return False
    return (
        about.representation != SOUND
        and not library.files.outdated()
        and set(library.content_hashes()) <= library.frame_files.kept()
    )
