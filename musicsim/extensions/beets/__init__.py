"""Tags, ratings and MusicBrainz ids from beets. See also the plugin in ``beetsplug``."""

from musicsim.hooks import Extension

EXTENSION = Extension(name="beets", import_formats="reader:FORMATS")
