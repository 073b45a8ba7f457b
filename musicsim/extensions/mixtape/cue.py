"""Cue sheets: text files that list the songs of a mix and their starts, for players and burning programs."""

from musicsim.extensions.mixtape.mixtape import Mix

_FRAMES_PER_S = 75


def write_cue(mix: Mix, audio_name: str, title: str) -> str:
    """Return the cue sheet of a mix. `audio_name` is the file name of the mix, in the same folder as the sheet.

    A song starts where it begins to fade in. The standard allows 99 songs; later songs get higher numbers.
    """
    kind = "MP3" if audio_name.lower().endswith(".mp3") else "WAVE"  # by convention, WAVE is every other format
    lines = [f"TITLE {_quote(title)}", f"FILE {_quote(audio_name)} {kind}"]
    for number, (song, start_s) in enumerate(zip(mix.songs, mix.starts, strict=True), 1):
        lines += [f"  TRACK {number:02d} AUDIO", f"    TITLE {_quote(song.title)}"]
        if song.by:
            lines.append(f"    PERFORMER {_quote(song.by)}")
        lines.append(f"    INDEX 01 {_format_time(start_s)}")
    return "\r\n".join([*lines, ""])


def _quote(text: str) -> str:
    """Return text in quotation marks; the format has no way to write a quotation mark inside."""
    return '"' + " ".join(text.replace('"', "'").split()) + '"'


def _format_time(seconds: float) -> str:
    """Return minutes:seconds:frames, with 75 frames per second, rounded down."""
    total, frames = divmod(int(seconds * _FRAMES_PER_S + 1e-6), _FRAMES_PER_S)
    return f"{total // 60:02d}:{total % 60:02d}:{frames:02d}"
