"""The power supply of this machine."""

import subprocess
import sys
from pathlib import Path

POWER_SUPPLIES = Path("/sys/class/power_supply")
_EXTERNAL = ("Mains", "USB")


def is_on_battery(root: Path | None = None) -> bool:
    """Return whether this machine runs on battery; False if this is unknown.

    `root` is the folder in which Linux describes power supplies. On macOS, `pmset` is asked.
    """
    if sys.platform == "darwin" and root is None:
        return _asks_pmset()
    supplies = [_read(folder) for folder in sorted((root or POWER_SUPPLIES).glob("*"))]
    external = [supply for supply in supplies if supply["type"] in _EXTERNAL]
    if any(supply["online"] not in ("", "0") for supply in external):
        return False
    # batteries of a mouse or a keyboard have the scope "Device"
    batteries = [supply for supply in supplies if supply["type"] == "Battery" and supply["scope"] != "Device"]
    if any(supply["status"] == "Discharging" for supply in batteries):
        return True
    return bool(batteries) and any(supply["online"] == "0" for supply in external)


def _read(folder: Path) -> dict[str, str]:
    def value(name: str) -> str:
        try:
            return (folder / name).read_text("utf-8", "replace").strip()
        except OSError:
            return ""

    return {name: value(name) for name in ("type", "online", "status", "scope")}


def _asks_pmset() -> bool:
    try:
        done = subprocess.run(["pmset", "-g", "batt"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return "'Battery Power'" in done.stdout
