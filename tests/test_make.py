"""The Makefile and its set-up, in a copy of the checkout whose path has a space in it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.documents import Command

from tests.checkout import CHECKOUT, copy_checkout
from tests.test_docs import STEPS

TARGETS = ["demo", "stories", "test", "test-processors", "lint", "install", "clean"]
DOCUMENTED = [
    step for step in STEPS if isinstance(step, Command) and list(step.words[:1]) == ["make"]
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a fresh clone holds."""
    return copy_checkout(tmp_path / "a folder with spaces" / "jumar")


def call(*command: str | Path, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as from a fresh shell: no environment active, no index, no outer make."""
    ours = ("MAKE", "MFLAGS", "GNUMAKEFLAGS", "PYTHON", "VIRTUAL_ENV", "JUMAR_", "ARGS", "PYTEST")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"PIP_NO_INDEX": "1", **variables}
    return subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


def interpreter(folder: Path, first: str) -> Path:
    """A Python that runs a line before its script, in a path with a space."""
    path = folder / "my python"
    code = f"import sys, runpy; {first}; sys.argv = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    # With -c and code of its own, the line goes first all the same.
    path.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = -c ]; then exec "{sys.executable}" -c "import sys; {first}; $2"; fi\n'
        f'exec "{sys.executable}" -c "{code}" "$@"\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_exists_and_has_a_dry_run(target: str, clone: Path) -> None:
    shown = call("make", "-n", target, cwd=clone)
    assert shown.returncode == 0, shown.stdout
    assert f"make {target} " in call("make", cwd=clone).stdout


@pytest.mark.parametrize("command", DOCUMENTED, ids=lambda step: f"{step.document}:{step.line}")
def test_every_make_command_of_the_documents_exists(command: Command, clone: Path) -> None:
    shown = call("make", "-n", *command.words[1:], cwd=clone)
    assert shown.returncode == 0, shown.stdout


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("sys.version_info = (3, 9, 18, 'final', 0)", "is no Python 3.10 or newer"),
        ("sys.modules['ensurepip'] = None", "apt-get install python3-venv"),
        ("sys.modules['venv'] = None", "apt-get install python3-venv"),
    ],
)
def test_unsuitable_python_is_named_in_one_line(
    first: str, said: str, clone: Path, tmp_path: Path
) -> None:
    python = interpreter(tmp_path, first)
    done = call("make", "install", f"PYTHON={python}", cwd=clone)
    assert done.returncode == 2
    lines = [line for line in done.stdout.splitlines() if not line.startswith("make: ***")]
    assert said in lines[-1]
    assert "Traceback" not in done.stdout
    assert not (clone / ".venv").exists()


def test_missing_python_is_named_in_one_line(clone: Path) -> None:
    done = call("make", "demo", "PYTHON=/no/such/python3", cwd=clone)
    assert done.returncode == 2
    assert "'/no/such/python3' is no Python 3.10 or newer" in done.stdout


def test_foreign_environment_is_left_alone(clone: Path) -> None:
    kept = clone / ".venv" / "lib" / "theirs.py"
    kept.parent.mkdir(parents=True)
    kept.write_text("", encoding="utf-8")
    done = call("make", "install", f"PYTHON={sys.executable}", cwd=clone)
    assert done.returncode == 2
    assert "was not made by this Makefile" in done.stdout
    assert kept.exists()


def test_tests_run_for_every_processor_setting_even_after_a_failure(clone: Path) -> None:
    python = clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        "#!/bin/sh\n"
        'printf "%s" "$OMP_NUM_THREADS,$ONEDNN_MAX_CPU_ISA,$ATEN_CPU_CAPABILITY:"\n'
        'printf " <%s>" "$@"; echo\n'
        'test "$ONEDNN_MAX_CPU_ISA" != AVX2\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    # `true` stands for the Python that would fill the environment.
    command = ("make", "test-processors", "SETUP=true", "WORKERS=3")
    theirs = {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "avx2"}

    done = call(*command, "ARGS=tests/cli -m 'not slow'", cwd=clone, **theirs)
    assert done.returncode == 2
    *runs, first, second, third, fourth, _ = done.stdout.splitlines()
    words = "-m pytest -n 3 --dist loadfile --no-loadscope-reorder --timeout 600"
    words += " --timeout-method thread tests/cli -m"
    arguments = "".join(f" <{word}>" for word in [*words.split(), "not slow"])
    assert runs[1::2] == [
        f"1,{chosen}:{arguments}" for chosen in (",", "AVX2,", "AVX512_CORE,", ",default")
    ]
    assert (first, second) == ("passed  default", "FAILED  ONEDNN_MAX_CPU_ISA=AVX2")
    assert third == "passed  ONEDNN_MAX_CPU_ISA=AVX512_CORE"
    assert fourth == "passed  ATEN_CPU_CAPABILITY=default"

    python.write_text("#!/bin/sh\n", encoding="utf-8")
    assert call(*command, cwd=clone).returncode == 0


@pytest.mark.slow
def test_named_python_provides_its_torch_and_is_set_up_once(clone: Path) -> None:
    # What is left of an environment made from another Python, to be made again.
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    maker = {"python": "/opt/other/python3", "version": "3.10.1", "torch": ""}
    (clone / ".venv" / "jumar.json").write_text(json.dumps({"maker": maker}), encoding="utf-8")
    install = ["make", "install", "GOALS=run"]

    done = call(*install, f"PYTHON={sys.executable}", cwd=clone)
    assert done.returncode == 0, done.stdout
    assert "made from /opt/other/python3 (3.10.1): it is made again" in done.stdout
    files = "import torch, jumar; print(torch.__file__); print(jumar.__file__)"
    asked = [".venv/bin/python", "-c", files]
    torch, _, jumar = call(*asked, cwd=clone).stdout.strip().partition("\n")
    assert not Path(torch).is_relative_to(clone)
    assert Path(jumar) == clone / "src" / "jumar" / "__init__.py"

    for again in (install, [*install, f"PYTHON={sys.executable}"]):
        done = call(*again, cwd=clone)
        assert (done.returncode, done.stdout) == (0, "")

    moved = clone.with_name("moved")
    shutil.move(clone, moved)
    done = call(*install, cwd=moved)
    assert done.returncode == 0, done.stdout
    assert call(*asked, cwd=moved).stdout.strip().endswith(str(moved / "src/jumar/__init__.py"))


def test_ci_runs_make_test_in_the_checkout_and_requires_the_reference_data(
    clone: Path, tmp_path: Path
) -> None:
    if not (clone / ".ci").exists():
        pytest.skip("needs a checkout; an sdist has no CI")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "make").write_text(
        '#!/bin/sh\necho "$* in $PWD, $(wc -c) bytes, required: $JUMAR_REQUIRE_SHARED $FOUND"\n'
        'test "$1" != test || exit 3\n',
        encoding="utf-8",
    )
    (programs / "make").chmod(0o755)
    (clone / "scripts" / "ci_tools.py").write_text(
        "import pathlib, sys\n"
        "pathlib.Path(sys.argv[1], 'environment').write_text('export FOUND=yes\\n')\n",
        encoding="utf-8",
    )
    done = call(
        *("bash", clone / ".ci" / "run"), cwd=tmp_path, PATH=f"{programs}:{os.environ['PATH']}"
    )
    assert done.returncode == 3
    assert done.stdout == (
        f"install GOALS=run test in {clone}, 0 bytes, required: 1 \n"
        f"test in {clone}, 0 bytes, required: 1 yes\n"
    )


@pytest.mark.parametrize(("required", "outcome"), [("0", "1 skipped"), ("1", "1 error")])
def test_missing_reference_data_skips_unless_it_is_required(
    required: str, outcome: str, tmp_path: Path
) -> None:
    tests = tmp_path / "jumar" / "tests"
    tests.mkdir(parents=True)
    for name in ("__init__.py", "conftest.py", "skips.py", "stalled_workers.py"):
        shutil.copy(CHECKOUT / "tests" / name, tests)
    (tests / "test_one.py").write_text("def test_one(parity):\n    pass\n", encoding="utf-8")
    done = call(
        *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", tests),
        cwd=tmp_path,
        JUMAR_REQUIRE_SHARED=required,
    )
    assert outcome in done.stdout
    assert str(tmp_path / "shared") in done.stdout
