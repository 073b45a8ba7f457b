"""Tags, ratings and MusicBrainz ids from beets. See also the plugin in ``beetsplug``."""

from musicsim.hooks import Extension

EXTENSION = Extension(name="beets", hooks={"import_formats": "reader:FORMATS"})
