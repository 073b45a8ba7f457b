"""Run a command as if this machine had an older processor.

OpenBLAS, numpy and numba each choose code for the processor they run on. That code rounds differently, so a test that
passes on one processor may fail on another. These settings make all three libraries choose code for a named processor.

usage:

- python -m tests.processors NAME COMMAND...   run COMMAND on one processor
- python -m tests.processors list              print the processors that this machine can run
- python -m tests.processors pick NUMBER       print one of them; consecutive numbers give each in turn
"""

import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_NO_AVX512 = "X86_V4 AVX512_ICL AVX512_SPR"
_CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Processor:
    """Settings that select the code for a processor.

    `kernel` is a value of OPENBLAS_CORETYPE, `numpy_without` lists features for NPY_DISABLE_CPU_FEATURES, `llvm` is a
    value of NUMBA_CPU_NAME, and `needs` is a flag of /proc/cpuinfo without which the code would crash.
    """

    kernel: str
    numpy_without: str
    llvm: str
    needs: str

    def environment(self) -> dict[str, str]:
        """Return the environment variables for OpenBLAS, numpy and numba."""
        return {
            "OPENBLAS_CORETYPE": self.kernel,
            "NPY_DISABLE_CPU_FEATURES": self.numpy_without,
            "NUMBA_CPU_NAME": self.llvm,
            "NUMBA_CPU_FEATURES": "",  # otherwise numba adds the features of the real processor
        }


PROCESSORS = (
    Processor("Nehalem", f"X86_V3 {_NO_AVX512}", "nehalem", "sse4_2"),
    Processor("Haswell", _NO_AVX512, "haswell", "avx2"),
    # The wheels of numpy and scipy use Haswell's matrix products here; numba's code differs.
    Processor("Zen", _NO_AVX512, "znver3", "avx2"),
    Processor("SkylakeX", "AVX512_ICL AVX512_SPR", "skylake-avx512", "avx512vl"),
)


def runnable_processors() -> list[str]:
    """Return the names of the processors whose code this machine can run; none if it is not an x86 Linux machine."""
    if platform.machine() != "x86_64" or not _CPU_INFO.exists():
        return []
    flags = re.search(r"^flags\s*:(.*)$", _CPU_INFO.read_text(), re.MULTILINE)
    has = set(flags[1].split()) if flags else set()
    return [processor.kernel for processor in PROCESSORS if processor.needs in has]


def run_as(name: str, command: list[str]) -> int:
    """Run a command on the processor of that name and return its exit code."""
    settings = next(processor for processor in PROCESSORS if processor.kernel == name).environment()
    return subprocess.run(command, env=os.environ | settings, check=False).returncode


if __name__ == "__main__":
    action, *rest = sys.argv[1:]
    if action == "list":
        sys.stdout.write(" ".join(runnable_processors()))
    elif action == "pick":
        names = runnable_processors()
        sys.stdout.write(names[int(rest[0]) % len(names)] if names else "")
    else:
        sys.exit(run_as(action, rest))
