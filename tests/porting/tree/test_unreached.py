"""Something in a tree that trains carries the NPU's options, or a blocking finding says so."""

from pathlib import Path

import pytest

from jumar.porting.edits import Finding
from jumar.porting.options import PortOptions
from jumar.porting.tree.porting import port_tree
from tests.porting.trees import SESSION, by_path, write_files

LIBRARY = (
    "import tensorflow as tf\n\n\ndef train(loss):\n"
    "    return tf.train.AdamOptimizer(0.1).minimize(loss)\n"
)
KERAS = (
    "from keras.models import *\nfrom keras.layers import *\n\n\n"
    "def unet():\n    model = Model(inputs, outputs)\n    model.compile('adam', 'mse')\n"
    "    return model\n\n\n"
    "class Net:\n    def __init__(self):\n        self.model = unet()\n\n"
    "    def build(self):\n        return self.model\n"
)


def unreached(folder: Path, files: dict[str, str], **options: object) -> list[Finding]:
    report = port_tree(write_files(folder, files), PortOptions(**options))  # type: ignore[arg-type]
    return [item for _, item in report.findings_by_severity() if item.rule == "npu-options"]


def test_training_without_any_session_is_a_single_blocking_finding_at_the_top(
    tmp_path: Path,
) -> None:
    blocking = "import tensorflow as tf\ntf.enable_eager_execution()\n"
    files = {"a.py": blocking, "lib.py": LIBRARY, "other.py": LIBRARY}
    report = port_tree(write_files(tmp_path, files), PortOptions())
    (file, first), *rest = report.findings_by_severity()
    assert (file.path, first.rule, first.severity) == ("lib.py", "npu-options", "blocking")
    assert str(first.place) == "5:12"
    assert first.reason.zh
    assert "npu-options" not in {finding.rule for _, finding in rest}


@pytest.mark.parametrize(
    "files",
    [
        {"lib.py": LIBRARY, "main.py": SESSION},
        {"lib.py": LIBRARY.replace("minimize", "get_slot")},
        {"a.py": "from sklearn import svm\nsvm.SVC().fit(x, y)\n", "b.py": "import keras\n"},
        {"a.py": "from scipy import optimize\noptimize.minimize(f, x)\n"},
        {"a.py": "import tensorflow as tf\n# opt.minimize(loss)\n"},
    ],
)
def test_tree_with_configured_sessions_or_without_training_has_no_finding(
    tmp_path: Path, files: dict[str, str]
) -> None:
    assert not unreached(tmp_path, files)


RUNS_LIBRARY = (
    "from lib import train\nfrom elsewhere import session\n\n"
    "if __name__ == '__main__':\n    session.run(train(3))\n"
)


def test_script_without_options_next_to_a_configured_one_is_a_finding(tmp_path: Path) -> None:
    files = {"lib.py": LIBRARY, "missed.py": RUNS_LIBRARY, "ported.py": SESSION}
    (finding,) = unreached(tmp_path, files)
    assert str(finding.place) == "5:12"
    assert "started on its own" in finding.reason.en
    assert finding.reason.zh


@pytest.mark.parametrize(
    "files",
    [
        {"lib.py": LIBRARY},
        {"lib.py": LIBRARY, "main.py": f"from lib import train\n{SESSION}"},
        {"lib.py": LIBRARY, "main.py": f"import lib\n{SESSION}", "more.py": SESSION},
        {"a/__init__.py": "", "a/lib.py": LIBRARY, "main.py": f"from a import lib\n{SESSION}"},
    ],
)
def test_script_that_only_builds_a_train_op_is_no_finding(
    tmp_path: Path, files: dict[str, str]
) -> None:
    assert not unreached(tmp_path, files)


def test_folder_of_the_tree_that_is_not_a_script_is_not_an_import(tmp_path: Path) -> None:
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "notes.txt").write_text("nothing")
    assert not unreached(tmp_path, {"main.py": f"import keras\n{LIBRARY}{SESSION}"})


def test_keras_model_of_unknown_origin_is_reported(tmp_path: Path) -> None:
    files = {"net.py": "import keras\nmakers = {'a': keras.Model}\n"}
    main = "from net import makers\nmodel = makers['a']()\nmodel.fit(x, y)\n"
    assert "epochs" not in main
    assert len(unreached(tmp_path, {**files, "main.py": main})) == 1


@pytest.mark.parametrize(
    "main",
    [
        "from net import *\n\nmodel = unet()\nmodel.fit_generator(g)\n",
        "from net import Net\n\nmodel = Net().build()\nmodel.fit(x, y)\n",
        "import net\n\nthing = net.Net()\nthing.model.fit(x, y)\n",
        "from net import Net\n\n\nclass Mine(Net):\n    def run(self):\n"
        "        self.build().fit(x, y)\n\n\nMine().run()\nNet().model.predict(x)\n",
    ],
)
def test_keras_models_of_another_module_get_a_session_and_callbacks(
    tmp_path: Path, main: str
) -> None:
    report = port_tree(
        write_files(tmp_path, {"net.py": KERAS, "main.py": main}), PortOptions(devices=8)
    )
    after = by_path(report)["main.py"].after
    assert "npu_keras_session = set_keras_session_npu_config()" in after
    assert "keras.backend.set_session(npu_keras_session)" in after
    assert "callbacks=npu_callbacks_append(callbacks_list=[])" in after
    assert "npu-options" not in report.findings_by_rule()


def test_ported_tree_of_keras_models_does_not_change_again(tmp_path: Path) -> None:
    main = "from net import *\n\nmodel = unet()\nmodel.fit_generator(g)\n"
    options = PortOptions(devices=8)
    report = port_tree(write_files(tmp_path, {"net.py": KERAS, "main.py": main}), options)
    write_files(tmp_path, {file.path: file.after for file in report.files})
    assert not port_tree(tmp_path, options).edits_by_rule()


@pytest.mark.parametrize(
    "main",
    [
        "from net import makers\n\nmodel = makers['a']()\nmodel.fit(x, y, epochs=3)\n",
        "from net import pair\n\nmodel, base = pair()\nmodel.fit_generator(g)\n",
        "from net import run\n\n\ndef main():\n    run()\n\n\n"
        "if __name__ == '__main__':\n    main()\n",
        "from keras.models import load_model\nfrom net import score\n\n"
        "print(score(load_model('a.h5')))\n",
    ],
)
def test_unmistakable_keras_models_get_a_session_for_any_origin(tmp_path: Path, main: str) -> None:
    net = (
        "import keras\n\nmakers = {'a': keras.Model}\n\n\n"
        "def pair():\n    return keras.Model(1, 2), keras.Model(1, 3)\n\n\n"
        "def train(one):\n    one.fit(x, y, epochs=2)\n\n\n"
        "def run():\n    train(makers['a']())\n\n\n"
        "def score(one):\n    return one.predict(x)\n"
    )
    folder = write_files(tmp_path, {"net.py": net, "main.py": main})
    report = by_path(port_tree(folder, PortOptions()))
    assert "npu_keras_session = set_keras_session_npu_config()" in report["main.py"].after


@pytest.mark.parametrize(
    "main",
    [
        "import keras\nfrom sklearn import svm\n\nm = pick(svm)\nm.fit(x, y, epochs=2)\n",
        "import torch\nimport keras\n\nm = pick()\nm.fit_generator(g)\n",
        "m = pick()\nm.fit(x, y, epochs=2)\n",
        "import keras\n\nm = pick()\nm.fit(x)\n",
        "import keras\n\n\nclass Net:\n    def fit(self, epochs):\n        pass\n\n\n"
        "Net().fit(epochs=2)\n",
    ],
)
def test_models_that_may_be_of_another_library_get_no_session(tmp_path: Path, main: str) -> None:
    report = by_path(port_tree(write_files(tmp_path, {"main.py": main}), PortOptions()))
    assert "set_keras_session" not in report["main.py"].after
