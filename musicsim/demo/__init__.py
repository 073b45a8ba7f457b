"""A collection of generated music, with listeners, to try musicsim on without any music of one's own."""

from musicsim.demo.collection import SongPlan, plan_collection
from musicsim.demo.synthesis import SAMPLE_RATE, render, write_song

__all__ = ["SAMPLE_RATE", "SongPlan", "plan_collection", "render", "write_song"]
