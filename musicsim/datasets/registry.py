"""The data sets that experiments and benchmarks read, each with source, license, checksums and layout."""

from musicsim.datasets.listened import LISTENED
from musicsim.datasets.records import DataFile, DataSet

__all__ = ["get_dataset", "list_datasets"]

_RAW = "https://raw.githubusercontent.com"


def list_datasets() -> list[DataSet]:
    """Return the records of all known data sets, by name.

    Examples
    --------
    >>> from musicsim.datasets import list_datasets
    >>> [data_set.name for data_set in list_datasets()][-4:]
    ['spotify_msd', 'wdbc', 'wine', 'yes']
    """
    return sorted(_DATA_SETS, key=lambda data_set: data_set.name)


def get_dataset(name: str) -> DataSet:
    """Return the record of a data set; raise KeyError, with the known names, if there is none.

    Examples
    --------
    >>> from musicsim.datasets import get_dataset
    >>> get_dataset("wine").layout
    '178 rows, 13 columns, 3 classes'
    """
    for data_set in _DATA_SETS:
        if data_set.name == name:
            return data_set
    known = ", ".join(data_set.name for data_set in list_datasets())
    raise KeyError(f"{name!r}: no such data set; there are {known}.")


# SHA-256 of the files in their present form, without .xz; those of OpenML are checked by scikit-learn.
_DATA_SETS = (
    *LISTENED,
    DataSet(
        name="balance",
        title="Balance Scale (UCI)",
        source="https://archive.ics.uci.edu/dataset/12/balance+scale",
        license="CC BY 4.0",
        layout="625 rows, class (L, B, R) in the first of 5 columns",
        read_by=("noise", "uci"),
        folder="uci",
        files=(
            DataFile(
                "balance-scale.data",
                "5611187ef7345d807aa8ae22615945ade52a190537c0b1434bd44c3e877c5bb4",
                "https://archive.ics.uci.edu/ml/machine-learning-databases/balance-scale/balance-scale.data",
            ),
        ),
        fetcher="openml",
        openml_id=11,
        content_sha256="d04e53f10f04a1e2deeb5024df4ead6dab56e4f03068b164c332a711cf20dbe9",
    ),
    DataSet(
        name="ionosphere",
        title="Ionosphere (UCI)",
        source="https://archive.ics.uci.edu/dataset/52/ionosphere",
        license="CC BY 4.0",
        layout="351 rows, class (g, b) in the last of 35 columns",
        read_by=("noise", "uci"),
        folder="uci",
        files=(
            DataFile(
                "ionosphere.data",
                "46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd",
                "https://archive.ics.uci.edu/ml/machine-learning-databases/ionosphere/ionosphere.data",
            ),
        ),
        fetcher="openml",
        openml_id=59,
        content_sha256="2ef00286204308d757c1a93f09e649b6bde0616cc963d4cf0e84e8e5d5831019",
    ),
    DataSet(
        name="wdbc",
        title="Breast Cancer Wisconsin (Diagnostic, UCI)",
        source="https://archive.ics.uci.edu/dataset/17/breast+cancer+wisconsin+diagnostic",
        license="CC BY 4.0",
        layout="569 rows, 30 columns, classes B and M",
        read_by=("noise", "uci"),
        fetcher="bundled",
    ),
    DataSet(
        name="wine",
        title="Wine (UCI)",
        source="https://archive.ics.uci.edu/dataset/109/wine",
        license="CC BY 4.0",
        layout="178 rows, 13 columns, 3 classes",
        read_by=("noise", "uci"),
        fetcher="bundled",
    ),
    DataSet(
        name="isolet",
        title="ISOLET (UCI)",
        source="https://archive.ics.uci.edu/dataset/54/isolet",
        license="CC BY 4.0",
        layout=(
            "7,797 rows, 617 columns, classes 1 to 26; the first 6,238 rows are for training "
            "(isolet1+2+3+4), the last 1,559 for testing (isolet5)"
        ),
        read_by=("uci",),
        folder="isolet",
        fetcher="openml",
        openml_id=300,
        content_sha256="044adb9e565b319125db1cd5e6dad0b2f5f75a6d26daaad91245899ebea3a5b7",
        n_checked=1559,
    ),
    DataSet(
        name="isolet_parts",
        title="A fifth of ISOLET",
        source=(
            "https://github.com/jlsuarezdiaz/pyDML (data/isolet5.data.Z) and "
            "https://github.com/anony259106/icml2024 (data/isolet.mat), converted to .npz files. `isolet` has all rows"
        ),
        license="CC BY 4.0",
        layout=(
            "isolet5.npz is UCI's test file with 1,559 rows; isolet_1560.npz has 1,560 rows of other "
            "speakers for training"
        ),
        read_by=("uci",),
        folder="uci",
        files=(
            DataFile("isolet5.npz", "9169aa2751e4db11a7be6518f94d908d9c455c6a23838cf0a258966904f4ad23"),
            DataFile("isolet_1560.npz", "fd3a5095edcbba003246d16f85b7897e1d0ff2ad42dd11d888ee149458d37a52"),
        ),
    ),
    DataSet(
        name="mnist",
        title="MNIST",
        source="https://www.openml.org/d/554",
        license="unknown: ask the authors",
        layout="70,000 rows, 784 gray levels from 0 to 255, digits; the first 60,000 rows are for training",
        read_by=("hashing", "hashing_tables"),
        folder="mnist_784",
        fetcher="openml",
        openml_id=554,
    ),
    DataSet(
        name="mnist_20k",
        title="20,000 digits of MNIST",
        source=(
            "https://github.com/cazala/mnist (src/digits: 10,000 training digits, sorted) and "
            "https://github.com/unixpickle/mnistlite (data/t10k-*.gz), converted to .npz files. `mnist` has all rows"
        ),
        license="MIT (cazala/mnist); unknown for the test digits: ask the authors",
        layout="two .npz files with X (10,000 x 784 bytes) and y",
        read_by=("benchmarks.search", "hashing", "hashing_tables"),
        folder="mnist",
        files=(
            DataFile("mnist_10k_cazala.npz", "b44bf980d88e74626c40c11a6a32526d3a17164f0432855fb72d5fe239137ff6"),
            DataFile("mnist_t10k.npz", "96ec6a9c413a1e20a45398cb23275e33c439c12ee65564d4b8ff0a0ef4d64f14"),
        ),
    ),
    DataSet(
        name="covtype",
        title="Covertype (UCI)",
        source="https://archive.ics.uci.edu/dataset/31/covertype",
        license="CC BY 4.0",
        layout="581,012 rows, 54 columns, classes 1 to 7; the paper trains on 522,911",
        read_by=("hashing", "hashing_tables"),
        folder="covtype_full",
        fetcher="covtype",
    ),
    DataSet(
        name="covtype_sample",
        title="10,000 rows of Covertype",
        source="https://github.com/saingersoll/EDS232-machine-learning-notebook",
        license="CC BY 4.0",
        layout="CSV with a header: 54 columns, and Cover_Type",
        read_by=("hashing", "hashing_tables"),
        folder="covtype",
        files=(
            DataFile(
                "covtype_sample.csv",
                "2d10e66020bf935317aaeb266ed959d63d1c5b58961b781ba8dc90149578737b",
                f"{_RAW}/saingersoll/EDS232-machine-learning-notebook/5f30533e269906bf91407025c8997348d888adce/data/covtype_sample.csv",
            ),
        ),
    ),
    DataSet(
        name="rcv1",
        title="Reuters Corpus Volume I (RCV1-v2)",
        source="https://jmlr.csail.mit.edu/papers/volume5/lewis04a/",
        license="vectors: free for research; texts: agreement with NIST",
        layout="804,414 sparse rows, 47,236 columns, 103 topics; the first 23,149 rows are for training",
        folder="rcv1",
        fetcher="rcv1",
    ),
    DataSet(
        name="aset400",
        title="aset400: a survey of similar artists",
        source=(
            "https://github.com/alphaprime/Stabilized_Stochastic_BB (commit ad67e56e2d47, Data/Music): "
            "`triplets` are music_triplets.mat minus 1, `labels` are of music_labels.mat; the survey is of "
            "Ellis and Whitman, 2002"
        ),
        license="unknown: ask the authors",
        layout=(
            "aset400.npz with triplets (9,107 x 3, from 0: the first is nearer to the second than to the "
            "third), labels (412 x 58) and label_names"
        ),
        read_by=("listeners", "shuffled_evidence", "subgraphs", "taste_bands"),
        folder="aset400",
        files=(DataFile("aset400.npz", "bf5a25a6468cba65997dc3330f5f4054e999baf0dcb2bd950c79d00448718287"),),
    ),
    DataSet(
        name="bliss_triplets",
        title="bliss: a survey of similar songs",
        source="https://github.com/CoucouInc/langoustin-articles",
        license="unknown: ask the authors",
        layout=(
            "answer.csv: 601 answers (song1, song2, song3, picked_song is the odd one); analysis.csv: 715 "
            "songs of the FMA by 20 descriptors"
        ),
        read_by=("listeners", "shuffled_evidence", "taste_bands"),
        folder="bliss_triplets",
        files=(
            DataFile(
                "analysis.csv",
                "04fe328650b1b0124d38c05b3a245eaee222f3428aab95abb1f26b39decc1e68",
                f"{_RAW}/CoucouInc/langoustin-articles/73ab983a88b3addd1f92a42066fbc7c9ac516172/metric-learning/analysis.csv",
            ),
            DataFile(
                "answer.csv",
                "c8cbc044d28e76031a3d930d838f8dbb71111ae24f0fc3f1864ca9e3d5c65cba",
                f"{_RAW}/CoucouInc/langoustin-articles/73ab983a88b3addd1f92a42066fbc7c9ac516172/metric-learning/answer.csv",
            ),
        ),
    ),
    DataSet(
        name="yes",
        title="yes.com: radio playlists with tags of Last.fm",
        source=(
            "https://www.cs.cornell.edu/~shuochen/lme/data_page.html; the files are of "
            "https://github.com/ZJDong/item2vec (dataset)"
        ),
        license="research; ask Yes.com and Last.fm for commercial use",
        layout=(
            "yes_small and yes_big each have train.txt (ids, counts, then one playlist per line), tags.txt "
            "(one song per line) and tag_hash.txt"
        ),
        read_by=("coherence", "continuation", "playlists", "reasons"),
        folder="yes",
        files=(
            DataFile(
                "yes_big/tag_hash.txt",
                "17390cff3c2354acb7d7f18005fdaf4fb50764f042444f607c06c59b2cd5c0de",
                f"{_RAW}/ZJDong/item2vec/c7efbaf738288bce2a0b4d682d580d08a66fe747/dataset/yes_big/tag_hash.txt",
            ),
            DataFile(
                "yes_big/tags.txt",
                "cc7bd5959e9d0befc2f3821490bdc00ac17f1b7ca4669f9860ce25b5bf095122",
                f"{_RAW}/ZJDong/item2vec/c7efbaf738288bce2a0b4d682d580d08a66fe747/dataset/yes_big/tags.txt",
            ),
            DataFile(
                "yes_big/train.txt",
                "259805e3a409dc889c74159bc4e2d4b24d10d683f030bbf62191f7c844d72628",
                f"{_RAW}/ZJDong/item2vec/c7efbaf738288bce2a0b4d682d580d08a66fe747/dataset/yes_big/train.txt",
            ),
            DataFile(
                "yes_small/tag_hash.txt",
                "430aac0883577a87ccf705af6a75825365552e15d6466ed74708a7749e4d648a",
                f"{_RAW}/ZJDong/item2vec/c7efbaf738288bce2a0b4d682d580d08a66fe747/dataset/yes_small/tag_hash.txt",
            ),
            DataFile(
                "yes_small/tags.txt",
                "486740a3f36005e14b72db8021ff3c4829a4a8bf83f3a0a0c7b378f1b4848981",
                f"{_RAW}/ZJDong/item2vec/c7efbaf738288bce2a0b4d682d580d08a66fe747/dataset/yes_small/tags.txt",
            ),
            DataFile(
                "yes_small/train.txt",
                "55c0e28d201b523f50ea9db31d17cf4ffd90cf720559f0da057fcb143dfee025",
                f"{_RAW}/ZJDong/item2vec/c7efbaf738288bce2a0b4d682d580d08a66fe747/dataset/yes_small/train.txt",
            ),
        ),
    ),
    DataSet(
        name="aotm",
        title="Art of the Mix 2003: pairs of consecutive songs",
        source="https://bmcfee.github.io/data/playlists.html",
        license="unknown: ask the authors (they ask to be cited: McFee, Lanckriet, ISMIR 2011)",
        layout="66,250 lines with two track ids of the Million Song Dataset",
        read_by=("coherence", "continuation", "playlists", "reasons"),
        folder="aotm",
        files=(
            DataFile(
                "aotm-bigrams.csv.gz",
                "90729d3b635c5b1294462ab2e037ed3dae0a62d3ac7274b5e66ec99efa131617",
                f"{_RAW}/bmcfee/bmcfee.github.io/f7ad04e6d5eacd011595a1b8282451c086726e31/data/aotm-bigrams.csv.gz",
            ),
        ),
    ),
    DataSet(
        name="hetrec2011-lastfm-2k",
        title="HetRec 2011: Last.fm 2k",
        source="https://files.grouplens.org/datasets/hetrec2011/hetrec2011-lastfm-2k.zip",
        license="non-commercial use, as stated in its readme.txt",
        layout=(
            "tables separated by tabs, with a header: 92,834 plays of 1,892 listeners, 17,632 artists, "
            "186,479 given tags"
        ),
        read_by=(
            "benchmarks.relevance",
            "descriptors",
            "hashing",
            "pooling",
            "real_learning",
            "shuffled_evidence",
            "stemming",
        ),
        folder="hetrec2011-lastfm-2k",
        files=(
            DataFile("artists.dat", "f235a6597011ce29e5ccc823ab35d7103e2ee856ac771fad18448d1e299db7fd"),
            DataFile("tags.dat", "c815d7216101fd0ba9b9c59fa2a011998d2fd076e0064d281ec4153d95ae8095"),
            DataFile("user_artists.dat", "254272fa721c3935e8be286d28c051b206844307128698ab4eaa41d483379416"),
            DataFile("user_taggedartists.dat", "c4a9ffae9ab47a9f9b2f0678ab1f7e5c1db4ca818837d8cddd1f5699c5bbf048"),
        ),
    ),
    DataSet(
        name="cal500",
        title="CAL500 in Mulan's form",
        source="https://github.com/nicoladimauro/dcsn (data/multilabel/CAL500.orig.arff.gz)",
        license="unknown: ask the authors",
        layout="ARFF: 502 songs by 68 descriptors of Marsyas and 174 tags",
        read_by=("annotation", "descriptors", "real_learning"),
        folder="cal500",
        files=(
            DataFile(
                "CAL500.arff",
                "cfe6097ba5fd6e8584e54911ab9783dcab34e898446b7c9370c71d477eae56d3",
                f"{_RAW}/nicoladimauro/dcsn/dd0f7a43f5fededeeaf37905f48f918a25b8c2c7/data/multilabel/CAL500.orig.arff.gz",
            ),
        ),
    ),
    DataSet(
        name="fma_ntds",
        title="FMA: statistics of MFCC of 2,000 songs",
        source="https://github.com/mdeff/ntds_2017 and https://github.com/Hadryan/music-genre-classification-10",
        license="MIT, metadata of the FMA CC BY 4.0",
        layout=(
            "fma_features.csv: 2,000 songs by 140 numbers, with three rows of header; fma_small_tracks.csv: "
            "track_id, genre, title of 8,000 songs"
        ),
        read_by=("descriptors", "real_learning"),
        folder="fma_ntds",
        files=(
            DataFile(
                "fma_features.csv",
                "42f0fcf6e49e9c9d3f03a5c9b088a8c6fd9d7000de4b10ea305978e1ce8a7a31",
                f"{_RAW}/mdeff/ntds_2017/9c5310a20aa7bdf46dd3736376646db6300a57fb/data/fma_features.csv",
            ),
            DataFile(
                "fma_small_tracks.csv",
                "07a03ec798d86f345ef267eff210c38336164da5459105c85ac500736983691f",
                f"{_RAW}/Hadryan/music-genre-classification-10/df46ad283c2d12cfd255fe5200eec00071c3b308/data/final_tracks.csv",
            ),
        ),
    ),
    DataSet(
        name="gtzan",
        title="GTZAN: statistics of librosa's features",
        source="https://github.com/madkan/Music-Genre-Classifier",
        license="unknown: ask the authors",
        layout="CSV with a header: 1,000 songs (10 genres) by 57 numbers, filename, length and label",
        read_by=("admm", "annotation", "descriptors", "feedback", "hashing", "pooling", "real_learning"),
        folder="gtzan",
        files=(
            DataFile(
                "features_30_sec.csv",
                "cf6bbbd297e193292bb7b626bc70bf94a3703ac100f9faa4cb5bc5751a6c8066",
                f"{_RAW}/madkan/Music-Genre-Classifier/8b17247ec4c4fb265dd862bbf67ff9d545222c05/features_30_sec.csv",
            ),
        ),
    ),
    DataSet(
        name="spotify_msd",
        title="Spotify: descriptors with artists, and named playlists",
        source="https://github.com/re-ga-na/spotify-song-popularity (Team Datasets)",
        license="unknown: ask the authors",
        layout=(
            "features_15k.csv and features_5k.csv: Artist, Track and 15 descriptors; RA_19k.csv: song, "
            "artist, album, playlist"
        ),
        read_by=(
            "benchmarks.search",
            "coherence",
            "continuation",
            "descriptors",
            "hashing",
            "hashing_tables",
            "playlists",
            "pooling",
            "real_learning",
            "shuffled_evidence",
            "spill",
        ),
        folder="spotify_msd",
        files=(
            DataFile(
                "RA_19k.csv",
                "c28aade0875400aa13a42656b50cffa47350d5d4e443a9240374ded51da6cd72",
                f"{_RAW}/re-ga-na/spotify-song-popularity/85289fb5f445a6c1f7dda377cdfe0ec163ac95d3/Team%20Datasets/RA_19k.csv",
            ),
            DataFile(
                "features_15k.csv",
                "fa01c618ef62ef42fc989d09e759e6d33829b12434b261bd78ed533f5f591176",
                f"{_RAW}/re-ga-na/spotify-song-popularity/85289fb5f445a6c1f7dda377cdfe0ec163ac95d3/Team%20Datasets/features_15k.csv",
            ),
            DataFile(
                "features_5k.csv",
                "edb741553af2feef77e0dda7dd83193e72eca29012859446baf061fe4bb2ef54",
                f"{_RAW}/re-ga-na/spotify-song-popularity/85289fb5f445a6c1f7dda377cdfe0ec163ac95d3/Team%20Datasets/featues_5k_RC.csv",
            ),
        ),
    ),
    DataSet(
        name="mq2008_fold1",
        title="LETOR 4.0, MQ2008, fold 1",
        source=(
            "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/letor-4-0/ "
            "(MQ2008, Fold1); the files are of https://github.com/sanazkeshvari/Papers "
            "(SDLR/Code_Help/Test_Dataset.zip)"
        ),
        license="unknown: ask the authors (published for research)",
        layout="SVMlight lines with qid, 46 features, labels 0 to 2: train.txt, vali.txt, test.txt",
        read_by=("letor", "local_metrics"),
        folder="letor/MQ2008_Fold1",
        files=(
            DataFile(
                "test.txt",
                "ce33aa98a1cc42847008f2d4280c30a52b6c8491206893cbc97e412ccb97426b",
                f"{_RAW}/sanazkeshvari/Papers/b909dcc1432f9c88d7f8c8a9c13e2f26dee50678/SDLR/Code_Help/Test_Dataset.zip#test.txt",
            ),
            DataFile(
                "train.txt",
                "906deb7d4db46e908de7d9d8d82a9ce63a12090217a658b2524fcd860dd66bba",
                f"{_RAW}/sanazkeshvari/Papers/b909dcc1432f9c88d7f8c8a9c13e2f26dee50678/SDLR/Code_Help/Test_Dataset.zip#train.txt",
            ),
            DataFile(
                "vali.txt",
                "971ab752d71d7b019c1c512d7ba4a05b1198bdeeda57a10dd69c62f3ac47dbb9",
                f"{_RAW}/sanazkeshvari/Papers/b909dcc1432f9c88d7f8c8a9c13e2f26dee50678/SDLR/Code_Help/Test_Dataset.zip#vali.txt",
            ),
        ),
    ),
    DataSet(
        name="mq2008",
        title="LETOR 4.0, MQ2008, all five folds",
        source=(
            "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/letor-4-0/ "
            "(MQ2008.rar; unpack it into letor/MQ2008)"
        ),
        license="unknown: ask the authors (published for research)",
        layout="SVMlight lines with qid, 46 features, labels 0 to 2: Fold1/train.txt, vali.txt, test.txt, to Fold5",
        read_by=("letor",),
        folder="letor/MQ2008",
        files=tuple(
            DataFile(f"Fold{number}/{part}.txt", None) for number in range(1, 6) for part in ("test", "train", "vali")
        ),
    ),
    DataSet(
        name="lightgbm_lambdarank",
        title="LightGBM's example of ranking",
        source="https://github.com/microsoft/LightGBM (examples/lambdarank)",
        license="MIT",
        layout="SVMlight lines, 300 features, labels 0 to 4; the .query files have the sizes of the queries",
        read_by=("letor",),
        folder="letor/lightgbm_lambdarank",
        files=(
            DataFile(
                "rank.test",
                "3b1219ce117a0a36d2f76c02de7e7831c1d79af0d40f5195c03178bbe26c824b",
                f"{_RAW}/microsoft/LightGBM/master/examples/lambdarank/rank.test",
            ),
            DataFile(
                "rank.test.query",
                "36dca82ba3bf99201bac3987b00a8fbf6fe5f563e9fa6d0da90e783710a32df4",
                f"{_RAW}/microsoft/LightGBM/master/examples/lambdarank/rank.test.query",
            ),
            DataFile(
                "rank.train",
                "a0c7201c89120879c14a5059e091f441cbf2a29b8aaef363885ccb1a530448df",
                f"{_RAW}/microsoft/LightGBM/master/examples/lambdarank/rank.train",
            ),
            DataFile(
                "rank.train.query",
                "40cb5fef637229311cd30fab13cb7fb633b023e86a87ff04ec55db420143d6af",
                f"{_RAW}/microsoft/LightGBM/master/examples/lambdarank/rank.train.query",
            ),
        ),
    ),
    DataSet(
        name="bigann10k",
        title="BIGANN: the first 10,000 SIFT vectors",
        source=(
            "https://github.com/TileDB-Inc/TileDB-Vector-Search (external/test_data/arrays/bigann10k, "
            "converted to an .npz file)"
        ),
        license="MIT",
        layout="bigann10k.npz with base (10,000 x 128 bytes), query and groundtruth",
        read_by=("benchmarks.search", "hashing", "hashing_tables", "spill"),
        folder="bigann10k",
        files=(DataFile("bigann10k.npz", "9e5cbdaa6a560690b9adbf879baa84d1f4df5afdde05aa21eb10b668c57d3490"),),
    ),
    DataSet(
        name="mxm",
        title="musiXmatch: words of lyrics",
        source="http://millionsongdataset.com/musixmatch/ (mxm_dataset_test.txt, its first 8,259 songs)",
        license="research only",
        layout="one line with the 5,000 words, then one song per line",
        read_by=("stemming",),
        folder="mxm",
        files=(
            DataFile("mxm_dataset_test_part.txt", "97b779b795ddfd78be8ed2ce21ffcf3e84f4cfe282d057acdec4f515bbf95276"),
        ),
    ),
    DataSet(
        name="audio",
        title="Recordings under free licenses",
        source=(
            "https://github.com/librosa/data (audio), https://github.com/mdn/webaudio-examples "
            "(audio-basics) and Debian's package openclonk-data; the cuts and encodings are ours"
        ),
        license="CC BY 3.0, CC BY 4.0 or public domain",
        layout="originals (10 files), excerpts (8 cuts of one composer) and formats (one excerpt in 18 encodings)",
        read_by=("audible", "benchmarks.codebook", "benchmarks.extraction", "duplicates"),
        folder="audio",
        files=(
            DataFile("excerpts/kpone_cavern.ogg", "b6b5196fd31bf79d0d6442f912fe51e1d06cad290cd4d84dfe9e5bc31bb5ddcd"),
            DataFile(
                "excerpts/kpone_crushed_ice.ogg", "4bef79a73a309713f71f5daffaa5a7a7ff105a3482d7c2b84542ff1a0eaa844c"
            ),
            DataFile(
                "excerpts/kpone_island_dreams.mp3", "0d28e3e93efbd3082d1ba9f555163afab290b0ea3ba7b8995863d2e0924767c3"
            ),
            DataFile(
                "excerpts/kpone_lucid_dream.opus", "7ba2624b0607b6a0d3fc3dc9ffd33c77b187d52fc2f8f551dce12422746e8f1a"
            ),
            DataFile("excerpts/kpone_motorway.m4a", "f0f6c019814403c2ae6c35d1ba99f063318a6da1d19736b2a70bab810eaf9238"),
            DataFile("excerpts/kpone_offshore.mp3", "6c8a189a2bfe9982170819cc04482878fd0e33b79e843f21e29712df0ea6e98d"),
            DataFile(
                "excerpts/kpone_the_skylands.ogg", "413c8a47d749920cbb48164dad23cdbe61f3573f256eefa23f3ef0c09ab936c5"
            ),
            DataFile(
                "excerpts/kpone_urban_bolero.flac", "5e8df24b5259767501b8eb3166c2a9d4cd5b6c494360636198afa884f9ddcd79"
            ),
            DataFile("formats/plum_51_48k_5s.wav", "38806f46365993557189ef5ba70b73dd7f5905a8de267cd90a3c80a81f16ff3e"),
            DataFile("formats/plum_aac.m4a", "64d2a07db8bd2c98e96910d8ed7ef1f9a9c60089da0118da4354f57f8dedd46f"),
            DataFile("formats/plum_adts.aac", "cd5ab41b5108f24d869d010e89cc044e463f2fa051934434d3005888b5f7d8cd"),
            DataFile("formats/plum_alac.m4a", "001a7baa2a5dd62a2c91288a2b34c0825ffe4fd4f77c1437d14aba9353a2bec8"),
            DataFile("formats/plum_cbr128.mp3", "afbc82a0a3357ae429819bcb5ded60dacdcd3269cf9ede00950c65b7e071b204"),
            DataFile(
                "formats/plum_f32_44k_stereo_4s.wav", "b5d81930c3428689fc05edc2f8cff90a22a08d4c320d230bae28f641ab72fbf6"
            ),
            DataFile("formats/plum_flac16.flac", "3ed6a2cf137c8f8e5d3d8d9723c7c91732d3c52363f30d83712311a5007dc5e7"),
            DataFile(
                "formats/plum_flac24_96k_4s.flac", "8782ba45cf435ac7627bd9ac914a8761af8e2d97f2c92fae2c196b78d3f30002"
            ),
            DataFile(
                "formats/plum_mpeg2_22k_mono_32k.mp3",
                "34ea104b0416775a2d0f764a5294bced799531474917a067d532ea8752c3def3",
            ),
            DataFile(
                "formats/plum_mulaw_8k_mono.wav", "ce1ea9e3ac3f47eeae0b9a8a5b7f559f753410ff4b11bb290bc227f9ae73b637"
            ),
            DataFile("formats/plum_opus96.opus", "78fc5ceb22a095dc83fc9e2719cb2747b7f66b4ed420cf3e5069bb0bd61d1fe9"),
            DataFile(
                "formats/plum_s16_22k_mono.aiff", "7e535ce78620d0f5bfd8600dfe1cf64d3c4298840ba112efa98bf9f47df36bcb"
            ),
            DataFile(
                "formats/plum_s16_44k_stereo.wav", "74f92608ab70d766f8dd5f22177f03e8717911f0a73eb41f9f51dcbace2adcab"
            ),
            DataFile(
                "formats/plum_s24_44k_stereo_4s.wav", "1304805f5ff5003f22064adf6803dd05195e530ea5310f9de493c8a1269e67b8"
            ),
            DataFile(
                "formats/plum_u8_22k_mono.wav", "100e330b80c39d2ccbd393dfd1ee9e53fd0d4382f71f7aed0599a56218c0bb19"
            ),
            DataFile("formats/plum_vbr_v2.mp3", "17826260a161889c5e91a7984df607b3b6165fd1866bde9c79cc15a9ebcddd5d"),
            DataFile("formats/plum_vorbis.ogg", "df270166c2421648f0006c5621030303de9759cb64fc04ad20ca7784ad14e72a"),
            DataFile("formats/plum_wma2.wma", "a242d0d262d443e4034f393bed279ca641a3236cca0fc3251177c49ce959a16e"),
            DataFile("originals/humpback.ogg", "c3250ff526898aa5528aeb6b81a49aff58f63400ec2ddb8bcb86caf611d33144"),
            DataFile(
                "originals/hungarian_dance_5.ogg", "8e93ff0182a93168b15346c497b164cb49d2a97bf1e987a1149ea579e914532e"
            ),
            DataFile(
                "originals/lets_go_fishin.ogg", "03fb39692f4b5c285522840e5b9e6fff536a074fd7c3345dfef9bb20e62f98c7"
            ),
            DataFile(
                "originals/outfoxing_the_fox.mp3", "7f00803ccfb5be334f83e570aa58a1f7860e1fed9a5d8cec07b12d0e480c9fe7"
            ),
            DataFile("originals/robin.ogg", "a3b3ecf749befde43bdf35f839fdcb8d399a4deb5666de6f399c35ce12936baa"),
            DataFile("originals/solo_trumpet.ogg", "beb954ae2c9c16919b5ca6973d6d5196cdcb196b46a3c2a201dd8861e7e324de"),
            DataFile(
                "originals/speech_librispeech_16k.ogg",
                "6a8d2c16e56dcb27b7f5fe5aa99bfd26b4722a6dabca1968eff951b456936514",
            ),
            DataFile(
                "originals/sugar_plum_fairy.ogg", "f062221a56a227cdb7c067cf2e6ac0e250a50012f7693ca0c8e31f05f83e49b1"
            ),
            DataFile("originals/vibe_ace.ogg", "73d6443ef90a7c022f164e5aa90e56c2291585930b39b1656d0765abbc1f1779"),
            DataFile(
                "originals/vibe_ace_22k_mono.ogg", "6c23aed3dd5aa57f2b1652ecab68d15d9b82ad257f54e639eb2880ca09bc118a"
            ),
        ),
    ),
)
