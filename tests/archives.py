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


def members_of(file: Path) -> tuple[bytes, list[tuple[str, int, bytes]]]:
    """Return the uncompressed bytes of an archive, and the names, times and contents of its members in order."""
    with file.open("rb") as stream, zstandard.ZstdDecompressor().stream_reader(stream) as packed_bytes:
        data = packed_bytes.read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return data, [(one.name, int(one.mtime), tar.extractfile(one).read()) for one in tar]


def tar_of_version_1(members: list[tuple[str, int, bytes]]) -> bytes:
    """Return the uncompressed bytes of an archive as the first version of the format wrote it, with its hashes.

    This is written without the code of musicsim, and must stay as it is: users have such files.
    """
    stream, lines = io.BytesIO(), []
    with tarfile.open(fileobj=stream, mode="w|", bufsize=1 << 20, format=tarfile.GNU_FORMAT) as tar:
        for name, time, data in members:
            content = "".join(lines).encode() if name == "hashes.txt" else data
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(content), time, 0o600
            tar.addfile(member, io.BytesIO(content))
            lines.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
    return stream.getvalue()


def write_version_1(file: Path, parts: dict[str, bytes]) -> None:
    """Write an archive of the first version of the format; the first part is the one about the archive."""
    members = [(name, 1_790_000_000, data) for name, data in (parts | {"hashes.txt": b""}).items()]
    file.write_bytes(zstandard.ZstdCompressor(level=3, write_checksum=True).compress(tar_of_version_1(members)))
