"""What a port adds to a tree."""

from pathlib import Path

from jumar.porting.options import PortOptions
from jumar.porting.tree.additions import additions
from jumar.porting.tree.porting import port_tree
from jumar.porting.tree.writing import write_tree


def test_porting_a_ported_tree_again_keeps_the_files_that_the_first_port_added(
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
