"""Table of the quality of several experiments, next to what each is compared with."""

from benchmarks.support.columns import KeptRows, Lines, find_row, format_number, format_share

__all__ = ["COMBINED", "tabulate_quality"]

COMBINED = ("real_music", "demo", "audio", "playlists", "hashing")
"""Experiments whose rows are in the table."""


def tabulate_quality(rows: KeptRows) -> Lines:
    """Return a line per measurement, each with our value and others' of the same experiment."""

    def of(column: str, **wanted: object) -> str:
        return format_share(find_row(rows, **wanted)[column])

    def learned(name: str, learning: str) -> str:
        three, ten = (of("AUC", k=k, representation=name, learning=learning, mutual_proximity=False) for k in (3, 10))
        return f"{three} ({ten})"

    def thesis(name: str, learning: str) -> str:
        return of("thesis AUC", k=3, representation=name, learning=learning, mutual_proximity=False)

    yield "measurement", "musicsim", "compared with"
    musly, statistics = (of("P@1", what=name) for name in ("one Gaussian, Jensen-Shannon (Musly)", "MFCC statistics"))
    yield (
        "how often the nearest song is by the same composer: 311 real recordings, 12 composers",
        of("P@1", what="Sound"),
        f"Musly's Jensen-Shannon {musly}, MFCC statistics {statistics}",
    )
    ours, codewords, statistics, chance = (
        of("style@10, artist filter", description=name) for name in ("Sound", "PPK", "statistics", "chance")
    )
    yield (
        "share of the 10 nearest songs with the same style: demo, without songs by the query's artist",
        ours,
        f"codewords {codewords}, MFCC statistics {statistics}, chance {chance}",
    )
    yield (
        "AUC on held-out artists, learned from plays: demo, with three (ten) similar artists. VQ histograms; PPK "
        "before, after MLR; tags before, after MLR",
        f"{learned('VQ histograms', 'native')}; {learned('PPK', 'native')}, {learned('PPK', 'MLR')}; "
        f"{learned('human tags', 'native')}, {learned('human tags', 'MLR')}",
        f"thesis, CAL10K: {thesis('VQ histograms', 'native')}; {thesis('PPK', 'native')}, {thesis('PPK', 'MLR')}; "
        f"{thesis('human tags', 'native')}, {thesis('human tags', 'MLR')}",
    )
    walk = "walk: tags, company, neighbors; songs by plays"
    ours, bigram, embedding = (of("log P", collection="yes_small", model=name) for name in (walk, "bigram", "LME"))
    yield (
        "predicting the next song in radio playlists: log P per transition (yes.com, small)",
        ours,
        f"bigram {bigram}; latent Markov embedding {embedding}",
    )
    digits = find_row(rows, set="MNIST", bits=64)
    yield (
        "error (%) on 10,000 digits with learned codes of 64 bits: linear; with 256 hidden units",
        f"{format_number(digits['LambdaRank'])}; {format_number(digits['LambdaRank, hidden units'])}",
        f"Spectral Hashing {format_number(digits['Spectral Hashing'])}, random projections "
        f"{format_number(digits['random projection'])}, Euclidean distance {format_number(digits['Euclid'])}",
    )
