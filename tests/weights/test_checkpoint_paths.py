"""Which checkpoint a path means, and what is said where it means none."""

from pathlib import Path

import numpy as np
import pytest

from jumar.ground.errors import UserError
from jumar.weights.bundle_writer import write_bundle
from jumar.weights.checkpoint_paths import (
    check_free,
    find_prefix,
    is_checkpoint,
    state_text,
    written_names,
)

MAGIC = bytes.fromhex("57fb808b247547db")


def refusal(path: Path) -> tuple[str, str, str]:
    assert not is_checkpoint(path) or path.read_bytes().endswith(MAGIC)
    with pytest.raises(UserError) as caught:
        find_prefix(path)
    return caught.value.what, caught.value.where, caught.value.todo


def test_checkpoint_file_names_the_newest_with_quotes_and_backslashes_escaped() -> None:
    assert state_text('a"b\\c').decode() == (
        'model_checkpoint_path: "a\\"b\\\\c"\nall_model_checkpoint_paths: "a\\"b\\\\c"\n'
    )


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("m-1", "m-1"),
        ('m\\"1\\\\', 'm"1\\'),
        ("m\\303\\244\\x41\\x4a", "mäAJ"),
        ("m\\1012", "mA2"),
        ("m\\n\\t\\r\\q", "m\n\t\rq"),
        ("/elsewhere/m-1", "m-1"),
        ("below/m-1", "below/m-1"),
    ],
)
def test_name_in_a_checkpoint_file_is_parsed_as_protobuf_text(
    tmp_path: Path, written: str, name: str
) -> None:
    prefix = tmp_path / name
    prefix.parent.mkdir(exist_ok=True)
    prefix.with_name(prefix.name + ".index").write_bytes(b"")
    state = f'x: 1\n  model_checkpoint_path:  "{written}"\nall_model_checkpoint_paths: "m-0"\n'
    (tmp_path / "checkpoint").write_bytes(state.encode())
    assert find_prefix(tmp_path) == prefix
    assert find_prefix(tmp_path / "checkpoint") == prefix


def test_checkpoint_file_is_read_up_to_one_mebibyte(tmp_path: Path) -> None:
    (tmp_path / "m.index").write_bytes(b"")
    line = b'model_checkpoint_path: "m"\n'
    (tmp_path / "checkpoint").write_bytes(b"#" * (2**20 - len(line) - 1) + b"\n" + line)
    assert find_prefix(tmp_path) == tmp_path / "m"
    (tmp_path / "checkpoint").write_bytes(b"#" * (2**20 - 2) + b"\n" + line)
    assert refusal(tmp_path)[0] == "contains no model_checkpoint_path"


def test_existing_path_takes_precedence_over_the_same_name_in_the_folder(tmp_path: Path) -> None:
    for place in (tmp_path / "below", tmp_path):
        place.mkdir(exist_ok=True)
        (place / "m.index").write_bytes(b"")
    (tmp_path / "checkpoint").write_bytes(b'model_checkpoint_path: "below/m"')
    assert find_prefix(tmp_path) == tmp_path / "below" / "m"
    (tmp_path / "below" / "m.index").unlink()
    assert find_prefix(tmp_path) == tmp_path / "m"


def test_folder_resolves_to_its_checkpoint_file_then_saved_model_then_only_index(
    tmp_path: Path,
) -> None:
    (tmp_path / "lone.v2.index").write_bytes(b"")
    assert find_prefix(tmp_path) == tmp_path / "lone.v2"
    (tmp_path / "variables").mkdir()
    (tmp_path / "variables" / "variables.index").write_bytes(b"")
    assert find_prefix(tmp_path) == tmp_path / "variables" / "variables"
    (tmp_path / "checkpoint").write_bytes(b'model_checkpoint_path: "lone.v2"')
    assert find_prefix(tmp_path) == tmp_path / "lone.v2"


@pytest.mark.parametrize("ending", [".index", ".meta", ".data-00000-of-00001", ".data-00012-of-1"])
def test_any_file_of_a_checkpoint_identifies_it_by_name(tmp_path: Path, ending: str) -> None:
    for name in ("m.ckpt", "other"):
        (tmp_path / f"{name}.index").write_bytes(b"")
    path = tmp_path / f"m.ckpt{ending}"
    path.write_bytes(b"")
    if ending.endswith("-1"):
        assert refusal(path)[0] == "is not a TensorFlow checkpoint"
    else:
        assert find_prefix(path) == tmp_path / "m.ckpt"


WHAT = "Give its folder, its .index file, or its prefix (before '.index')."


def test_non_checkpoints_are_reported_with_the_accepted_forms(tmp_path: Path) -> None:
    assert refusal(tmp_path) == (
        "contains no TensorFlow checkpoint",
        str(tmp_path),
        "A checkpoint consists of NAME.index and NAME.data-00000-of-00001 ...",
    )
    gone = tmp_path / "gone"
    assert refusal(gone) == ("there is no such checkpoint", str(gone), WHAT)
    assert refusal(tmp_path / "gone.meta") == (
        f"there is no '{gone}.index'",
        "",
        "A checkpoint consists of NAME.index and NAME.data-00000-of-00001 ...",
    )
    other = tmp_path / "other.bin"
    for content in (b"", b"short", MAGIC[1:], b"x" + MAGIC + b"x"):
        other.write_bytes(content)
        assert refusal(other) == ("is not a TensorFlow checkpoint", str(other), WHAT)
        assert not is_checkpoint(other)


@pytest.mark.parametrize("content", [MAGIC, b"many bytes" + MAGIC])
def test_single_file_checkpoint_is_distinguished_from_any_other_file(
    tmp_path: Path, content: bytes
) -> None:
    old = tmp_path / "old.ckpt"
    old.write_bytes(content)
    assert is_checkpoint(old)
    expected = (
        "is a checkpoint in TensorFlow's format V1, a single file, which is not supported",
        str(old),
        "In TensorFlow, restore it and save it again with "
        "tf.train.Saver(write_version=tf.train.SaverDef.V2).",
    )
    assert refusal(old) == expected
    (tmp_path / "checkpoint").write_bytes(b'model_checkpoint_path: "/moved/old.ckpt"')
    with pytest.raises(UserError) as caught:
        find_prefix(tmp_path)
    assert (caught.value.what, caught.value.where, caught.value.todo) == expected


def test_checkpoint_file_naming_a_missing_checkpoint_is_reported(tmp_path: Path) -> None:
    state = tmp_path / "checkpoint"
    state.write_bytes(b'model_checkpoint_path: "/a/b\\000c"')
    assert refusal(tmp_path) == (
        "names '/a/bc', which has no .index file",
        str(state),
        "Copy the checkpoint's files beside it, or name another checkpoint.",
    )
    state.write_bytes(b'all_model_checkpoint_paths: "m"')
    assert refusal(tmp_path) == ("contains no model_checkpoint_path", str(state), "")


def test_ambiguous_folder_names_some_of_its_checkpoints(tmp_path: Path) -> None:
    for name in "edcba":
        (tmp_path / f"{name}.index").write_bytes(b"")
    assert refusal(tmp_path) == (
        "contains 5 checkpoints and no file `checkpoint` that names the newest",
        str(tmp_path),
        "Choose one: a.index, b.index, c.index, d.index ...",
    )


def test_files_of_another_checkpoint_are_not_overwritten(tmp_path: Path) -> None:
    assert written_names("m") == ("m.data-00000-of-00001", "m.index")
    check_free(tmp_path / "none" / "m")
    (tmp_path / "m2.index").write_bytes(b"")
    (tmp_path / "m").write_bytes(b"")
    check_free(tmp_path / "m")
    write_bundle(tmp_path / "m", {"a": np.zeros(1)})
    (tmp_path / "m.meta").write_bytes(b"")
    report = {True: "m.meta", False: "m.data-00000-of-00001, m.index, m.meta, checkpoint"}
    for ours, parts in report.items():
        with pytest.raises(UserError) as caught:
            check_free(tmp_path / "m", ours=ours)
        assert str(caught.value) == (
            f"{tmp_path / 'm'}: a checkpoint already exists: {parts}\n"
            "  Nothing was written. Pass a prefix in a new folder to --out, or remove these "
            "files first."
        )
    (tmp_path / "m.meta").unlink()
    check_free(tmp_path / "m", ours=True)
    with pytest.raises(UserError, match=r"already exists: checkpoint\n"):
        check_free(tmp_path / "new")
