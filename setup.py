"""Write the commit into wheels, for ``musicsim --version``; everything else is in pyproject.toml."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_HERE = Path(__file__).parent
_OURS = runpy.run_path(str(_HERE / "musicsim" / "commit.py"))


class BuildWithCommit(build_py):
    """Build the package, and add a file with the commit that it was built from."""

    def run(self) -> None:
        super().run()
        commit = _OURS["from_git"](_HERE)
        if commit and not self.editable_mode:
            (Path(self.build_lib) / "musicsim" / _OURS["COMMIT_FILE"]).write_text(commit, encoding="ascii")


setup(cmdclass={"build_py": BuildWithCommit})
