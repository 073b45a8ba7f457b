"""``musicsim`` and ``python -m musicsim``: the command line."""

import atexit
import gc

# New objects after which Python looks for cycles among them. By default 700: importing what a command needs makes more
# than a hundred thousand, none of them garbage, and a tenth of its time was spent on looking.
_OBJECTS_BETWEEN_LOOKS = 200_000


def main() -> None:
    """Entry point of the installed program."""
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)  # before anything is imported
    # Python looks for cycles once more when it ends, among all that was imported: 0.1 s. The system takes it all back.
    atexit.register(gc.freeze)
    from musicsim import cli

    cli.main()


if __name__ == "__main__":
    main()
