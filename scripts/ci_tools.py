"""Install what the tests can use on this machine, and say which of their skips are then in order.

    python3 scripts/ci_tools.py FOLDER

Called by `.ci/run`; nobody needs it for `make test`. Debian packages are installed where the caller
is root and apt-get is there, TensorFlow 1.15 into an environment of its own where there is a Python
3.7, Triton into a folder of its own, and the packages of the dependency group `ci` into `.venv`,
which has to exist. What cannot be had is said and is no failure: its tests skip. Written are

- `FOLDER/environment`, lines `export NAME=value` for a shell;
- `FOLDER/skips`, regular expressions of the reasons for which a test may skip: those of
  `.ci/skips`, which hold everywhere, and those of what could not be installed. Any other skip fails
  the run (tests/skips.py).
"""

import concurrent.futures
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
VENV_PYTHON = CHECKOUT / ".venv" / "bin" / "python"
TENSORFLOW = ["tensorflow==1.15.0", "protobuf==3.20.3", "numpy==1.18.5", "h5py==2.10.0"]
PACKAGES = (
    "transformers",
    "kubernetes-validate",
    "jsonschema",
    "wandb",
    "swanlab",
    "mlflow",
    "cosmic-ray",
    "ray",
)
"""What the dependency group `ci` brings, as the reasons of skips name it."""
MAX_SECONDS = 600


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that tests use.

    Attributes:
        names: What it may be called; one of them is enough.
        packages: The Debian packages that bring it.
        skips: Reasons of tests that skip without it, as regular expressions.
    """

    names: tuple[str, ...]
    packages: tuple[str, ...]
    skips: tuple[str, ...]


PROGRAMS = (
    Program(
        names=("chromium", "chromium-browser", "google-chrome", "chrome"),
        packages=("chromium",),
        skips=("needs chromium",),
    ),
    Program(names=("espeak-ng",), packages=("espeak-ng",), skips=("needs espeak-ng",)),
    Program(names=("shellcheck",), packages=("shellcheck",), skips=("needs shellcheck",)),
    Program(names=("git",), packages=("git",), skips=("needs git",)),
    Program(names=("patch",), packages=("patch",), skips=("needs patch",)),
    Program(names=("g++",), packages=("g++",), skips=(r"needs a C\+\+ compiler",)),
    Program(names=("ip",), packages=("iproute2",), skips=("needs (ip|tc), for machines",)),
    Program(names=("slurmctld",), packages=("slurm-wlm",), skips=("needs root and Slurm",)),
    Program(names=("munged",), packages=("munge",), skips=("needs root and Slurm",)),
    Program(
        names=("fc-list",),
        packages=("fontconfig", "fonts-dejavu", "fonts-liberation", "fonts-noto-core"),
        skips=("this machine has no font with Latin letters", "needs four fonts"),
    ),
)
PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/local/sbin"])


def main() -> int:
    """Install all of it, side by side, and write both files."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    skips = (CHECKOUT / ".ci" / "skips").read_text(encoding="utf-8").splitlines()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        debian = pool.submit(install_programs)
        packages = pool.submit(install_packages)
        tensorflow = pool.submit(install_tensorflow, folder / "tf115")
        triton = pool.submit(install_triton, folder / "triton")
    skips += [*debian.result(), *packages.result()]
    environment: dict[str, str] = {}
    if triton.result():
        environment["JUMAR_TRITON"] = str((folder / "triton").resolve())
    else:
        skips.append("needs JUMAR_TRITON")
    python = tensorflow.result()
    if python is None:
        skips.append("needs a Python with TensorFlow 1.15")
    else:
        environment["JUMAR_TF115_PYTHON"] = str(python)
    environment["JUMAR_ALLOWED_SKIPS"] = str((folder / "skips").resolve())
    (folder / "skips").write_text("\n".join(skips) + "\n", encoding="utf-8")
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in environment.items()]
    (folder / "environment").write_text("".join(lines), encoding="utf-8")
    return 0


def install_programs() -> list[str]:
    """Install the Debian packages of missing programs; returns the skips of those still missing."""
    missing = [program for program in PROGRAMS if not is_installed(program)]
    names = [name for program in missing for name in program.packages]
    if names and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {' '.join(names)}")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "-qq", "update"], quiet)
        install = ["apt-get", "-qq", "install", "-y", "--no-install-recommends"]
        if not run([*install, *names], quiet):
            # One package that this release does not have must not keep the others away.
            for name in names:
                run([*install, name], quiet)
    missing = [program for program in missing if not is_installed(program)]
    for program in missing:
        say(f"no {program.names[0]}: its tests skip")
    return [reason for program in missing for reason in program.skips]


def is_installed(program: Program) -> bool:
    """Whether one of its names can be called."""
    return any(shutil.which(name, path=PLACES) for name in program.names)


def install_packages() -> list[str]:
    """Install the dependency group `ci`; returns the skips of its packages where that failed."""
    say("installing what a few tests compare with (dependency group 'ci')")
    if run([str(VENV_PYTHON), "scripts/install.py", "ci"]):
        return []
    say("the packages of the dependency group 'ci' could not be installed: their tests skip")
    return [rf"needs {name}\b" for name in PACKAGES]


def install_tensorflow(folder: Path) -> Path | None:
    """An environment with TensorFlow 1.15; None where it cannot be made.

    Args:
        folder: Where it lies, new.
    """
    maker = python37()
    if maker is None:
        say("no Python 3.7: the tests that need TensorFlow 1.15 skip")
        return None
    say(f"installing TensorFlow 1.15 beside {maker}")
    python = folder.absolute() / "bin" / "python"
    made = (
        run([maker, "-m", "venv", str(folder)])
        and run([str(python), "-m", "pip", "install", "-qq", "--no-input", *TENSORFLOW])
        and run([str(python), "-W", "ignore", "-c", "import tensorflow"])
    )
    if not made:
        say("TensorFlow 1.15 could not be installed: its tests skip")
        return None
    return python


def install_triton(folder: Path) -> bool:
    """Install Triton into a folder of its own; whether that worked.

    Beside torch for CPUs, which then imports it, it reports leaks at the end of each process.
    """
    say("installing Triton into a folder of its own")
    pip = [str(VENV_PYTHON), "-m", "pip", "install", "-qq", "--no-input", "--no-deps"]
    if run([*pip, "--target", str(folder), "triton>=3.3"]):
        return True
    say("Triton could not be installed: its tests skip")
    return False


def python37() -> str | None:
    """A Python 3.7 on the path, or of pyenv."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [
        *(str(path) for path in sorted(root.glob("versions/3.7.*/bin/python"))),
        *filter(None, [shutil.which("python3.7")]),
    ]
    # pyenv puts a python3.7 on the path that only says which versions there are.
    return next((path for path in candidates if run([path, "-c", "import venv"])), None)


def run(command: list[str], environment: dict[str, str] | None = None) -> bool:
    """Run a command; whether it ended well, in time. What it says is shown where it did not."""
    try:
        done = subprocess.run(
            command,
            cwd=CHECKOUT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=MAX_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        say(str(error))
        return False
    if done.returncode:
        for line in done.stdout.decode(errors="replace").splitlines()[-5:]:
            say(f"  {line}")
    return done.returncode == 0


def say(text: str) -> None:
    """Say what is going on."""
    print(f"ci: {text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
