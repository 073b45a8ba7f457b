"""Recognize files without sound by their content, to explain why they cannot be read.

Each explanation is a predicate that follows the name of the file.
"""

import codecs
import re
from collections.abc import Callable

_HEAD = 4096  # bytes
_ID3_HEADER, _ID3_V1 = 10, 128
_PICTURE = "is a picture ({}), not sound. Leave it out."
_FILM = "is a video without an audio track. Leave it out."
_TAGS_ONLY = "contains tags but no sound: it is incomplete. Copy or download it again."
_PAGE = "is a web page (HTML), not sound: probably a failed download. Download it again."
_TEXT = "is a text file, not sound. Leave it out, or download it again if it should be music."
_UNKNOWN = "cannot be read as sound: it is not an audio file, or it is damaged or cut off; copy it again."

_MARKS = (
    (re.compile(rb"\xff\xd8\xff"), _PICTURE.format("JPEG")),
    (re.compile(rb"\x89PNG\r\n\x1a\n"), _PICTURE.format("PNG")),
    (re.compile(rb"GIF8[79]a"), _PICTURE.format("GIF")),
    (re.compile(rb"BM.{4}\0{4}", re.DOTALL), _PICTURE.format("BMP")),
    (re.compile(rb"II\*\0|MM\0\*"), _PICTURE.format("TIFF")),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), _PICTURE.format("WebP")),
    (re.compile(rb"....ftyp(hei[cfsx]|hev[cx]|mif1|msf1|avi[fs])", re.DOTALL), _PICTURE.format("HEIF")),
)
_HTML = re.compile(r"\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile(r"[^\t\n\f\r\x1b\x20-\x7e\x80-\U0010ffff]")
_BYTE_ORDER = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig"}


def explain_no_sound(read: Callable[[int, int], bytes], *, has_film: bool) -> str:
    """Return a predicate that follows the file's name; `read(start, n_bytes)` returns bytes of the file."""
    head = read(0, _HEAD)
    for mark, sentence in _MARKS:
        if mark.match(head):
            return sentence
    if has_film:
        return _FILM
    if head.startswith(b"ID3") and _is_empty_after_id3(read):
        return _TAGS_ONLY
    text = _decode_text(head)
    if text is None:
        return _UNKNOWN
    return _PAGE if _HTML.match(text) else _TEXT


def _is_empty_after_id3(read: Callable[[int, int], bytes]) -> bool:
    """Return whether the ID3v2 tag is followed by nothing, or only by padding and an ID3v1 tag."""
    header = read(0, _ID3_HEADER)
    length = sum((byte & 127) << shift for byte, shift in zip(header[6:], (21, 14, 7, 0), strict=False))
    rest = read(_ID3_HEADER + length, _HEAD + _ID3_V1)
    if rest[-_ID3_V1:].startswith(b"TAG"):
        rest = rest[:-_ID3_V1]
    return len(rest) <= _HEAD and not rest.strip(b"\0")


def _decode_text(head: bytes) -> str | None:
    """Return the beginning of a file as text; None if it is not text."""
    encoding = next((name for mark, name in _BYTE_ORDER.items() if head.startswith(mark)), "utf-8")
    try:
        # incremental, because the last character may be incomplete
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return None
    return None if not text.strip() or _CONTROL.search(text) else text
