"""``python -m musicsim`` is the command line."""

from musicsim.cli import main

if __name__ == "__main__":
    main()
