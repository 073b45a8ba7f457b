from . import audio as audio
from . import codebook as codebook
from . import datasets as datasets
from . import evaluation as evaluation
from . import gaussians as gaussians
from . import hashing as hashing
from . import kernels as kernels
from . import metric as metric
from . import mixtures as mixtures
from . import order as order
from . import playlist as playlist
from . import relevance as relevance
from . import search as search
from .codebook import Codebook as Codebook
from .evaluation import ArtistSplit as ArtistSplit
from .evaluation.table import evaluate as evaluate
from .hashing import RankHash as RankHash
from .metric import GMML as GMML
from .metric import LGMML as LGMML
from .metric import MLR as MLR
from .metric import MLRCV as MLRCV
from .metric import WCCN as WCCN
from .metric import MultipleKernelMLR as MultipleKernelMLR
from .order import PartialOrderEmbedding as PartialOrderEmbedding
from .playlist import PlaylistModel as PlaylistModel
from .relevance import Relevance as Relevance
from .scripting import Library as Library
from .scripting import Models as Models
from .scripting import Playlist as Playlist
from .versions import show_versions as show_versions
from .warm_up import warm_up as warm_up

LIBRARY_FILE: str
__version__: str
