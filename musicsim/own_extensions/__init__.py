"""The owner's extensions: modules and packages in the folder ``musicsim/extensions`` of the user's configuration."""

import os
from pathlib import Path

from musicsim.public import is_public

FOLDER = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "musicsim" / "extensions"
# Python looks for the submodules of this package there. Public demonstrations run only code that was installed.
__path__ = [] if is_public() else [str(FOLDER)]
