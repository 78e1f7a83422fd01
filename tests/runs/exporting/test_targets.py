"""What `--to` means."""

from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.runs.exporting.export import ExportRequest, export_run
from jumar.training.run_directory import RunDirectory, write_json


def test_folder_named_like_a_format_is_refused_and_the_file_is_named(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    write_json(run.recipe, {"recipe": "alexnet-demo", "settings": {}})
    with pytest.raises(UserError, match="a folder is for Hugging Face") as caught:
        export_run(ExportRequest(run_dir=tmp_path, to=Path("onnx")))
    assert caught.value.todo.startswith("Did you mean --to NAME.onnx? Possible for it: FILE.onnx")
    with pytest.raises(UserError, match="a folder is for Hugging Face") as caught:
        export_run(ExportRequest(run_dir=tmp_path, to=Path("out")))
    assert caught.value.todo.startswith("Possible for it: FILE.onnx")
