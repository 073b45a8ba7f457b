from .baselines import RandomProjectionHash as RandomProjectionHash
from .baselines import SpectralHash as SpectralHash
from .packing import hamming_distances as hamming_distances
from .packing import pack_bits as pack_bits
from .packing import unpack_bits as unpack_bits
from .rank_hash import RankHash as RankHash
from .votes import bin_mean as bin_mean
from .votes import bin_vote as bin_vote
