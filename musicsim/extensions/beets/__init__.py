"""Listening data from beets: play counts, ratings and tags. Also see the plugin in ``beetsplug``."""

from musicsim.hooks import Extension

EXTENSION = Extension(name="beets", hooks={"import_formats": "reader:FORMATS"})
