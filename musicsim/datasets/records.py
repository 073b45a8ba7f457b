"""Records of data sets: source, license, files with checksums, and layout."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["DataFile", "DataSet", "Fetcher"]

Fetcher = Literal["", "bundled", "openml", "covtype", "rcv1"]
"""scikit-learn's way to the data: its own copy, ``fetch_openml``, ``fetch_covtype`` or ``fetch_rcv1``, or ""."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a data set.

    Attributes
    ----------
    path : str
        Relative to the folder of the data set. On the disk, the file can also have the suffix ``.xz``.
    sha256 : str or None
        Of the content, without ``.xz``; None is "not recorded".
    address : str
        Address to fetch the file from; "" if there is no such address. After "#" comes the name in an archive. A ".gz"
        that `path` does not have is removed.

    Examples
    --------
    >>> from musicsim.datasets import get_dataset
    >>> get_dataset("balance").files[0].path
    'balance-scale.data'
    """

    path: str
    sha256: str | None = None
    address: str = ""


@dataclass(frozen=True, slots=True)
class DataSet:
    """A public data set.

    Attributes
    ----------
    name : str
    title : str
    source : str
        Address of a page or repository, and the way from there to the files.
    license : str
        As stated by the source, or "unknown: ask the authors".
    layout : str
        Rows, columns and format.
    read_by : tuple of str
        Experiments and benchmarks that read it.
    folder : str
        Below the folder of shared data and below the cache.
    files : tuple of DataFile
    fetcher : str
        One of :data:`Fetcher`.
    openml_id : int
        Number of the data set at OpenML, or 0.
    content_sha256 : str
        Of rows and classes as :func:`musicsim.datasets.load` returns them, where the order of the rows matters and the
        source does not promise it. "" is not checked.
    n_checked : int
        Number of last rows that it covers; 0 is all.

    Examples
    --------
    >>> from musicsim.datasets import get_dataset
    >>> get_dataset("mnist").title
    'MNIST'
    """

    name: str
    title: str
    source: str
    license: str
    layout: str
    read_by: tuple[str, ...] = ()
    folder: str = ""
    files: tuple[DataFile, ...] = ()
    fetcher: Fetcher = ""
    openml_id: int = 0
    content_sha256: str = ""
    n_checked: int = 0

    @property
    def can_be_fetched(self) -> bool:
        """Whether :func:`musicsim.datasets.fetch` gets it without a mirror."""
        return bool(self.fetcher) or (bool(self.files) and all(file.address for file in self.files))

    @property
    def how_to_get(self) -> str:
        """A sentence that says how to get the data."""
        if self.fetcher == "bundled":
            return "It comes with scikit-learn."
        if self.can_be_fetched:
            return f'Run `python -c "import musicsim as ms; ms.datasets.fetch({self.name!r})"`.'
        return (
            f"Get it from {self.source}, put {_names(self.files)} into FOLDER/{self.folder}, and set "
            "MUSICSIM_SHARED_DATA to FOLDER."
        )


def _names(files: tuple[DataFile, ...]) -> str:
    names = [file.path for file in files]
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} other files"
