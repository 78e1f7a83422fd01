"""A page's content as plain data, filled in by the features that report.

It does not depend on runs or sweeps, so that other features can use the same page.
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
        group: Selects its colour, dash pattern and key letter; the repeats of one combination
            share a group, and a group has the same colour in all charts of a page.
        points: Its points, in x order.
        ended: The reason why the line ends before the others; empty if it does not.
    """

    label: str
    group: int
    points: Sequence[Point]
    ended: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Curves over a common horizontal axis.

    Attributes:
        title: The quantity drawn, with its unit.
        x_label: The quantity on the horizontal axis.
        curves: At least one, each with at least one point.
        marked: Whether every point was measured individually (an evaluation) and gets a dot.
        logarithmic_x: Whether the horizontal axis is logarithmic; all
            positions must then be above 0, and the axis does not start at 0.
    """

    title: str
    x_label: str
    curves: Sequence[Curve]
    marked: bool = False
    logarithmic_x: bool = False


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A table of texts.

    Attributes:
        title: Its heading.
        header: One text per column.
        rows: Each as long as the header.
        numeric: Indices of the right-aligned columns.
        groups: Group of each row, whose key letter precedes the row; empty for none.
        notes: Lines below it.
        searchable: Whether its rows can be filtered and sorted on the page.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[int] = ()
    groups: Sequence[int] = ()
    notes: Sequence[str] = ()
    searchable: bool = False


@dataclass(frozen=True, kw_only=True)
class EmbeddedImage:
    """An image embedded in the page, as created by `report/embedding.py`.

    Attributes:
        source: A `data:` URL that contains the image.
        width: Maximum width on the page in pixels; a narrow screen shows it smaller.
        height: Maximum height.
        enlarged: Whether its pixels are shown as squares.
    """

    source: str
    width: int
    height: int
    enlarged: bool = False


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One of several images of the same thing.

    Attributes:
        label: What distinguishes it from its neighbours, such as the step.
        caption: What it shows, if the others have a different caption.
        image: The image.
    """

    label: str
    image: EmbeddedImage
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class PictureStrip:
    """Images of the same thing side by side.

    Attributes:
        title: Its heading.
        caption: What all of them show.
        pictures: At least one, in reading order.
    """

    title: str
    pictures: Sequence[Picture]
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """The content of a page.

    Attributes:
        title: Its heading.
        facts: Names with values, such as device and versions.
        notices: Warnings that readers should see first, such as failed runs.
        tables: Shown above the charts.
        pictures: Shown below the charts.
        picture_notes: Lines below the images.
        charts: In display order; those without a finite value are omitted.
        later_tables: Shown below charts and images.
        commands: Terminal commands that reproduce the results.
        command_notes: Notes on the commands.
        details: Collapsed tables at the end.
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    notices: Sequence[str] = ()
    tables: Sequence[PageTable] = ()
    pictures: Sequence[PictureStrip] = ()
    picture_notes: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    later_tables: Sequence[PageTable] = ()
    commands: Sequence[str] = ()
    command_notes: Sequence[str] = ()
    details: Sequence[PageTable] = ()
