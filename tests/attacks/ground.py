"""A place where a command is attacked, and what must be true of it afterwards."""

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from jumar.ground.text import FORMULA, NUMBER
from tests.attacks.hostile import HANDLER
from tests.cli.in_process import Done, unchecked_end


@dataclass(frozen=True, kw_only=True)
class Ground:
    """The folders of an attack.

    Attributes:
        work: The working folder: what was sent by others lies in it, and targets are written in it.
        outside: A folder of the user's that no command has to do with.
        runs: Runs that nothing has harmed, to be copied.
    """

    work: Path
    outside: Path
    runs: Path

    @property
    def canary(self) -> Path:
        """What is there if anything that was sent has been executed."""
        return self.outside / "ran"

    @property
    def secret(self) -> Path:
        """A file of the user's."""
        return self.outside / "secret.txt"

    def write(self, name: str, content: bytes | str) -> Path:
        """A file in the working folder."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        )
        return path


def attacked(ground: Ground, *arguments: str | Path) -> Done:
    """Run a command and hold it to what no input may change.

    Its exit code is that of a command that worked, found something or refused its input; it raises
    nothing; outside the working folder everything is as it was; the terminal shows no character
    that steers it; pages hold no script of others, and tables no formula.
    """
    before = _state(ground)
    old = set(ground.work.rglob("*"))
    done = unchecked_end(*arguments, cwd=ground.work)
    assert done.code in (0, 1, 2), done
    assert not ground.canary.exists(), "something that was sent has been executed"
    assert _state(ground) == before, "something outside the working folder has changed"
    for text in (done.out, done.err):
        assert "Traceback" not in text
        assert not steering(text), f"the terminal is steered by {steering(text)}\n{text[-1000:]}"
    for path in set(ground.work.rglob("*")) - old:
        if path.is_file() and not path.is_symlink():
            check_written(path)
    return done


def _state(ground: Ground) -> dict[str, str]:
    """All that is beside the working folder."""
    state: dict[str, str] = {}
    for path in sorted(ground.work.parent.rglob("*")):
        if path == ground.work or ground.work in path.parents:
            continue
        name = str(path.relative_to(ground.work.parent))
        if path.is_symlink():
            state[name] = str(path.readlink())
        elif path.is_file():
            state[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            state[name] = "folder"
    return state


def steering(text: str) -> list[str]:
    """The characters that a terminal would obey instead of showing them."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [
        ascii(letter) for letter in set(text) - set("\n\t") if unicodedata.category(letter) in kinds
    ]


def check_written(path: Path) -> None:
    """Hold a page to having no script of others, and a table to having no formula."""
    if path.suffix in (".html", ".svg"):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        assert not page.harm, f"{path}: {page.harm}"
    if path.suffix == ".csv":
        text = path.read_text(encoding="utf-8")
        cells = [cell.strip('"') for line in text.splitlines() for cell in line.split(",")]
        formulas = [c for c in cells if re.search(FORMULA, c) and not re.search(NUMBER, c)]
        assert not [cell for cell in formulas if "cmd|" in cell], f"{path}: {formulas}"
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
        outside_code = re.sub(r"(`+)[^`].*?\1", "", text, flags=re.DOTALL)
        assert not re.search(r"(?<!\\)<(img|script|b) ?", outside_code)


class Page(HTMLParser):
    """What of a page would run the canary, as a browser reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.harm: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element's handlers and addresses."""
        self._inside = tag
        for name, value in attrs:
            runs = name.startswith("on") or (value or "").strip().startswith("javascript:")
            if runs and HANDLER in (value or ""):
                self.harm.append(f"<{tag} {name}={value}>")

    def handle_endtag(self, tag: str) -> None:
        """Outside of it."""
        self._inside = ""

    def handle_data(self, data: str) -> None:
        """A script that begins with the canary is its own."""
        if self._inside == "script" and data.lstrip().startswith(HANDLER):
            self.harm.append(data)
