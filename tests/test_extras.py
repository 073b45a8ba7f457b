"""The command that installs an extra, in a checkout and in an installed copy."""

import shutil
import subprocess
import sys
from pathlib import Path

import musicsim.extras

_PRINT = "from musicsim.extras import install_command; print(install_command('mpd'))"


def _command_of_copy(folder: Path) -> str:
    """Return the command that a copy of the module in a folder prints."""
    (folder / "musicsim").mkdir()
    (folder / "musicsim" / "__init__.py").write_text('__version__ = "1.2.3"')
    shutil.copy(musicsim.extras.__file__, folder / "musicsim")
    return subprocess.check_output([sys.executable, "-c", _PRINT], cwd=folder, text=True).strip()


def test_installed_copy_names_the_wheel(tmp_path):
    assert _command_of_copy(tmp_path) == "pip install 'musicsim-1.2.3-py3-none-any.whl[mpd]'"


def test_checkout_is_installed_again_with_the_extra(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    assert _command_of_copy(tmp_path) == "python -m pip install -e '.[mpd]'"
