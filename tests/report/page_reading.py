"""Reading a page back, as a browser or a screen reader would."""

from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input"}


class PageReader(HTMLParser):
    """Tags with their attributes, texts by tag, and every tag that was not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.crossed: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.crossed.append(tag)
            return
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.setdefault(self.open[-1], []).append(data.strip())

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every such tag."""
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def addresses(self) -> list[str]:
        """Everything from which a browser would load or to which it would go."""
        names = ("src", "href", "xlink:href", "action", "data", "poster", "srcset")
        return [attributes[n] for _, attributes in self.tags for n in names if n in attributes]
