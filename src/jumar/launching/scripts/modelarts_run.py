"""Runs a training script as a job of ModelArts: data from object storage in, results out.

Use this file as the start file of the job. ModelArts passes `--data_url` and `--train_url`; unknown
options are passed on to the script.

    --data_url URL       data, a folder or one .zip: obs://bucket/data or a local path
    --train_url URL      folder for the results
    --ma_script PATH     script to run                        (default: the ported script)
    --ma_data_to PATH    local path of the data, relative to the script's folder (default: a cache)
    --ma_results PATHS   results to upload, relative to the script's folder: checkpoint,logs
    --ma_every MINUTES   interval of uploads while training, 0 for never        (default: 10)
    --ma_zip             pack the results into one results.zip for each upload

A script that mentions data_url or train_url gets the local folders as these options. In the
arguments of other scripts, {data} and {train} are replaced: `--dataset={data}/cats --out={train}`.

The exit status is the script's. Runs with Python 3.7 and its standard library; obs:// needs moxing,
which ModelArts provides. It is a single file, despite its length, because it is copied into other
projects.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

ENTRY = ""
OUTPUT_FOLDERS: tuple[str, ...] = ()

HERE = Path(__file__).resolve().parent
PART = 1 << 20


class Problem(Exception):
    """An error the user can fix; printed without a traceback."""


def log(text: str) -> None:
    """Write a line to the job's log, unbuffered."""
    print(f"modelarts_run: {text}", flush=True)


def key_of(*texts: str) -> str:
    """Return a short hash of some texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def is_remote(url: str) -> bool:
    """Return whether a URL is in object storage."""
    return re.match(r"(obs|s3)://", url) is not None


def moxing_file() -> Any:
    """Return the module of ModelArts for object storage."""
    try:
        return importlib.import_module("moxing").file
    except ImportError as error:
        raise Problem("obs:// needs moxing, which is not installed here") from error


def copy_in(url: str, target_path: Path) -> None:
    """Copy a folder or a file to this machine."""
    target_path.parent.mkdir(parents=True, exist_ok=True)
    if is_remote(url):
        files = moxing_file()
        if not files.exists(url):
            raise Problem(f"'{url}' does not exist")
        if files.is_directory(url):
            files.copy_parallel(url, str(target_path))
        else:
            files.copy(url, str(target_path))
        return
    source = Path(url)
    if source.is_dir():
        copy_folder(source, target_path)
    elif source.is_file():
        shutil.copyfile(str(source), str(target_path))
    else:
        raise Problem(f"'{url}' does not exist")


def copy_folder(source: Path, target_path: Path) -> None:
    """Copy a folder over another, each file atomically."""
    target_path.mkdir(parents=True, exist_ok=True)
    for folder, folders, names in os.walk(str(source)):
        within = Path(folder).relative_to(source)
        for name in folders:
            (target_path / within / name).mkdir(parents=True, exist_ok=True)
        for name in names:
            copy_file(Path(folder) / name, target_path / within / name)


def copy_file(source: Path, target_path: Path) -> None:
    """Copy a file under a temporary name and rename it; skip it if it has been deleted."""
    temporary = target_path.with_name(f".{target_path.name}.{os.getpid()}.partial")
    # Training deletes old checkpoints while this copies.
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(str(source), str(temporary))
        temporary.replace(target_path)


def copy_out(source: Path, url: str) -> None:
    """Copy a folder or a file to object storage, or to another folder."""
    if is_remote(url):
        files = moxing_file()
        if source.is_dir():
            files.copy_parallel(str(source), url)
        else:
            files.copy(str(source), url)
    elif source.is_dir():
        copy_folder(source, Path(url))
    else:
        Path(url).parent.mkdir(parents=True, exist_ok=True)
        copy_file(source, Path(url))


def unpack(archive: Path, target_path: Path) -> None:
    """Unpack a zip, but never outside of the folder, nor if the disk has too little space."""
    fresh = not target_path.exists()
    try:
        with zipfile.ZipFile(str(archive)) as content:
            members = content.infolist()
            for member in members:
                check_member(archive, member)
            target_path.mkdir(parents=True, exist_ok=True)
            total_size = sum(member.file_size for member in members)
            free = shutil.disk_usage(str(target_path)).free
            if total_size > free:
                raise Problem(
                    f"'{archive}' unpacks to {total_size} bytes, but only {free} are free"
                )
            for member in members:
                write_member(content, member, target_path)
    except Exception as error:
        # zipfile raises many exceptions for broken archives: BadZipFile, zlib.error, OSError, ...
        if fresh:
            shutil.rmtree(str(target_path), ignore_errors=True)
        if isinstance(error, Problem):
            raise
        raise Problem(f"'{archive}' cannot be unpacked: {error!r}") from error


def check_member(archive: Path, member: zipfile.ZipInfo) -> None:
    """Reject links, and names that lead outside the folder."""
    name = member.filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name) or not parts:
        raise Problem(f"'{archive}' contains the path '{member.filename}', which leads outside it")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Problem(f"'{archive}' contains '{member.filename}', which is a link or a device")


def write_member(content: zipfile.ZipFile, member: zipfile.ZipInfo, target_path: Path) -> None:
    """Write one member, up to its stated size."""
    target = target_path.joinpath(*PurePosixPath(member.filename.replace("\\", "/")).parts)
    if member.filename.endswith("/"):
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    bytes_left = member.file_size
    with content.open(member) as source, target.open("wb") as file:
        for part in iter(lambda: source.read(PART), b""):
            bytes_left -= len(part)
            if bytes_left < 0:
                raise Problem(f"'{member.filename}' is longer than its zip states")
            file.write(part)


def pack(folders: list[Path], archive: Path) -> None:
    """Pack folders into one zip, each under its own name."""
    with zipfile.ZipFile(str(archive), "w", zipfile.ZIP_DEFLATED, allowZip64=True) as content:
        for folder in folders:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not path.is_symlink():
                    content.write(str(path), str(Path(folder.name) / path.relative_to(folder)))


class Data:
    """The local copy of the data; one of several processes copies it while the others wait.

    Args:
        url: The source.
        target_path: The local path.
        cache: Folder for locks and zips.
    """

    def __init__(self, url: str, target_path: Path, cache: Path) -> None:
        self.url = url
        self.target_path = target_path
        key = key_of(url, str(target_path))
        self.lock = cache / f"data_{key}.lock"
        self.done = cache / f"data_{key}.done"
        self.archive = cache / f"data_{key}.zip"

    def fetch(self) -> None:
        """Copy the data, and unpack it if it is a zip."""
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        with self.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            job = os.environ.get("JOB_ID", "")
            # The copy of another job may be older than the data in storage.
            if job and self.done.exists() and self.done.read_text() == job:
                log(f"data: {self.target_path} already exists")
                return
            begin = time.monotonic()
            if self.lock.parent in self.target_path.parents:
                shutil.rmtree(str(self.target_path), ignore_errors=True)
            if self.url.lower().endswith(".zip"):
                copy_in(self.url, self.archive)
                unpack(self.archive, self.target_path)
                self.archive.unlink()
            else:
                copy_in(self.url, self.target_path)
            self.done.write_text(job)
        log(f"data: {self.url} -> {self.target_path} in {time.monotonic() - begin:.1f} s")


class Results:
    """The results of the script, and their destination.

    Args:
        sources: The folders, by their names in the destination.
        url: The destination; empty for none.
        packed: Whether to pack the results into one zip.
        cache: The folder for the zip.
    """

    def __init__(self, sources: dict[str, Path], url: str, packed: bool, cache: Path) -> None:
        self.sources = sources
        self.url = url.rstrip("/")
        self.packed = packed
        self.archive = cache / f"results_{os.getpid()}.zip"
        self.last: object = None

    def state(self) -> object:
        """Return the paths, sizes and times of all files, to detect changes."""
        files: list[tuple[str, int, int]] = []
        for source in self.sources.values():
            for path in source.rglob("*"):
                # A file deleted during this scan is not a change to upload.
                with contextlib.suppress(OSError):
                    status = path.stat()
                    if stat.S_ISREG(status.st_mode):
                        files.append((str(path), status.st_size, status.st_mtime_ns))
        return sorted(files)

    def upload(self) -> None:
        """Upload the results if they have changed since the last upload."""
        state = self.state()
        if not self.url or not state or state == self.last:
            return
        present = {name: source for name, source in self.sources.items() if source.is_dir()}
        if self.packed:
            pack(list(present.values()), self.archive)
            copy_out(self.archive, f"{self.url}/results.zip")
            self.archive.unlink()
        else:
            for name, source in present.items():
                copy_out(source, f"{self.url}/{name}" if name else self.url)
        self.last = state
        log(f"results: -> {self.url}")

    def upload_with_retries(self) -> bool:
        """Upload the results with up to three attempts; return whether one succeeded."""
        for seconds in (1, 10, 0):
            try:
                self.upload()
                return True
            except Exception as error:
                # No exception of the storage may lose hours of training.
                log(f"results: {error!r}")
            time.sleep(seconds)
        log(f"results: NOT uploaded; they are in {', '.join(map(str, self.sources.values()))}")
        return False

    def upload_regularly(self, minutes: float, stop: threading.Event) -> None:
        """Upload the results every few minutes until stopped."""
        while not stop.wait(minutes * 60):
            try:
                self.upload()
            except Exception as error:
                log(f"results: {error!r}; the next attempt is in {minutes:g} minutes")


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the options of this file; return them and the arguments for the script."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="modelarts_run.py [options] [arguments of the script]",
        allow_abbrev=False,
    )
    parser.add_argument("--data_url", default="", help=argparse.SUPPRESS)
    parser.add_argument("--train_url", default="", help=argparse.SUPPRESS)
    parser.add_argument("--ma_script", default=ENTRY, help=argparse.SUPPRESS)
    parser.add_argument("--ma_data_to", default="", help=argparse.SUPPRESS)
    parser.add_argument("--ma_results", default="", help=argparse.SUPPRESS)
    parser.add_argument("--ma_every", type=float, default=10, help=argparse.SUPPRESS)
    parser.add_argument("--ma_zip", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_known_args(arguments)


def find_script(name: str) -> Path:
    """Return the path of the script, which is relative to this file."""
    if not name:
        raise Problem("the script is missing: specify it with --ma_script")
    script = HERE / name
    if not script.is_file():
        raise Problem(f"'{script}' does not exist")
    return script


def find_cache() -> Path:
    """Return the folder for data: ModelArts has a disk at /cache."""
    for folder in (os.environ.get("MA_LOCAL_CACHE", ""), "/cache"):
        if folder and Path(folder).is_dir() and os.access(folder, os.W_OK):
            return Path(folder)
    return Path(tempfile.gettempdir()) / f"modelarts_{os.getuid()}"


def script_arguments(script: Path, rest: list[str], data: str, train: str) -> list[str]:
    """Return the arguments for the script, with the local folders inserted."""
    arguments = [part.replace("{data}", data).replace("{train}", train) for part in rest]
    text = script.read_text(encoding="utf-8", errors="replace")
    for name, value in (("data_url", data), ("train_url", train)):
        if value and re.search(rf"\b{name}\b", text):
            arguments.append(f"--{name}={value}")
    return arguments


def run(command: list[str], folder: Path) -> int:
    """Run the script, and pass on signals that would end this process."""
    # The handlers are set first: otherwise, a signal during the start would orphan the script.
    process: subprocess.Popen[bytes] | None = None
    early_signals: list[int] = []

    def pass_on(number: int, _frame: Any) -> None:
        if process is None:
            early_signals.append(number)
        elif process.poll() is None:
            process.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGINT, pass_on)
    process = subprocess.Popen(command, cwd=str(folder))
    for number in early_signals:
        process.send_signal(number)
    code = process.wait()
    return 128 - code if code < 0 else code


def job(arguments: list[str]) -> int:
    """Fetch the data, run the training, upload the results; return the exit status."""
    options, rest = parse(arguments)
    script = find_script(options.ma_script)
    folder = script.parent
    rank = os.environ.get("RANK_ID", "0")
    # Jobs of the same user may run on the same machine at the same time.
    cache = find_cache() / "modelarts_run" / key_of(options.data_url, options.train_url)
    train = cache / f"train_{rank}"
    train.mkdir(parents=True, exist_ok=True)
    data = ""
    if options.data_url:
        data_path = folder / options.ma_data_to if options.ma_data_to else cache / "data"
        is_zip = options.data_url.lower().endswith(".zip")
        if is_remote(options.data_url) or is_zip or options.ma_data_to:
            Data(options.data_url, data_path, cache).fetch()
        else:
            # For newer jobs, the data is already on this machine.
            data_path = Path(options.data_url).resolve()
            if not data_path.exists():
                raise Problem(f"'{options.data_url}' does not exist")
        data = str(data_path)
    result_folders = [part for part in options.ma_results.split(",") if part]
    sources = {"": train}
    sources.update((part.strip("/"), folder / part) for part in [*result_folders, *OUTPUT_FOLDERS])
    # The ranks of one job would overwrite each other's results.
    results = Results(sources, options.train_url if rank == "0" else "", options.ma_zip, cache)
    command = [sys.executable, "-u", str(script)]
    command += script_arguments(script, rest, data, str(train))
    stop = threading.Event()
    uploader = threading.Thread(
        target=results.upload_regularly, args=(options.ma_every, stop), daemon=True
    )
    if options.ma_every > 0:
        uploader.start()
    log(f"starting {script.name}")
    code = run(command, folder)
    log(f"{script.name} ended with exit status {code}")
    stop.set()
    if uploader.is_alive():
        uploader.join()
    return code if results.upload_with_retries() else code or 1


def main(arguments: list[str]) -> int:
    """Run the job; errors the user can fix are printed without a traceback."""
    try:
        return job(arguments)
    except Problem as problem:
        sys.stderr.write(f"modelarts_run: {problem}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
