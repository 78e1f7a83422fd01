"""What is released: built, installed into an empty environment, and run there."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from email import message_from_bytes
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jumar.cli.extras import DETECTION_MODULES, ONNX_MODULES, TRAIN_MODULES
from tests.checkout import CHECKOUT, copy_checkout
from tests.cli.test_profile import HEADER, row

pytestmark = pytest.mark.slow


def run(command: Sequence[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that sees nothing of the checkout and no package index."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment |= {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    return subprocess.run(
        command, check=False, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )


def call(command: Sequence[str | Path], cwd: Path) -> str:
    """Run a command that must succeed, and give its output."""
    done = run(command, cwd)
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


def test_wheel_has_exactly_the_package_files(
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


def test_sdist_is_a_testable_checkout(released: dict[str, Path]) -> None:
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
    by_size: dict[int, list[Path]] = {}
    for path in (shared / "data").rglob("*"):
        if path.is_file() and path.stat().st_size:
            by_size.setdefault(path.stat().st_size, []).append(path)
    with tarfile.open(released["sdist"]) as sdist:
        copies = [
            (member.name, path.name)
            for member in sdist.getmembers()
            for path in by_size.get(member.size, ())
            if (packed := sdist.extractfile(member)) and packed.read() == path.read_bytes()
        ]
    assert not copies


def requirements(wheel: Path) -> list[Requirement]:
    """What the wheel asks for, with and without extras."""
    with zipfile.ZipFile(wheel) as packed:
        (metadata,) = (name for name in packed.namelist() if name.endswith("/METADATA"))
        lines = message_from_bytes(packed.read(metadata)).get_all("Requires-Dist") or []
    return [Requirement(line) for line in lines]


def needed(wheel: Path, *extras: str) -> dict[str, Distribution]:
    """Every distribution that pip would install beside the wheel, as it lies here."""
    closure: dict[str, Distribution] = {}
    waiting = [(requirement, ("", *extras)) for requirement in requirements(wheel)]
    while waiting:
        wanted, asked = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in closure or (
            wanted.marker and not any(wanted.marker.evaluate({"extra": each}) for each in asked)
        ):
            continue
        closure[name] = distribution(name)
        inner = ("", *wanted.extras)
        waiting += [(Requirement(text), inner) for text in closure[name].requires or ()]
    return closure


def files_of(installed: Distribution) -> list[Path]:
    """What a wheel brought into site-packages."""
    files = [Path(str(file)) for file in installed.files or ()]
    inside = [file for file in files if file.parts[0] != ".." and file.suffix != ".pyc"]
    if not inside:
        pytest.skip(f"{installed.name} has no list of its files here")
    return inside


def bare_environment(folder: Path, wheel: Path, *extras: str) -> Path:
    """A Python that has what `pip install jumar[extras]` brings, and nothing else.

    Without network, and in seconds: the dependencies are links to those of the tests.
    """
    call([sys.executable, "-m", "venv", "--without-pip", "bare"], folder)
    python = folder / "bare" / "bin" / "python"
    (site,) = (folder / "bare" / "lib").glob("python*/site-packages")
    for installed in needed(wheel, *extras).values():
        for top in {file.parts[0] for file in files_of(installed)}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(installed.locate_file(top))))
    call([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", wheel], folder)
    place = call([python, "-c", "import jumar; print(jumar.__file__)"], folder)
    assert Path(place.strip()).is_relative_to(site)
    return python


@pytest.fixture(scope="module")
def bare(released: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of `pip install jumar`."""
    folder = tmp_path_factory.mktemp("base")
    return bare_environment(folder, released["wheel"]).with_name("jumar")


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One step in float32, and the same in float16."""
    folder = tmp_path_factory.mktemp("profiles")
    before, after = folder / "before.csv", folder / "after.csv"
    text = HEADER + row(0, "MatMul", "AI_CORE", "10.000") + row(10, "Add", "AI_CORE", "5.000")
    before.write_text(text, encoding="utf-8")
    after.write_text(text.replace("FLOAT", "FLOAT16"), encoding="utf-8")
    return before, after


def test_sdist_builds_the_released_wheel(released: dict[str, Path], tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    call([*pip, "--wheel-dir", "made", released["sdist"]], tmp_path)
    (wheel,) = (tmp_path / "made").glob("*.whl")
    with zipfile.ZipFile(wheel) as made, zipfile.ZipFile(released["wheel"]) as given:
        sums = [{each.filename: each.CRC for each in file.infolist()} for file in (made, given)]
    assert sums[0] == sums[1]


def test_extra_train_suffices_for_training(released: dict[str, Path], tmp_path: Path) -> None:
    python = bare_environment(tmp_path, released["wheel"], "train")
    assert "train" in call([python, "-m", "jumar", "--help"], tmp_path)
    assert "alexnet" in call([python.with_name("jumar"), "recipes", "list"], tmp_path)
    train = ["train", "alexnet-demo", "--set", "training.duration=2it", "--run-dir", "run"]
    call([python, "-m", "jumar", *train], tmp_path)
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    assert results


def test_without_extras_scripts_are_ported_and_linted(bare: Path, tmp_path: Path) -> None:
    script = CHECKOUT / "tests/porting/rules/examples/xla/1-graph-options-on-1/before.py"
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "train.py").write_bytes(script.read_bytes())
    assert "train" in call([bare, "--help"], tmp_path)
    call([bare, "port", "scripts", "--to", "ported", "--report", "port.html"], tmp_path)
    assert (tmp_path / "ported" / "run_npu.sh").exists()
    assert "Scripts: 1." in call([bare, "port", "lint", "ported"], tmp_path)
    asked = [bare, "port", "check", "ported", "--python", "none", "--", "train.py"]
    done = run(asked, tmp_path)
    assert (done.returncode, "jumar[train]" in done.stderr) == (2, False), done.stderr


def test_without_extras_profiles_are_shown_compared_and_checked_against_limits(
    bare: Path, profiles: tuple[Path, Path], tmp_path: Path
) -> None:
    before, after = profiles
    shown = call([bare, "profile", "show", before, "--view", "all", "--page", "p.html"], tmp_path)
    assert "MatMul" in shown
    assert (tmp_path / "p.html").stat().st_size
    # A pair of precision modes, for which op types are looked up in the table of op lists.
    changes = json.loads(call([bare, "profile", "compare", before, after, "--json"], tmp_path))
    assert changes
    call([bare, "profile", "gate", before, "--max-step-ms", "1"], tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        "train alexnet-demo",
        "sweep alexnet-demo --vary seed=1,2",
        "evaluate run",
        "generate run --to pictures",
        "denoise run picture.png --to clean",
        "predict run picture.png",
        "report run",
        "recipes list",
        "weights show run",
        "data tfrecord run --to shards",
        "precision modes",
        "profile alexnet-demo",
    ],
)
def test_without_extras_a_command_that_trains_says_in_one_line_what_to_install(
    command: str, bare: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    done = run([bare, *command.split()], tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("jumar: this command needs ")
    assert line.endswith('which is not installed: pip install "jumar[train]"')


def test_without_extras_doctor_names_what_is_missing(bare: Path, tmp_path: Path) -> None:
    done = run([bare, "doctor"], tmp_path)
    assert done.returncode == 1, done.stderr
    assert "error: torch is not installed" in done.stdout
    assert 'pip install "jumar[train]"' in done.stdout
    assert "note: safetensors is not installed" in done.stdout
    assert done.stderr == ""


def test_without_extras_the_download_is_below_150_mb(released: dict[str, Path]) -> None:
    """Not installed: polars alone unpacks to more. Wheels are compressed better than here."""
    size = released["wheel"].stat().st_size
    for installed in needed(released["wheel"]).values():
        for file in files_of(installed):
            path = Path(str(installed.locate_file(file)))
            size += len(zlib.compress(path.read_bytes(), 1)) if path.is_file() else 0
    assert size < 150e6


def listed(wheel: Path, extra: str) -> set[str]:
    """The packages that an extra names, with those of extras in it."""
    return {
        canonicalize_name(requirement.name)
        for requirement in requirements(wheel)
        if requirement.marker and requirement.marker.evaluate({"extra": extra})
    }


def test_extras_match_the_command_lines_expectations(released: dict[str, Path]) -> None:
    owners = packages_distributions()
    train = listed(released["wheel"], "train")
    assert {canonicalize_name(owners[module][0]) for module in TRAIN_MODULES} == train
    detection = listed(released["wheel"], "detection") - train
    assert {canonicalize_name(owners[module][0]) for module in DETECTION_MODULES} == detection
    graphs = listed(released["wheel"], "onnx") - train
    assert {canonicalize_name(owners[module][0]) for module in ONNX_MODULES} == graphs
