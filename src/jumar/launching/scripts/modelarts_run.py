"""Runs a training script as a job of ModelArts: data from object storage in, results out.

Start file of the job: this one. ModelArts gives it `--data_url` and `--train_url`; everything that
it does not know goes on to the script.

    --data_url URL       folder, or one .zip, of the data: obs://bucket/data or a local path
    --train_url URL      folder for the results
    --ma_script PATH     the script                                  (default: the ported one)
    --ma_data_to PATH    where the data is put, from the script's folder (default: a cache)
    --ma_results PATHS   what is taken back, from the script's folder: checkpoint,logs
    --ma_every MINUTES   take results back while training, 0 for never          (default: 10)
    --ma_zip             pack results into one results.zip each time

A script that mentions data_url or train_url gets the local folders as these options. Others find
them as {data} and {train} in their arguments: `--dataset={data}/cats --out={train}`.

The exit status is the script's. Runs with Python 3.7 and its standard library; obs:// needs moxing,
which ModelArts has. It is one file, however long, because it lies in somebody else's tree.
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


def say(text: str) -> None:
    """Write a line to the job's log, unbuffered."""
    print(f"modelarts_run: {text}", flush=True)


def key_of(*texts: str) -> str:
    """A short hash of some texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def is_remote(url: str) -> bool:
    """Whether a URL is in object storage."""
    return re.match(r"(obs|s3)://", url) is not None


def moxing_file() -> Any:
    """The module that ModelArts has for object storage."""
    try:
        return importlib.import_module("moxing").file
    except ImportError as error:
        raise Problem("obs:// needs moxing, which is not installed here") from error


def copy_in(url: str, place: Path) -> None:
    """Copy a folder or a file to this machine."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if is_remote(url):
        files = moxing_file()
        if not files.exists(url):
            raise Problem(f"'{url}' does not exist")
        if files.is_directory(url):
            files.copy_parallel(url, str(place))
        else:
            files.copy(url, str(place))
        return
    source = Path(url)
    if source.is_dir():
        copy_folder(source, place)
    elif source.is_file():
        shutil.copyfile(str(source), str(place))
    else:
        raise Problem(f"'{url}' does not exist")


def copy_folder(source: Path, place: Path) -> None:
    """Copy a folder over another, each file atomically."""
    place.mkdir(parents=True, exist_ok=True)
    for folder, folders, names in os.walk(str(source)):
        within = Path(folder).relative_to(source)
        for name in folders:
            (place / within / name).mkdir(parents=True, exist_ok=True)
        for name in names:
            copy_file(Path(folder) / name, place / within / name)


def copy_file(source: Path, place: Path) -> None:
    """Copy a file under a temporary name and rename it; skip it if it is deleted meanwhile."""
    temporary = place.with_name(f".{place.name}.{os.getpid()}.partial")
    # Training deletes old checkpoints while this copies.
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(str(source), str(temporary))
        temporary.replace(place)


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


def unpack(archive: Path, place: Path) -> None:
    """Unpack a zip; nothing is written outside of the folder, and no more than fits."""
    fresh = not place.exists()
    try:
        with zipfile.ZipFile(str(archive)) as content:
            members = content.infolist()
            for member in members:
                check_member(archive, member)
            place.mkdir(parents=True, exist_ok=True)
            total_size = sum(member.file_size for member in members)
            free = shutil.disk_usage(str(place)).free
            if total_size > free:
                raise Problem(f"'{archive}' unpacks to {total_size} bytes; {free} are free")
            for member in members:
                write_member(content, member, place)
    except Exception as error:
        # zipfile raises many things for broken archives: BadZipFile, zlib.error, OSError, ...
        if fresh:
            shutil.rmtree(str(place), ignore_errors=True)
        if isinstance(error, Problem):
            raise
        raise Problem(f"'{archive}' cannot be unpacked: {error!r}") from error


def check_member(archive: Path, member: zipfile.ZipInfo) -> None:
    """Refuse links, and names that lead outside the folder."""
    name = member.filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name) or not parts:
        raise Problem(f"'{archive}' contains the path '{member.filename}', which leads outside it")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Problem(f"'{archive}' contains '{member.filename}', which is a link or a device")


def write_member(content: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path) -> None:
    """Write one member, and not a byte more than its stated size."""
    target = place.joinpath(*PurePosixPath(member.filename.replace("\\", "/")).parts)
    if member.filename.endswith("/"):
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    bytes_left = member.file_size
    with content.open(member) as source, target.open("wb") as file:
        for part in iter(lambda: source.read(PART), b""):
            bytes_left -= len(part)
            if bytes_left < 0:
                raise Problem(f"'{member.filename}' is longer than its zip says")
            file.write(part)


def pack(folders: list[Path], archive: Path) -> None:
    """Pack folders into one zip, each under its own name."""
    with zipfile.ZipFile(str(archive), "w", zipfile.ZIP_DEFLATED, allowZip64=True) as content:
        for folder in folders:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not path.is_symlink():
                    content.write(str(path), str(Path(folder.name) / path.relative_to(folder)))


class Data:
    """The data on this machine; of several processes, one copies it and the others wait.

    Args:
        url: Its source.
        place: Its local path.
        cache: Folder for locks and zips.
    """

    def __init__(self, url: str, place: Path, cache: Path) -> None:
        self.url = url
        self.place = place
        key = key_of(url, str(place))
        self.lock = cache / f"data_{key}.lock"
        self.done = cache / f"data_{key}.done"
        self.archive = cache / f"data_{key}.zip"

    def bring(self) -> None:
        """Copy it, and unpack it if it is a zip."""
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        with self.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            job = os.environ.get("JOB_ID", "")
            # The copy of another job may be older than the data in storage.
            if job and self.done.exists() and self.done.read_text() == job:
                say(f"data: {self.place} already exists")
                return
            begin = time.monotonic()
            if self.lock.parent in self.place.parents:
                shutil.rmtree(str(self.place), ignore_errors=True)
            if self.url.lower().endswith(".zip"):
                copy_in(self.url, self.archive)
                unpack(self.archive, self.place)
                self.archive.unlink()
            else:
                copy_in(self.url, self.place)
            self.done.write_text(job)
        say(f"data: {self.url} -> {self.place} in {time.monotonic() - begin:.1f} s")


class Results:
    """The script's results, and their destination.

    Args:
        sources: Folders, by their names in the destination.
        url: The destination; empty for none.
        packed: Whether to pack them into one zip.
        cache: Folder for the zip.
    """

    def __init__(self, sources: dict[str, Path], url: str, packed: bool, cache: Path) -> None:
        self.sources = sources
        self.url = url.rstrip("/")
        self.packed = packed
        self.archive = cache / f"results_{os.getpid()}.zip"
        self.last: object = None

    def state(self) -> object:
        """A state by which to see whether something has changed."""
        files: list[tuple[str, int, int]] = []
        for source in self.sources.values():
            for path in source.rglob("*"):
                # A file deleted during this scan is not a change to copy back.
                with contextlib.suppress(OSError):
                    about = path.stat()
                    if stat.S_ISREG(about.st_mode):
                        files.append((str(path), about.st_size, about.st_mtime_ns))
        return sorted(files)

    def take_back(self) -> None:
        """Copy the results, unless nothing has changed since the last time."""
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
        say(f"results: -> {self.url}")

    def take_back_surely(self) -> bool:
        """The same at the end, with three tries; returns whether it succeeded."""
        for seconds in (1, 10, 0):
            try:
                self.take_back()
                return True
            except Exception as error:
                # Whatever storage raises, hours of training must not be lost.
                say(f"results: {error!r}")
            time.sleep(seconds)
        say(f"results: NOT copied back; they are in {', '.join(map(str, self.sources.values()))}")
        return False

    def keep_taking_back(self, minutes: float, stop: threading.Event) -> None:
        """Copy results back every few minutes until stopped."""
        while not stop.wait(minutes * 60):
            try:
                self.take_back()
            except Exception as error:
                say(f"results: {error!r}; the next try is in {minutes:g} minutes")


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options of this file, and the arguments for the script."""
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
    """The script's path, relative to here."""
    if not name:
        raise Problem("which script? Give it with --ma_script")
    script = HERE / name
    if not script.is_file():
        raise Problem(f"'{script}' does not exist")
    return script


def find_cache() -> Path:
    """The disk for data: ModelArts has one at /cache."""
    for folder in (os.environ.get("MA_LOCAL_CACHE", ""), "/cache"):
        if folder and Path(folder).is_dir() and os.access(folder, os.W_OK):
            return Path(folder)
    return Path(tempfile.gettempdir()) / f"modelarts_{os.getuid()}"


def script_arguments(script: Path, rest: list[str], data: str, train: str) -> list[str]:
    """The script's own arguments, with the local folders in them."""
    arguments = [part.replace("{data}", data).replace("{train}", train) for part in rest]
    text = script.read_text(encoding="utf-8", errors="replace")
    for name, value in (("data_url", data), ("train_url", train)):
        if value and re.search(rf"\b{name}\b", text):
            arguments.append(f"--{name}={value}")
    return arguments


def run(command: list[str], folder: Path) -> int:
    """Run the script; signals that end this process are passed on to it."""
    # Before the script starts: a signal in between would leave it running alone.
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
    """Data in, training, results out; returns the exit status."""
    options, rest = parse(arguments)
    script = find_script(options.ma_script)
    folder = script.parent
    rank = os.environ.get("RANK_ID", "0")
    # Jobs of the same user may run side by side on one machine.
    cache = find_cache() / "modelarts_run" / key_of(options.data_url, options.train_url)
    train = cache / f"train_{rank}"
    train.mkdir(parents=True, exist_ok=True)
    data = ""
    if options.data_url:
        data_path = folder / options.ma_data_to if options.ma_data_to else cache / "data"
        is_zip = options.data_url.lower().endswith(".zip")
        if is_remote(options.data_url) or is_zip or options.ma_data_to:
            Data(options.data_url, data_path, cache).bring()
        else:
            # Newer jobs have their data on this machine already.
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
    watch_arguments = (options.ma_every, stop)
    watch = threading.Thread(target=results.keep_taking_back, args=watch_arguments, daemon=True)
    if options.ma_every > 0:
        watch.start()
    say(f"starts {script.name}")
    code = run(command, folder)
    say(f"{script.name} ended with {code}")
    stop.set()
    if watch.is_alive():
        watch.join()
    return code if results.take_back_surely() else code or 1


def main(arguments: list[str]) -> int:
    """Run the job; errors the user can fix are printed without a traceback."""
    try:
        return job(arguments)
    except Problem as problem:
        sys.stderr.write(f"modelarts_run: {problem}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
