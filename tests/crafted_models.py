"""Malicious model files, made from a valid one, and a process that imports them one by one."""

import io
import json
import os
import resource
import sys
import zipfile
from pathlib import Path

import numpy as np

__all__ = ["arrays_of", "crafted", "mutant", "packed", "parts_of", "write_parts"]

_MB = bytes(1 << 20)


def parts_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_parts(path: Path, parts: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def arrays_of(parts: dict[str, bytes]) -> dict[str, np.ndarray]:
    """Return the arrays of a model file by name."""
    with np.load(io.BytesIO(parts["model.npz"])) as stored:
        return dict(stored)


def packed(**arrays: np.ndarray) -> bytes:
    """Return arrays as an ``.npz`` file."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _write_zeros(path: Path, parts: dict[str, bytes], shape: tuple[int, int], dtype: str) -> Path:
    """Write a model file whose components are zeros of a shape, in parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            if name != "model.npz":
                archive.writestr(name, data)
        with archive.open("model.npz", "w", force_zip64=True) as npz, zipfile.ZipFile(npz, "w") as inner:
            for name, array in (arrays_of(parts) | {"components": None}).items():
                with inner.open(f"{name}.npy", "w", force_zip64=True) as stream:
                    if array is not None:
                        np.lib.format.write_array(stream, array)
                        continue
                    header = {"descr": dtype, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(stream, header)
                    n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
                    for _ in range(n_bytes >> 20):
                        stream.write(_MB)
                    stream.write(_MB[: n_bytes % len(_MB)])
    return path


def _write_bomb(path: Path, parts: dict[str, bytes]) -> Path:
    """Write a model file whose report is 500 MB of zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            if name != "report.json":
                archive.writestr(name, data)
        with archive.open("report.json", "w") as stream:
            for _ in range(500):
                stream.write(_MB)
    return path


def crafted(good: Path, folder: Path) -> dict[str, Path]:
    """Write invalid model files, named after the change to the valid one."""
    parts, made = parts_of(good), {}
    about, arrays = json.loads(parts["model.json"]), arrays_of(parts)

    def of(name: str, **changed: bytes) -> None:
        members = {member.replace(".", "_"): member for member in (*parts, "report.json")}
        made[name] = write_parts(
            folder / f"{name}.musicsim", parts | {members[member]: data for member, data in changed.items()}
        )

    of("report cut", report_json=parts["report.json"][:200])
    of("report deep", report_json=b"[" * 100_000)
    of("report a list", report_json=b"[1]")
    of("model a list", model_json=b"[]")
    of("model deep", model_json=b'{"format_version": ' + b"[" * 100_000)
    for name, value in (("tau", "x"), ("n_songs", None), ("representation", []), ("variance", "x"), ("tau", 10_000)):
        of(f"{name} {value}".replace("[]", "list"), model_json=json.dumps(about | {name: value}).encode())
    for name, wrong in (
        ("nan", np.full_like(arrays["components"], np.nan)),
        ("text", np.full(arrays["components"].shape, "x")),
        ("flat", arrays["components"].ravel()),
        ("huge", np.full_like(arrays["components"], 1e300)),
        ("objects", np.array([{}], dtype=object)),
    ):
        of(f"components {name}", model_npz=packed(**arrays | {"components": wrong}))
    of("codewords huge", model_npz=packed(**arrays | {"codewords": np.full_like(arrays["codewords"], 1e30)}))
    made["bomb"] = _write_bomb(folder / "bomb.musicsim", parts)
    made["large zeros"] = _write_zeros(folder / "large zeros.musicsim", parts, (100_000, 1_024), "<f8")
    made["zeros"] = _write_zeros(folder / "zeros.musicsim", parts, (60_000, 1_024), "<f8")
    return made


# --- mutants --------------------------------------------------------------------------------------


def mutant(parts: dict[str, bytes], rng: np.random.Generator) -> bytes:
    """Return the bytes of a model file with a random error."""
    ways = (_flipped, _cut, _swapped, _other_json, _other_header, _other_numbers, _inner_flipped)
    return ways[rng.integers(len(ways))](dict(parts), rng)


def _archived(parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method, compresslevel=1) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _changed(data: bytes, rng: np.random.Generator, start: int = 0) -> bytes:
    changed = bytearray(data)
    for place in rng.integers(start, len(data), rng.integers(1, 9)):
        changed[place] = rng.integers(256)
    return bytes(changed)


def _flipped(parts: dict[str, bytes], rng: np.random.Generator) -> bytes:
    data = _archived(parts)
    return _changed(data, rng, rng.choice([0, len(data) - 300]))


def _cut(parts: dict[str, bytes], rng: np.random.Generator) -> bytes:
    data = _archived(parts)
    start, end = np.sort(rng.integers(0, len(data), 2))
    return data[:end] if rng.random() < 0.5 else data[:start] + data[end:]


def _swapped(parts: dict[str, bytes], rng: np.random.Generator) -> bytes:
    first, second = rng.choice(sorted(parts), 2, replace=False)
    parts[first], parts[second] = parts[second], parts[first]
    return _archived(parts)


def _inner_flipped(parts: dict[str, bytes], rng: np.random.Generator) -> bytes:
    name = str(rng.choice(sorted(parts)))
    return _archived(parts | {name: _changed(parts[name], rng)}, zipfile.ZIP_STORED)


_VALUES = (None, True, -1, 0, 1, 7, 2**31, 10**30, 0.5, -1e300, "", "x" * 300, "gmm", "own", [], [[]], {}, {"a": 1})


def _other_json(parts: dict[str, bytes], rng: np.random.Generator) -> bytes:
    name = str(rng.choice([name for name in parts if name.endswith(".json")]))
    said = json.loads(parts[name])
    at = said
    while True:
        key = list(at)[rng.integers(len(at))] if isinstance(at, dict) else int(rng.integers(len(at)))
        if isinstance(at[key], dict | list) and at[key] and rng.random() < 0.7:
            at = at[key]
            continue
        if rng.random() < 0.3:
            del at[key]
        else:
            at[key] = _VALUES[rng.integers(len(_VALUES))]
        return _archived(parts | {name: json.dumps(said).encode()})


def _other_header(parts: dict[str, bytes], rng: np.random.Generator) -> bytes:
    """Change one header of an array."""
    npz = parts["model.npz"]
    starts = [at for at in range(len(npz)) if npz.startswith(b"{'descr'", at)]
    start = int(rng.choice(starts))
    end = npz.index(b"\n", start)
    header = npz[start:end].decode()
    said = [
        ("(", "(True, "), (")", ", 3)"), ("(", "(-"), ("(", "(9" + "0" * 12), ("'<", "'>"), ("False", "True"),
        ("f8", "f4"), ("f8", "O"), ("f8", "U7"), ("{", "["), ("i8", "f8"), ("'<f8'", "[('a', '<f8')]"), ("f8", "c16"),
        ("{", "-" * 90),
    ]  # fmt: skip
    old, new = said[rng.integers(len(said))]
    changed = header.replace(old, new, 1).rstrip()[: len(header)].ljust(len(header)).encode()
    return _archived(parts | {"model.npz": npz[:start] + changed + npz[end:]})


def _other_numbers(parts: dict[str, bytes], rng: np.random.Generator) -> bytes:
    arrays = arrays_of(parts)
    name = str(rng.choice(sorted(arrays)))
    array = arrays[name]
    others = (
        array.T, array[None], np.asfortranarray(array), array.astype("U9"), np.atleast_1d(array)[:1], array.ravel()[:0],
        rng.standard_normal(array.shape),
    )  # fmt: skip
    if array.dtype.kind != "U":
        others += (
            -array, array * 0, array * 1e8, array.astype(">f8"), array.astype("f4"), array + 1j,
            np.where(rng.random(array.shape) < 0.1, np.nan, array),
        )  # fmt: skip
    arrays[name] = others[rng.integers(len(others))]
    if rng.random() < 0.1:
        del arrays[name]
    return _archived(parts | {"model.npz": packed(**arrays)})


# --- a process ------------------------------------------------------------------------------------


def _take_all(library: str, files: list[str]) -> None:
    """Run ``musicsim models import`` for each file in a child; print exit codes, outputs and memory."""
    import musicsim.explorer.refresh.model_catalogue  # noqa: F401  # or each child would import it again
    from musicsim.cli import main

    ended = []
    for file in files:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(write, 1), os.dup2(write, 2)
            sys.argv = ["musicsim", "models", "import", file, "--library", library]
            main()
            sys.exit(0)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as stream:
            said = stream.read()
        _, status = os.waitpid(child, 0)
        ended.append([file, os.waitstatus_to_exitcode(status), said])
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    json.dump({"ended": ended, "memory_mb": memory / 1024}, sys.stdout)


if __name__ == "__main__":
    _take_all(sys.argv[1], sys.argv[2:])
