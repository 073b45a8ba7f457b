"""Tabs of pages, with the sections that extensions add to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from musicsim.explorer import jobs
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import sections_of
from musicsim.public import is_allowed, is_public

Draw = Callable[[Snapshot], None]


@dataclass(slots=True)
class Tab:
    """A tab of a page."""

    title: str
    place: int
    parts: list[Draw]
    needs_songs: bool = True

    def draw(self, snapshot: Snapshot) -> None:
        """Draw the parts below each other."""
        for part in self.parts:
            part(snapshot)


def is_offered(load: Callable[[], object]) -> bool:
    """Whether the current user may see a page or a section; its module is loaded only to check a visitor."""
    return not is_public() or is_allowed(load())


def tabs_of(page: str, core: Mapping[str, Tab]) -> dict[str, Tab]:
    """Tabs of a page that the current user may see, by name and in order."""
    tabs = {name: Tab(tab.title, tab.place, list(tab.parts), tab.needs_songs) for name, tab in core.items()}
    for extension, section in sections_of(page):
        if not is_offered(lambda extension=extension, section=section: extension.load(section.target)):  # type: ignore[misc]
            continue

        def part(
            snapshot: Snapshot,
            load: Callable[[str], Callable[..., None]] = extension.load,
            target: str = section.target,
        ) -> None:
            load(target)(snapshot, busy=jobs.current(snapshot.library) is not None)

        tab = tabs.setdefault(section.tab or section.title, Tab(section.title, section.place, [], section.needs_songs))
        tab.parts.append(part)
    return dict(sorted(tabs.items(), key=lambda item: item[1].place))
