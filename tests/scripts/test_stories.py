"""`make stories`: every command of a story runs, and the page says what became of each."""

import base64
from pathlib import Path

import pytest

from scripts import stories
from tests.checkout import CHECKOUT

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
STORY = """# A story

## First

<!-- file: draw.py -->
```python
import pathlib
import sys

pathlib.Path("dot.png").write_bytes(pathlib.Path(sys.argv[1]).read_bytes())
print("drawn <here>")
```

<!-- picture: dot.png -->
<!-- small: --nothing -->
```console
$ python draw.py ../shared/dot.png
```

## Second

<!-- picture: none.png -->
```console
$ python -c 'print("no picture")'
```

<!-- run: exit 3 -->
```console
$ python -c 'raise SystemExit(4)'
```

<!-- run: with JUMAR_NOT_THERE -->
```console
$ python -c 'print(1)'
```

```console
$ no-such-program now
$ python -c 'print("to the end")'
```
"""


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one story, in a path with a space, beside its data."""
    checkout = tmp_path / "a folder" / "jumar"
    (checkout / "docs" / "stories").mkdir(parents=True)
    (checkout / "docs" / "stories" / "dots.md").write_text(STORY, encoding="utf-8")
    (checkout.parent / "shared").mkdir()
    (checkout.parent / "shared" / "dot.png").write_bytes(PICTURE)
    monkeypatch.setattr(stories, "CHECKOUT", checkout)
    monkeypatch.setattr(stories, "NAMES", ("dots",))
    monkeypatch.setattr("sys.argv", ["stories"])
    monkeypatch.delenv("JUMAR_NOT_THERE", raising=False)
    return checkout


def test_story_continues_after_a_failure_and_reports_it_at_the_end(
    story: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stories.main() == 1
    printed = capsys.readouterr().out
    line = STORY.splitlines().index("""$ python -c 'print("no picture")'""") + 1
    assert f"FAILED: it left no none.png  docs/stories/dots.md:{line}" in printed
    assert "FAILED: exit code 4 instead of 3" in printed
    assert "left out: JUMAR_NOT_THERE is not set" in printed
    assert "FAILED: no program no-such-program" in printed
    assert "6 commands, 3 failed" in printed.splitlines()[-1]
    page = (story / "runs" / "stories" / "index.html").read_text(encoding="utf-8")
    assert "drawn &lt;here&gt;" in page
    assert base64.b64encode(PICTURE).decode() in page
    assert page.index("<h2>First</h2>") < page.index("drawn") < page.index("<h2>Second</h2>")
    assert "to the end" in page


def test_second_call_starts_with_an_empty_folder(story: Path) -> None:
    left = story / "runs" / "stories" / "dots" / "jumar" / "left.txt"
    left.parent.mkdir(parents=True)
    left.write_text("of an earlier call", encoding="utf-8")
    stories.main()
    assert not left.exists()


def test_stories_that_cannot_start_are_refused(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["stories", "novel"])
    with pytest.raises(SystemExit) as unknown:
        stories.main()
    monkeypatch.setattr("sys.argv", ["stories"])
    (story.parent / "shared").rename(story.parent / "elsewhere")
    with pytest.raises(SystemExit) as missing:
        stories.main()
    assert (unknown.value.code, missing.value.code) == (2, 2)


def test_every_story_has_a_page_and_every_page_is_a_story() -> None:
    pages = {path.stem for path in (CHECKOUT / "docs" / "stories").glob("*.md")}
    assert {name.partition(".")[0] for name in pages} == set(stories.NAMES)
