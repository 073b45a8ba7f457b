"""Disks that tests can fill, and make read-only."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size_mb: int = 20) -> Iterator[Path]:
    """Mount a separate file system; skip the test if mounting is not allowed."""
    place.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", place)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def make_read_only(disk: Path) -> None:
    """Make the disk read-only for all users."""
    _mount("-o", "remount,ro", disk)


def fill(disk: Path, *, left_kb: int) -> Path:
    """Leave this much free space; deleting the returned file frees the rest."""
    stuffing = disk / "stuffing"
    with stuffing.open("wb") as file:
        space = os.statvfs(disk)
        os.posix_fallocate(file.fileno(), 0, space.f_bavail * space.f_frsize - left_kb * 1024)
    return stuffing


def _mount(*arguments: object) -> None:
    try:
        subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"file systems cannot be mounted here: {error}")
