"""Entry point of the command line, for ``musicsim`` and ``python -m musicsim``."""

import atexit
import gc


def main() -> None:
    """Run the command line."""
    # Importing a command creates over 100,000 objects, none of which are garbage. At the default threshold of 700 new
    # objects between collections, the search for cycles took a tenth of the start-up time.
    gc.set_threshold(200_000)
    # Python would spend 0.1 s on another search at exit, although the system frees the memory anyway.
    atexit.register(gc.freeze)
    from musicsim import cli

    cli.main()


if __name__ == "__main__":
    main()
