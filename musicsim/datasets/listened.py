"""Records of large sets of real music with plays, listens or tags.

Their checksums are not recorded, because we had no complete copy. The layouts are those that the authors' own programs
and public readers expect.
"""

from musicsim.datasets.records import DataFile, DataSet

__all__ = ["LISTENED"]

_ONION = "https://zenodo.org/api/records/6609677/files"
_FMA = "https://os.unil.cloud.switch.ch/fma/fma_metadata.zip"

LISTENED = (
    DataSet(
        name="music4all_onion",
        title="Music4All-Onion: plays and features of 109,269 songs",
        source=(
            "https://doi.org/10.5281/zenodo.6609677; id_information.csv is of Music4All, from its authors on request "
            "(https://sites.google.com/view/contact4music4all)"
        ),
        license="CC BY 4.0; id_information.csv as agreed with the authors of Music4All",
        layout=(
            "tables separated by tabs, with a header. id_information.csv: id, artist, song, album_name; "
            "userid_trackid_count: user_id, track_id, count (50 million lines); features: id first, then numbers"
        ),
        read_by=("real_listeners",),
        folder="music4all_onion",
        files=(
            DataFile("id_information.csv"),
            DataFile("userid_trackid_count.tsv.bz2", None, f"{_ONION}/userid_trackid_count.tsv.bz2/content"),
            DataFile("id_mfcc_bow.tsv.bz2", None, f"{_ONION}/id_mfcc_bow.tsv.bz2/content"),
            DataFile("id_ivec256.tsv.bz2", None, f"{_ONION}/id_ivec256.tsv.bz2/content"),
        ),
    ),
    DataSet(
        name="fma_metadata",
        title="FMA: metadata and features of 106,574 songs",
        source="https://github.com/mdeff/fma (fma_metadata.zip)",
        license="CC BY 4.0",
        layout=(
            "tracks.csv: header of two rows, then a row with the name of the index; features.csv: header of three "
            "rows, then the same, 518 statistics of librosa's features"
        ),
        read_by=("real_listeners",),
        folder="fma_metadata",
        files=(
            DataFile("tracks.csv", None, f"{_FMA}#fma_metadata/tracks.csv"),
            DataFile("features.csv", None, f"{_FMA}#fma_metadata/features.csv"),
        ),
    ),
    DataSet(
        name="mtg_jamendo",
        title="MTG-Jamendo: tags of 55,609 songs",
        source="https://github.com/MTG/mtg-jamendo-dataset (the file that data/autotagging.tsv links to)",
        license="metadata CC BY-NC-SA 4.0; audio: licenses of Creative Commons, stated per song",
        layout=(
            "lines separated by tabs, with a header: TRACK_ID, ARTIST_ID, ALBUM_ID, PATH, DURATION, TAGS; each tag of "
            "a song is a field of its own, such as genre---rock"
        ),
        read_by=("real_listeners",),
        folder="mtg_jamendo",
        files=(
            DataFile(
                "autotagging.tsv",
                None,
                "https://raw.githubusercontent.com/MTG/mtg-jamendo-dataset/1b4fa8c32e076c73b5175c1703ae805b4109309d/data/"
                "raw_30s_cleantags_50artists.tsv",
            ),
        ),
    ),
)
