"""What a visitor of a public demonstration says: nobody else sees it, and it goes with the visitor."""

import logging
import secrets

from musicsim.errors import LibraryError
from musicsim.library import Library
from musicsim.library.importing.answers import export_answers
from musicsim.library.stores.judgments import Opinions, opinions_in_memory
from musicsim.public import is_public, kept_answers_folder
from musicsim.ui.base.keys import Key

_log = logging.getLogger(__name__)
_MAX_KEPT = 10_000  # visitors whose answers are kept
_OPINIONS: Key[Opinions] = Key("opinions", opinions_in_memory, "answers and thumbs of a visitor", is_kept=True)
_NAME: Key[str] = Key(
    "visitor", lambda: f"visitor {secrets.token_hex(4)}", "what a visitor is called in answers", is_kept=True
)


def opinions(library: Library) -> Opinions:
    """Where answers and thumbs of this session are kept: in the library; of a visitor in this session only."""
    return _OPINIONS.get() if is_public() else library


def visitor_name() -> str:
    """What the visitor of this session is called in answers: nothing that says who it is."""
    return _NAME.get()


def keep_answers(library: Library) -> None:
    """Write the answers of this session where the owner wants them to be kept, if anywhere."""
    folder = kept_answers_folder()
    if folder is None:
        return
    file = folder / f"{visitor_name()}.csv"
    try:
        if file.exists() or sum(1 for _ in folder.iterdir()) < _MAX_KEPT:
            export_answers(library, file, of=opinions(library))
    except (OSError, LibraryError) as error:  # nothing that a visitor could do about
        _log.warning("answers are not kept: %s", error)
