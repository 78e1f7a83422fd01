"""What is released: built, installed into an empty environment, and run there."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT, copy_checkout

pytestmark = pytest.mark.slow


def call(command: Sequence[str | Path], cwd: Path) -> str:
    """Run a command that sees nothing of the checkout and no package index."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment |= {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    done = subprocess.run(
        command, check=False, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist, and the wheel built from it, by their kind."""
    folder = tmp_path_factory.mktemp("release")
    source = copy_checkout(folder / "source")
    call([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder], source)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(
    released: dict[str, Path],
) -> None:
    with zipfile.ZipFile(released["wheel"]) as wheel:
        packed = set(wheel.namelist())
    package = CHECKOUT / "src"
    ours = {
        path.relative_to(package).as_posix()
        for path in (package / "jumar").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    metadata = {name for name in packed if name.split("/")[0].endswith(".dist-info")}
    assert packed - metadata == ours
    assert "jumar/py.typed" in packed
    assert any(name.endswith("/licenses/LICENSE") for name in metadata)


def test_the_sdist_is_a_checkout_that_can_be_tested(released: dict[str, Path]) -> None:
    with tarfile.open(released["sdist"]) as sdist:
        packed = {member.name.partition("/")[2] for member in sdist.getmembers()}
    needed = {
        "Makefile",
        ".gitignore",
        "LICENSE",
        "pyproject.toml",
        "README.md",
        "scripts/install.py",
    }
    assert needed <= packed
    assert {"docs/architecture.md", "tests/conftest.py", "src/jumar/py.typed"} <= packed


def test_no_reference_data_is_released(released: dict[str, Path], shared: Path) -> None:
    data = {
        (path.name, path.stat().st_size)
        for path in (shared / "data").rglob("*")
        if path.is_file() and path.stat().st_size
    }
    with tarfile.open(released["sdist"]) as sdist:
        packed = {(Path(member.name).name, member.size) for member in sdist.getmembers()}
    assert not packed & data


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_installs_into_an_empty_environment_and_runs(
    kind: str, released: dict[str, Path], tmp_path: Path
) -> None:
    call([sys.executable, "-m", "venv", "--without-pip", "empty"], tmp_path)
    python = tmp_path / "empty" / "bin" / "python"
    (site,) = (tmp_path / "empty" / "lib").glob("python*/site-packages")
    # The dependencies, and pip, come from the environment of the tests: without network, and in
    # seconds. Its own .pth files are not followed, so the checkout stays out of sight.
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (site / "dependencies.pth").write_text("\n".join(packages) + "\n", encoding="utf-8")
    call(
        [python, "-m", "pip", "install", "--no-deps", "--no-build-isolation", released[kind]],
        tmp_path,
    )

    place = call([python, "-c", "import jumar; print(jumar.__file__)"], tmp_path)
    assert Path(place.strip()).is_relative_to(site)
    assert "train" in call([python, "-m", "jumar", "--help"], tmp_path)
    assert "alexnet" in call([python.with_name("jumar"), "recipes", "list"], tmp_path)
    train = ["train", "alexnet-demo", "--set", "training.duration=2it", "--run-dir", "run"]
    call([python, "-m", "jumar", *train], tmp_path)
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert results
