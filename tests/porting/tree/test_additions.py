"""What a port adds to a tree."""

from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.tree.additions import additions
from jumar.porting.tree.porting import port_tree
from jumar.porting.tree.writing import write_tree
from tests.porting.trees import write_files


def test_porting_again_keeps_the_files_added_by_the_first_port(
    tmp_path: Path,
) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (source / "fit.py").write_text(
        'import tensorflow as tf\n\nif __name__ == "__main__":\n    sess = tf.Session()\n'
    )
    options = PortOptions(devices=8, modelarts=True)
    report = port_tree(source, options)
    added = additions(report, source, options)
    assert added.entry == "fit.py"
    write_tree(report, source, out, added.files)
    again = additions(port_tree(out, options), out, options)
    assert again.entry == "fit.py"
    assert not again.kept
    assert not again.files


START = 'import tensorflow as tf\n\nif __name__ == "__main__":\n    sess = tf.Session()\n'


@pytest.mark.parametrize(
    ("scripts", "entry"),
    [
        ({"a.py": START, "main.py": START, "train.py": START}, "train.py"),
        ({"training.py": START, "interface/main.py": START}, "training.py"),
        ({"a.py": START, "b/main.py": START, "c/main.py": START, "run.py": START}, "run.py"),
        ({"a.py": START, "b.py": START}, ""),
        ({"a.py": START, "b.py": "import a\n"}, "a.py"),
        # Started by its path, a module of a package cannot import its neighbours.
        ({"net/task.py": "from .model import net\n" + START, "net/model.py": "net = 1\n"}, ""),
        ({"net/train.py": "from . import model\n" + START, "tool/main.py": START}, "tool/main.py"),
    ],
)
def test_script_that_starts_training_is_found_or_not_guessed(
    scripts: dict[str, str], entry: str, tmp_path: Path
) -> None:
    write_files(tmp_path, scripts)
    options = PortOptions()
    assert additions(port_tree(tmp_path, options), tmp_path, options).entry == entry
