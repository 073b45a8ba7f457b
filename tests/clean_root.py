"""Try musicsim on a clean Debian 12 with only Python, make and git.

This machine may hide that a package needs a library of the system. ``python -m tests.clean_root`` makes a root with
mmdebstrap, installs musicsim there as a plain user, and runs a few tests. With ``--run COMMAND`` it runs another
command there, for example ``--run 'make test'``; with ``--root`` as root.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("ca-certificates", "python3", "python3-venv", "make", "git")
HOME, USER = "home/listener", "listener"
# what needs compiled libraries, or differs between early and late releases of Python 3.11
TESTS = "tests/playlist tests/library/archive/test_backup.py tests/explorer/health tests/browser/test_chromium.py"
SHORT = (
    f"make install && .venv/bin/musicsim doctor && make .venv/browser && "
    f".venv/bin/python -m pytest -q -p no:cacheprovider -m 'not long' {TESTS}"
)
# settings of this machine that a package index may need
SETTINGS = ("etc/pip.conf", "etc/hosts", "etc/resolv.conf", "etc/ssl/certs")


def explain_lack() -> str | None:
    """Return why this machine cannot make a root, or None."""
    if os.name != "posix" or os.geteuid() != 0:
        return "only root can make a root"
    lacking = [name for name in ("mmdebstrap", "unshare", "chroot") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} not found" if lacking else None


def make_root(root: Path) -> None:
    """Install a minimal Debian 12 with a user, and clone the commit of the checkout into the user's home."""
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
    sources = Path("/etc/apt/sources.list.d/debian.sources")
    subprocess.run([*command, "bookworm", str(root), *([str(sources)] if sources.exists() else [])], check=True)
    for name in SETTINGS:
        source, target = Path("/", name), root / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
        elif source.exists():
            shutil.copy(source, target)
    subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(root / HOME / "musicsim")], check=True)
    subprocess.run(["chroot", str(root), "useradd", USER], check=True)
    subprocess.run(["chroot", str(root), "chown", "--recursive", USER, f"/{HOME}"], check=True)


def run(root: Path, command: str, *, as_root: bool) -> int:
    """Run a command in the clone, with mounts that end with it; return its exit code."""
    enter = f"chroot {'' if as_root else f'--userspec={USER}:{USER}'} {root}"
    mounts = " && ".join(f"mount --bind /{name} {root}/{name}" for name in ("proc", "dev"))
    mounts += f" && mount -t tmpfs -o mode=1777 tmpfs {root}/dev/shm"  # semaphores of a plain user's processes
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root" if as_root else f"/{HOME}",
        "LANG": "C.UTF-8",
        "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
    }
    inside = ["bash", "-c", f"git config --global safe.directory '*' && cd /{HOME}/musicsim && {command}"]
    script = f'{mounts} && exec {enter} "$@"'
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *inside],
        env=environment,
        check=False,
    ).returncode


def main() -> int:
    """Make a root, run the command there, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--run", metavar="COMMAND", default=SHORT, help="command to run in the clone; a few tests by default"
    )
    parser.add_argument("--root", action="store_true", help="run it as root instead of a plain user")
    options = parser.parse_args()
    if lack := explain_lack():
        print(f"Clean Debian: not tested, because {lack}.")
        return 0
    with tempfile.TemporaryDirectory(prefix="musicsim-root-") as folder:
        root = Path(folder, "root")
        make_root(root)
        code = run(root, options.run, as_root=options.root)
    print(f"Clean Debian: {'passed' if code == 0 else 'failed'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
