"""A page's content as plain data, filled by whatever has something to report.

Nothing here knows of runs or sweeps, so that later readers (profiles, porting) can use the same
page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Point(NamedTuple):
    """One value of a curve; `y` is None if the value was not a finite number."""

    x: float
    y: float | None


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One line of a chart.

    Attributes:
        label: Its name in the legend.
        group: Number of its colour, dash pattern and key letter; the repeats of one combination
            share a group, and a group keeps its colour over all charts of a page.
        points: In the order of x.
        ended: Why the line ends before the others do; empty when it does not.
    """

    label: str
    group: int
    points: Sequence[Point]
    ended: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves over one axis.

    Attributes:
        title: The quantity drawn, with its unit.
        x_label: What the horizontal axis counts.
        curves: At least one, each with a point or more.
        marked: Whether every point was measured on its own (an evaluation) and gets a dot.
    """

    title: str
    x_label: str
    curves: Sequence[Curve]
    marked: bool = False


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A table of texts.

    Attributes:
        title: Its heading.
        header: One text a column.
        rows: Each as long as the header.
        numeric: Indices of the columns that are aligned to the right.
        groups: Group of each row, whose key letter is shown before it; empty for none.
        notes: Lines below it.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[int] = ()
    groups: Sequence[int] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class EmbeddedImage:
    """A picture inside the page, as `report/embedding.py` makes it of a file.

    Attributes:
        source: A `data:` address that holds the picture.
        width: Pixels on the page, at most; a narrow screen shows it smaller.
        height: Likewise.
        enlarged: Whether its pixels are shown as squares.
    """

    source: str
    width: int
    height: int
    enlarged: bool = False


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One of several pictures of the same thing.

    Attributes:
        label: What distinguishes it from those beside it, such as the step.
        caption: What it shows, if the others have a different caption.
        image: The picture.
    """

    label: str
    image: EmbeddedImage
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class PictureStrip:
    """Pictures of the same thing side by side.

    Attributes:
        title: Its heading.
        caption: What all of them show.
        pictures: At least one, in the order of reading.
    """

    title: str
    pictures: Sequence[Picture]
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A whole page.

    Attributes:
        title: Its heading.
        facts: Names with values: what, where, when.
        notices: What readers must know before the numbers, such as failed runs.
        tables: Shown above the charts.
        pictures: Shown between tables and charts.
        picture_notes: Lines below the pictures.
        charts: In their order; those without a single finite value are left out.
        details: Tables that are folded away at the end.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    notices: Sequence[str] = ()
    tables: Sequence[PageTable] = ()
    pictures: Sequence[PictureStrip] = ()
    picture_notes: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    details: Sequence[PageTable] = ()
