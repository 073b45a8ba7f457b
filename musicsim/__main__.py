"""Entry point of the command line, for ``musicsim`` and ``python -m musicsim``."""

import atexit
import gc
import sys

from musicsim.extras import explain_missing


def main() -> None:
    """Run the command line."""
    # Importing a command creates over 100,000 objects, none of which are garbage. At the default threshold of 700 new
    # objects between collections, the search for cycles took a tenth of the start-up time.
    gc.set_threshold(200_000)
    # Python would spend 0.1 s on another search at exit, although the system frees the memory anyway.
    atexit.register(gc.freeze)
    try:
        from musicsim.cli.commands import main as run
    except ModuleNotFoundError as error:
        sys.exit(str(explain_missing(error, "The command musicsim", "app")))
    run()


if __name__ == "__main__":
    main()
