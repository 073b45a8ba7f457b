"""Memory of a process together with all that it has started."""

from typing import Any

__all__ = ["family_memory"]


def family_memory(process: Any) -> dict[str, int]:
    """Bytes: "pss" counts what processes share once, "rss" in each of them; a system without pss has rss for both.

    Parameters
    ----------
    process : psutil.Process
    """
    import psutil

    total = {"pss": 0, "rss": 0}
    for member in _family(process):
        try:
            memory = member.memory_full_info()
        except psutil.Error:  # it has ended meanwhile
            continue
        for kind in total:
            total[kind] += getattr(memory, kind, memory.rss)
    return total


def _family(process: Any) -> list[Any]:
    import psutil

    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []
