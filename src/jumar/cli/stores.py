"""Paths of object stores on the command line, for all commands in one place.

A command gets local paths: inputs are fetched beforehand, outputs are uploaded afterwards, and a
training run is mirrored while it runs. Paths in `--set FIELD=s3://...` stay as they are, so that a
run records them; the code that opens them fetches them, see `jumar.ground.paths.expanded`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.ground.errors import EXIT_CODE, UserError
from jumar.ground.paths import fetch_urls_with, store_url
from jumar.ground.text import print_aside

if TYPE_CHECKING:
    from jumar.stores.location import Location

_WRITTEN = ("--to", "--out", "--csv", "--page", "--report")
"""Options whose file or folder a command writes."""
_VERBATIM_COMMANDS = ("launch",)
"""Commands that write URLs into files without opening them."""
_VERBATIM_OPTIONS = (
    "--set",
    "--set-a",
    "--set-b",
    "--vary",
    "--range",
    "--text",
    "--pair",
    "--import",
)
_NOT_MIRRORED: Mapping[tuple[str, ...], Sequence[str]] = {
    ("sweep",): ("--to",),
    ("tune", "speed"): ("--to",),
    ("precision", "search"): ("--to", "--runs"),
    ("tune", "accuracy"): ("--to",),
    ("profile",): ("--run-dir",),
    ("precision", "dump"): ("--to",),
}
"""Options for runs or dumps that grow for hours and are not mirrored."""


@dataclass(frozen=True, kw_only=True)
class _Named:
    """A URL among the words of a command line: its position, and the option before it."""

    place: int
    option: str
    is_joined: bool
    url: str

    def replaced(self, path: Path) -> str:
        """The word with its URL replaced by a path."""
        return f"{self.option}={path}" if self.is_joined else str(path)


def with_local_paths(
    tokens: Sequence[str], command: Sequence[str], call: Callable[[Sequence[str]], object]
) -> object:
    """Call a command with local paths instead of those of stores.

    Args:
        tokens: The command line.
        command: The names of command and subcommand.
        call: Called with the local command line; returns the exit code.

    Returns:
        What the command returned; 2 if it succeeded but not everything was uploaded.

    Raises:
        UserError: A store does not answer, or has no such object.
    """
    fetch_urls_with(_fetched)
    urls = [] if tuple(command[:1]) in {(name,) for name in _VERBATIM_COMMANDS} else _urls(tokens)
    if not urls:
        return call(tokens)
    local = list(tokens)
    mirrored_urls: list[_Named] = []
    written_urls: list[_Named] = []
    for each in urls:
        if each.option in _NOT_MIRRORED.get(tuple(command), ()):
            raise UserError(
                "cannot be in a store: its files grow while the command runs",
                where=f"{each.option} {each.url}",
                todo="Give a local folder; only `jumar train --run-dir` mirrors while it runs.",
            )
        if tuple(command) == ("train",) and each.option == "--run-dir":
            mirrored_urls.append(each)
        elif each.option in _WRITTEN:
            written_urls.append(each)
        else:
            local[each.place] = each.replaced(_fetched(each.url))
    if mirrored_urls:
        return _train(mirrored_urls[-1], local, call)
    return _write(written_urls, local, call) if written_urls else call(local)


def _fetched(url: str) -> Path:
    from jumar.stores.fetching import fetched

    return fetched(url)


def _urls(tokens: Sequence[str]) -> list[_Named]:
    """The words that are URLs of stores, except those after `--` and those that are not paths."""
    urls: list[_Named] = []
    own_words = tokens[: tokens.index("--")] if "--" in tokens else tokens
    for position, word in enumerate(own_words):
        previous_word = own_words[position - 1] if position else ""
        option, mark, value = word.partition("=")
        is_joined = word.startswith("--") and bool(mark)
        url = store_url(value if is_joined else word)
        if not is_joined:
            option = (
                previous_word if previous_word.startswith("--") and "=" not in previous_word else ""
            )
        if url is not None and option not in _VERBATIM_OPTIONS:
            urls.append(_Named(place=position, option=option, is_joined=is_joined, url=url))
    return urls


def _train(run_dir: _Named, tokens: list[str], call: Callable[[Sequence[str]], object]) -> object:
    """Train in a local directory that the first rank mirrors."""
    from jumar.stores.client import client_of
    from jumar.stores.location import parse
    from jumar.stores.mirror import Mirror, pull
    from jumar.stores.ownership import Ownership

    run = parse(run_dir.url)
    if not run.key:
        raise UserError("a run needs a name in its bucket", where=run_dir.url)
    is_writer = os.environ.get("RANK", "0") == "0" and "--dry-run" not in tokens
    if not is_writer:
        tokens[run_dir.place] = run_dir.replaced(pull(run, print_aside))
        return call(tokens)
    ownership = Ownership(client_of(run), run, print_aside)
    ownership.claim()
    try:
        local = pull(run, print_aside)
        mirror = Mirror(run, ownership, print_aside)
        mirror.start()
    except BaseException:
        ownership.release()
        raise
    tokens[run_dir.place] = run_dir.replaced(local)
    print_aside(f"{run}: written to {local}, and mirrored from there")
    failure: UserError | None = None
    try:
        code = call(tokens)
    finally:
        failure = mirror.close()
        if failure is not None:
            print_aside(
                f"jumar: {run}: the store does not have all of this run: {failure}\n"
                f"  {local} does; the same command uploads the rest."
            )
    return code if failure is None or code else EXIT_CODE


def _write(
    written_urls: Sequence[_Named], tokens: list[str], call: Callable[[Sequence[str]], object]
) -> object:
    """Write to a local path, and upload it if the command succeeds."""
    from jumar.stores.location import parse
    from jumar.stores.uploading import Outgoing

    with Outgoing() as outgoing:
        targets: list[tuple[Location, Path]] = []
        for each in written_urls:
            target = parse(each.url)
            local = outgoing.place(target)
            targets.append((target, local))
            tokens[each.place] = each.replaced(local)
        code = call(tokens)
        if not code:
            for target, local in targets:
                print_aside(outgoing.upload(target, local))
    return code
