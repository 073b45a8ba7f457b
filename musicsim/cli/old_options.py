"""Old names of options: they work for one version, with a warning."""

from collections.abc import Mapping, Sequence

from musicsim.cli.terminal import errors

OLD_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "albums playlist": {"--length": "--albums", "-n": "--albums"},
    "albums similar": {"-n": "-k"},
    "artists": {"--part": "--unmerge"},
    "daily": {"--folder": "--write-to"},
    "duplicates": {"--part": "--separate"},
    "evaluate": {"--as": "--public-name", "--by": "--truth", "--search": "--search-speed"},
    "export": {"--k": "--neighbors", "-k": "--neighbors", "--like": "--passages-of"},
    "factors": {"--by": "--factor"},
    "guess": {"--by": "--voters"},
    "import": {"--accept": "--min-score"},
    "listenbrainz send": {"--public": "--visible"},
    "models add-ear": {"--every": "--stride"},
    "models add-text": {"--every": "--stride"},
    "pool": {"--by": "--share"},
    "similar": {"--by": "--factor"},
    "sonify": {"-n": "--pieces", "--seconds": "--piece-seconds"},
    "two-ears": {"--playlist": "--length"},
}
"""The new name of each renamed option, keyed by command and old name."""


def rename_options(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with the new names of its options, and print a warning per old name."""
    names = [word for word in words if not word.startswith("-")]
    new_names = OLD_OPTIONS.get(" ".join(names[:2])) or OLD_OPTIONS.get(" ".join(names[:1]), {})
    renamed = []
    for word in words:
        old, equals, value = word.partition("=")
        new = new_names.get(old, old)
        if new != old:
            errors.print(f"[yellow]renamed:[/yellow] {old} is called {new} now.", highlight=False)
        renamed.append(f"{new}{equals}{value}")
    return renamed
