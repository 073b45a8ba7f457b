"""``musicsim`` and ``python -m musicsim``: the command line."""

import atexit
import gc


def main() -> None:
    """Entry point of the installed program."""
    # Importing a command creates over 100,000 objects, none of them garbage. With the default of 700 new objects
    # between collections, a tenth of the start-up went into searching them for cycles.
    gc.set_threshold(200_000)
    # Python searches for cycles again when it exits: 0.1 s. The system frees the memory anyway.
    atexit.register(gc.freeze)
    from musicsim import cli

    cli.main()


if __name__ == "__main__":
    main()
