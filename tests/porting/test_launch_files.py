"""Which files a port adds."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.launching.ported import OUTPUT_FOLDERS
from jumar.porting.launch_files import added_files
from jumar.porting.options import PortOptions


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (PortOptions(), {"run_npu.sh"}),
        (PortOptions(minimal=True), set()),
        (PortOptions(devices=8), {"run_npu.sh", "make_rank_table.py"}),
        (PortOptions(devices=8, minimal=True), {"run_npu.sh", "make_rank_table.py"}),
        (PortOptions(source="torch"), set()),
        (PortOptions(source="torch", devices=8), {"run_npu.sh"}),
        (PortOptions(minimal=True, modelarts=True), {"modelarts_run.py"}),
    ],
)
def test_expected_launch_files_are_added(options, expected):
    assert added_files(options, entry="train.py").keys() == expected


@pytest.mark.parametrize("source", ["tensorflow", "torch"])
def test_no_placeholder_is_left_and_python_files_are_of_python_37(source):
    options = PortOptions(source=source, devices=2, modelarts=True)
    for path, text in added_files(options, entry="").items():
        assert "@" not in text.replace('"$@"', "").replace("[@]", "")
        assert text.isascii()
        if path.endswith(".py"):
            ast.parse(text, feature_version=(3, 7))


@settings(max_examples=40)
@given(st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"])))
def test_any_script_name_is_passed_intact(name):
    if name.startswith("/") or ".." in name.split("/"):
        return
    added = added_files(PortOptions(modelarts=True), entry=name)
    tree = ast.parse(added["modelarts_run.py"])
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "ENTRY"
    }
    assert values == {"ENTRY": name}


def test_modelarts_copies_back_output_of_ported_scripts():
    text = added_files(PortOptions(modelarts=True), entry="train.py")["modelarts_run.py"]
    assert all(f'"{folder}"' in text for folder in OUTPUT_FOLDERS)


@pytest.mark.parametrize("entry", ["/etc/passwd", "../train.py", "a/../../b.py", "a\nrm.py"])
def test_scripts_outside_the_tree_are_refused(entry):
    with pytest.raises(UserError):
        added_files(PortOptions(), entry=entry)
