"""Bit codes of songs: learned for a task, by chance, or from the shape of the data; and votes of the nearest codes."""

from musicsim.hashing.baselines import RandomProjectionHash, SpectralHash
from musicsim.hashing.packing import hamming_distances, pack_bits, unpack_bits
from musicsim.hashing.rank_hash import RankHash
from musicsim.hashing.votes import bin_mean, bin_vote

__all__ = [
    "RandomProjectionHash",
    "RankHash",
    "SpectralHash",
    "bin_mean",
    "bin_vote",
    "hamming_distances",
    "pack_bits",
    "unpack_bits",
]
