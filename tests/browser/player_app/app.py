"""A small app around the player, with its own sounds; see tests/browser/test_player.py."""

import tempfile
import wave
from pathlib import Path

import numpy as np
import songs
import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from musicsim.explorer.playlists.tracks import render_track
from musicsim.ui.base.scripts import script_routes

SECONDS = {1: 400.0, 2: 2.0, 3: 400.0, 4: 400.0, 5: 400.0}
RATE = 8000
FOLDER = Path(tempfile.mkdtemp(prefix="musicsim-player-app-"))


def write_song(song: int, seconds: float) -> None:
    """Write a tone of its own pitch that swells and fades, so that its waveform has a shape."""
    t = np.arange(int(seconds * RATE)) / RATE
    swell = 0.15 + 0.85 * np.abs(np.sin(2 * np.pi * t / 9 + song))
    samples = (9000 * swell * np.sin(2 * np.pi * 110 * (song + 1) * t)).astype("<i2")
    with wave.open(str(FOLDER / f"{song}.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())


async def audio(request: Request) -> Response:
    path = FOLDER / f"{request.path_params['song']}.wav"
    return FileResponse(path, media_type="audio/wav") if path.exists() else Response("no such song", 404)


async def peaks(request: Request) -> Response:
    song = request.path_params["song"]
    if song not in SECONDS or song == 4:
        return Response("no waveform", 404)
    x = np.arange(400)
    heights = np.abs(np.sin(x / 30 + song)) * (0.55 + 0.45 * np.abs(np.sin(x * 1.7)))
    return JSONResponse(heights.round(3).tolist())


async def tracks(request: Request) -> Response:
    asked = (await request.json())["songs"]
    return JSONResponse({"tracks": [render_track(songs.BY_ID[song]) for song in asked]})


for number, length in SECONDS.items():
    write_song(number, length)

prefix = "/" + (st.get_option("server.baseUrlPath") or "").strip("/")
prefix = prefix.rstrip("/")
routes = [
    Route(f"{prefix}/songs/{{song:int}}/audio", audio), Route(f"{prefix}/songs/{{song:int}}/peaks", peaks),
    Route(f"{prefix}/api/tracks", tracks, methods=["POST"]),
]  # fmt: skip
app = st.App("shell.py", routes=[*script_routes(prefix), *routes])
