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
LOOPS = {6: (120.0, 0.0), 7: (126.0, 2.0)}  # tempo, and a position on a beat
LOOP_S = 24.0
RATE = 8000
FOLDER = Path(tempfile.mkdtemp(prefix="musicsim-player-app-"))


def write_song(song: int, seconds: float) -> None:
    """Write a tone of its own pitch that swells and fades, so that its waveform has a shape."""
    t = np.arange(int(seconds * RATE)) / RATE
    swell = 0.15 + 0.85 * np.abs(np.sin(2 * np.pi * t / 9 + song))
    samples = (9000 * swell * np.sin(2 * np.pi * 110 * (song + 1) * t)).astype("<i2")
    write_file(song, samples)


def write_loop(song: int, tempo: float, beat_s: float) -> None:
    """Write a short thump on each beat."""
    t = np.arange(int(LOOP_S * RATE)) / RATE
    after_s = (t - beat_s) % (60 / tempo)
    write_file(song, (20000 * np.sin(2 * np.pi * 90 * after_s) * np.exp(-after_s / 0.02)).astype("<i2"))


def write_file(song: int, samples: np.ndarray) -> None:
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


async def transition(request: Request) -> Response:
    """Answer as the app would for the two loops: the first one is sped up."""
    if (request.path_params["song"], request.query_params["next_id"]) != (6, "7"):
        return JSONResponse({"tempos": [None, 120], "keys": ["", ""], "reason": "the earlier song has no beats"})
    fade = {"n_beats": 8, "leave_s": 11.0, "enter_s": 2.0, "duration_s": 8 * 60 / 126, "rates": [1.05, 1.0]}
    return JSONResponse({"tempos": [120.0, 126.0], "keys": ["C major", "G major"], "reason": ""} | fade)


async def order(request: Request) -> Response:
    first, *others = (await request.json())["songs"]
    return JSONResponse({"songs": [first, *reversed(others)]})


for number, length in SECONDS.items():
    write_song(number, length)
for number, (tempo, beat_s) in LOOPS.items():
    write_loop(number, tempo, beat_s)

prefix = "/" + (st.get_option("server.baseUrlPath") or "").strip("/")
prefix = prefix.rstrip("/")
routes = [
    Route(f"{prefix}/songs/{{song:int}}/audio", audio), Route(f"{prefix}/songs/{{song:int}}/peaks", peaks),
    Route(f"{prefix}/api/tracks", tracks, methods=["POST"]),
    Route(f"{prefix}/api/songs/{{song:int}}/transition", transition),
    Route(f"{prefix}/api/songs/order", order, methods=["POST"]),
]  # fmt: skip
app = st.App("shell.py", routes=[*script_routes(prefix), *routes])
