"""Make `.venv` ready for `run`, `test` or `lint`; the Makefile calls it before each of its goals.

It needs nothing but Python. What was installed is recorded in `.venv/jumar.json`, so a second
call reads one file and starts neither pip nor a connection. torch is installed first and pinned:
a range such as the package's own `torch>=2.6` would fetch the newest build, with several GB of
CUDA libraries, onto a machine that has no GPU.
"""

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, NoReturn

CHECKOUT = Path(__file__).resolve().parents[1]
VENV = CHECKOUT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
RECORD = VENV / "jumar.json"
CONSTRAINTS = VENV / "constraints.txt"

TORCH = "2.13.0"
OLDEST_TORCH = (2, 6)
BUILD = ["hatchling>=1.25", "editables>=0.5"]
SIZES = {"run": 80, "test": 80, "lint": 90, "ci": 250, "mutants": 10}
"""The goals, and roughly what each downloads, in MB. Beyond `run`, a goal is the dependency group
of the same name."""

NAME_ANOTHER = "name a Python that has torch 2.6 or newer: make PYTHON=/path/to/python3"


def main() -> int:
    """Prepare the goals of the command line, in the virtual environment."""
    parser = argparse.ArgumentParser(description="Make .venv ready.")
    parser.add_argument("goals", nargs="+", choices=sorted(SIZES))
    parser.add_argument(
        "--chosen", action="store_true", help="the user named this Python: use it and its torch"
    )
    arguments = parser.parse_args()
    if Path(sys.prefix).resolve() == VENV.resolve():
        install(arguments.goals)
        return 0
    prepare(chosen=arguments.chosen)
    return subprocess.run([VENV_PYTHON, __file__, *arguments.goals], check=False).returncode


def prepare(*, chosen: bool) -> None:
    """Make `.venv` from the Python that runs this, where there is none that fits."""
    maker = {
        "python": str(Path(sys.executable).absolute()),
        "version": platform.python_version(),
        "torch": machine_torch() if chosen else "",
    }
    if VENV.exists():
        if not RECORD.exists():
            stop(f"{VENV} was not made by this Makefile; 'make clean' removes it")
        made_by = read_record().get("maker")
        if made_by is not None and VENV_PYTHON.exists():
            if made_by == maker or not chosen:
                return
            say(f".venv was made from {described(made_by)}: it is made again")
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            stop(
                f"{sys.executable} lacks the module '{module}'; "
                "on Debian and Ubuntu: apt-get install python3-venv"
            )
    make(maker)


def make(maker: dict[str, str]) -> None:
    """Make `.venv`, seeing the packages of the Python that runs this where its torch is used."""
    say(f"making .venv from {described(maker)}")
    if VENV.exists():
        shutil.rmtree(VENV)
    VENV.mkdir()
    # Written first, so that a half-made environment is recognised as ours to remove.
    write_record({})
    options = ["--system-site-packages"] if maker["torch"] else []
    if subprocess.run([sys.executable, "-m", "venv", *options, VENV], check=False).returncode:
        stop(f"{sys.executable} could not make a virtual environment")
    if maker["torch"] and sys.prefix != sys.base_prefix:
        # A virtual environment made from another one sees the packages of the base
        # interpreter, not those of the one it was made from.
        site = VENV / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        (site / "site-packages" / "machine.pth").write_text(
            "".join(f"{path}\n" for path in sorted(paths)), encoding="utf-8"
        )
    write_record({"maker": maker})


def described(maker: dict[str, str]) -> str:
    """A Python and, where it is used, its torch, for a message."""
    torch = f" with its torch {maker['torch']}" if maker["torch"] else ""
    return f"{maker['python']} ({maker['version']}){torch}"


def machine_torch() -> str:
    """The version of this Python's torch, or nothing if it is not usable."""
    version = torch_version()
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) >= OLDEST_TORCH:
        return version
    have = f"torch {version}, older than 2.6" if version else "no torch"
    say(f"{sys.executable} has {have}: .venv gets torch {TORCH} of its own")
    return ""


def install(goals: list[str]) -> None:
    """Install what is not recorded yet for these goals. Runs inside the virtual environment."""
    pyproject = (CHECKOUT / "pyproject.toml").read_bytes()
    # The checkout's location matters: an editable install points to it, and would run the code of
    # the old place after a move or a copy.
    state = hashlib.sha256(pyproject + os.fsencode(CHECKOUT)).hexdigest()
    record = read_record()
    installed: dict[str, str] = record.get("installed", {})
    missing = [goal for goal in goals if installed.get(goal) != state]
    if not missing:
        return
    install_torch()
    say(f"installing packages (downloading what is missing: about {sizes_text(missing)})")
    wanted = requirements(pyproject.decode("utf-8"), missing)
    run_pip("-qq", "--constraint", str(CONSTRAINTS), *BUILD, *wanted, naming="the packages")
    run_pip(
        *("-qq", "--no-deps", "--no-build-isolation", "--editable", str(CHECKOUT)),
        naming="jumar itself",
    )
    write_record({**record, "installed": {**installed, **dict.fromkeys(missing, state)}})


def sizes_text(goals: list[str]) -> str:
    """Roughly what the goals download; the only one is not named."""
    if len(goals) == 1:
        return f"{SIZES[goals[0]]} MB"
    return ", ".join(f"{SIZES[goal]} MB for {goal}" for goal in goals)


def requirements(pyproject: str, goals: list[str]) -> list[str]:
    """The package's requirements for training, without torch, and the goals' dependency groups."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        from pip._vendor import tomli as tomllib
    tables: dict[str, Any] = tomllib.loads(pyproject)
    project = tables["project"]
    names: list[str] = [*project["dependencies"], *project["optional-dependencies"]["train"]]
    for goal in goals:
        names += tables["dependency-groups"].get(goal, [])
    return [name for name in names if not re.match(r"torch\b(?!-)", name)]


def install_torch() -> None:
    """Install the pinned torch, if there is none, and keep it for every later install."""
    if not torch_version():
        # For Linux, the plain build brings several GB of CUDA libraries, so the build for CPUs
        # goes first where there is no GPU; pip has it where its settings name PyTorch's own index.
        noise = [] if sys.stdout.isatty() else ["-qq"]
        installed = False
        if platform.system() == "Linux" and not has_nvidia_driver():
            say(f"installing torch {TORCH} for CPUs (to download: about 200 MB)")
            installed = pip(*noise, f"torch=={TORCH}+cpu", quiet_errors=True) == 0
            if not installed:
                say(
                    "pip's settings name no index with PyTorch's build for CPUs, so the plain one "
                    "is taken; to avoid its CUDA libraries stop here and " + NAME_ANOTHER
                )
        if not installed:
            say(f"installing torch {TORCH} (to download: 200 MB, with CUDA several GB)")
            run_pip(*noise, f"torch=={TORCH}", naming=f"torch {TORCH}")
        importlib.invalidate_caches()
    CONSTRAINTS.write_text(f"torch=={torch_version()}\n", encoding="utf-8")


def torch_version() -> str:
    """The version of the torch that this Python sees, as pip knows it; empty without one."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return ""


def has_nvidia_driver() -> bool:
    """Whether this machine can run CUDA."""
    driver = Path("/proc/driver/nvidia/version")
    return driver.exists() or shutil.which("nvidia-smi") is not None


def pip(*arguments: str, quiet_errors: bool = False) -> int:
    """Run the virtual environment's `pip install` and return its exit status."""
    # PIP_USER of the user's own settings makes pip refuse to install into an environment.
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0"}
    return subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-input", *arguments],
        check=False,
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if quiet_errors else None,
    ).returncode


def run_pip(*arguments: str, naming: str) -> None:
    """Run `pip install`, or stop with a message that says what it was for."""
    if pip(*arguments):
        stop(f"pip could not install {naming}. Is there a network? Or {NAME_ANOTHER}")


def read_record() -> dict[str, Any]:
    """The record of what this script has done in `.venv`; empty if nothing is recorded."""
    try:
        return json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_record(record: dict[str, Any]) -> None:
    """Save the record, whole or not at all."""
    new = RECORD.with_suffix(".new")
    new.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    new.replace(RECORD)


def say(text: str) -> None:
    """Say what is going on, before pip's own output."""
    print(f"setup: {text}", flush=True)


def stop(text: str) -> NoReturn:
    """Leave with one line that says what to do."""
    print(f"setup: {text}", file=sys.stderr, flush=True)
    raise SystemExit(2)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
