"""A visitor's answers and thumbs, which are private and are deleted after the visit."""

import logging
import secrets

from musicsim.errors import LibraryError
from musicsim.library import Library, Opinions
from musicsim.library.importing.answers import export_answers
from musicsim.library.stores.judgments import opinions_in_memory
from musicsim.public import find_answers_folder, is_public
from musicsim.ui.base.keys import Key

_log = logging.getLogger(__name__)
_MAX_VISITORS = 10_000  # maximum number of visitors whose answers are saved
_OPINIONS: Key[Opinions] = Key("opinions", opinions_in_memory, "answers and thumbs of a visitor", is_kept=True)
VISITOR_NAME: Key[str] = Key(
    "visitor", lambda: f"visitor {secrets.token_hex(4)}", "an anonymous name for the visitor's answers", is_kept=True
)


def opinions(library: Library) -> Opinions:
    """Return the store for answers and thumbs: the library for the owner, the session for a visitor."""
    return _OPINIONS.get() if is_public() else library


def keep_answers(library: Library) -> None:
    """If the owner chose a folder for answers, write this session's answers to it."""
    folder = find_answers_folder()
    if folder is None:
        return
    file = folder / f"{VISITOR_NAME.get()}.csv"
    try:
        is_first = not file.exists() and opinions(library).judgments.count() > 0
        if file.exists() or (is_first and sum(1 for _ in folder.iterdir()) < _MAX_VISITORS):
            export_answers(library, file, opinions=opinions(library))
    except (OSError, LibraryError) as error:  # only logged, because the visitor cannot do anything about it
        _log.warning("could not save the answers: %s", error)
