from .collection import SongPlan as SongPlan
from .collection import plan_collection as plan_collection
from .listeners import write_listening as write_listening
from .synthesis import is_packaged as is_packaged
from .synthesis import render as render
from .synthesis import write_song as write_song
from .voices import SAMPLE_RATE as SAMPLE_RATE
