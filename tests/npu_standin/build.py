"""Compiles the C++ part of the stand-in once, and keeps it under the hash of all that it is
made from."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch
from torch.utils import cpp_extension

NATIVE = Path(__file__).parent / "native"
SOURCES = ("device.cpp", "kernels.cpp", "autocast.cpp")
FLAGS = ("-std=c++17", "-O0", "-fPIC")


class CannotBuildError(Exception):
    """Why there is no stand-in on this machine."""


def built_library() -> Path:
    """The shared library, compiled now if no earlier run has done it.

    Raises:
        CannotBuildError: There is no C++ compiler, or it cannot compile against this torch.
    """
    chosen = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++"]
    compiler = next(filter(None, map(shutil.which, chosen)), None)
    if compiler is None:
        raise CannotBuildError(
            f"the stand-in NPU needs a C++ compiler, and there is no {' or '.join(chosen)}"
        )
    flags = [*FLAGS, f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"]
    library = _cache_folder() / f"{_key(compiler, flags)}.so"
    if not library.is_file():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            made = _compile(compiler, flags, Path(folder))
            # Two test processes may build at once; the rename lets the last one win whole.
            made.replace(library)
    return library


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "jumar" / "npu-standin"


def _key(compiler: str, flags: list[str]) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    parts = [compiler, version.stdout, *flags, torch.__version__, str(torch.version.git_version)]
    digest = hashlib.sha256("\0".join(parts).encode())
    for path in sorted(NATIVE.iterdir()):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def _compile(compiler: str, flags: list[str], folder: Path) -> Path:
    includes = [f"-I{path}" for path in cpp_extension.include_paths()]
    objects = [folder / f"{source}.o" for source in SOURCES]
    running = [
        subprocess.Popen(
            [compiler, *flags, *includes, "-c", str(NATIVE / source), "-o", str(target)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for source, target in zip(SOURCES, objects, strict=True)
    ]
    messages = [process.communicate()[1] for process in running]
    made = folder / "standin.so"
    places = [f"-L{path}" for path in cpp_extension.library_paths()]
    if not any(process.returncode for process in running):
        link = [compiler, "-shared", *map(str, objects), "-o", str(made), *places]
        libraries = ["-ltorch_cpu", "-ltorch", "-lc10"]
        linked = subprocess.run([*link, *libraries], stderr=subprocess.PIPE, text=True, check=False)
        messages.append(linked.stderr)
    if not made.is_file():
        raise CannotBuildError(f"{compiler} cannot build the stand-in NPU:\n" + "\n".join(messages))
    return made
