"""Archives made by an attacker who knows the format."""

import hashlib
import io
import tarfile
from pathlib import Path

import zstandard


def parts_of(file: Path) -> dict[str, bytes]:
    with (
        file.open("rb") as stream,
        zstandard.ZstdDecompressor().stream_reader(stream) as packed,
        tarfile.open(fileobj=packed, mode="r|") as tar,
    ):
        return {member.name: tar.extractfile(member).read() for member in tar}


def with_hashes(parts: dict[str, bytes]) -> dict[str, bytes]:
    """Return the members with matching hashes."""
    parts = {name: part for name, part in parts.items() if name != "hashes.txt"}
    lines = (f"{hashlib.sha256(part).hexdigest()}  {name}\n" for name, part in parts.items())
    return parts | {"hashes.txt": "".join(lines).encode()}


def packed(parts: dict[str, bytes], *others: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Pack these members, with others before the hashes."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, part in parts.items():
            if name == "hashes.txt":
                for other, data in others:
                    tar.addfile(other, io.BytesIO(data))
            member = tarfile.TarInfo(name)
            member.size = len(part)
            tar.addfile(member, io.BytesIO(part))
    return zstandard.ZstdCompressor().compress(stream.getvalue())


def write_parts(file: Path, parts: dict[str, bytes], *others: tuple[tarfile.TarInfo, bytes]) -> None:
    """Write an archive of these members with matching hashes."""
    file.write_bytes(packed(with_hashes(parts), *others))
