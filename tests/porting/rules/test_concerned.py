"""What only a name identifies counts as TensorFlow's only in files that use TensorFlow."""

from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

SETTINGS = (
    "os.environ['CUDA_VISIBLE_DEVICES'] = '1'\n"
    "os.environ['TF_XLA_FLAGS'] = '--tf_xla_auto_jit=2'\n"
    "config.gpu_options.allow_growth = True\n"
    "config.graph_options.optimizer_options.global_jit_level = 1\n"
    "config.graph_options.rewrite_options.remapping = 1\n"
)
PORTED = (
    "os.environ.setdefault(\"ASCEND_DEVICE_ID\", '1')\n"
    "config.graph_options.optimizer_options.global_jit_level = -1\n"
    "config.graph_options.rewrite_options.remapping = 2\n"
)


def ported(text: str, folder: Path) -> str:
    report = port_file(SourceText(text), "main.py", Project(folder), PortOptions())
    return report.after or text


@pytest.mark.parametrize("library", ["jax", "torch", "mxnet", "sys"])
def test_settings_next_to_other_libraries_are_kept(library: str, tmp_path: Path) -> None:
    text = f"import os\nimport {library}\n\n{SETTINGS}"
    assert ported(text, tmp_path) == text


@pytest.mark.parametrize("line", ["import tensorflow as tf", "from keras import backend"])
def test_settings_next_to_tensorflow_are_ported(line: str, tmp_path: Path) -> None:
    assert ported(f"import os\n{line}\n\n{SETTINGS}", tmp_path) == f"import os\n{line}\n\n{PORTED}"


@pytest.mark.parametrize("line", ["import model", "from model import net", "from model import *"])
def test_settings_of_a_script_importing_tensorflow_indirectly_are_ported(
    line: str, tmp_path: Path
) -> None:
    (tmp_path / "model.py").write_text("import tensorflow as tf\n", encoding="utf-8")
    assert ported(f"import os\n{line}\n\n{SETTINGS}", tmp_path) == f"import os\n{line}\n\n{PORTED}"


@pytest.mark.parametrize("line", ["from main import settings", "import main", "import os, main"])
def test_settings_of_a_module_imported_by_a_tensorflow_script_are_ported(
    line: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(f"import tensorflow as tf\n{line}\n", encoding="utf-8")
    assert ported(f"import os\n\n{SETTINGS}", tmp_path) == f"import os\n\n{PORTED}"


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\nimport domain\n",
        "import jax\nfrom main import settings\n",
        "import tensorflow as tf\n# from main import settings\n",
    ],
)
def test_settings_of_a_module_imported_only_by_others_are_kept(text: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    assert ported(f"import os\n\n{SETTINGS}", tmp_path) == f"import os\n\n{SETTINGS}"
