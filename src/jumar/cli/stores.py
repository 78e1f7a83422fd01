"""Paths of object stores on the command line, handled for all commands.

Commands only see local paths: inputs are fetched beforehand, outputs are uploaded afterwards, and a
training run is mirrored while it runs. Paths in `--set FIELD=s3://...` are not replaced, so that a
run records them; they are fetched when they are opened, see `jumar.ground.paths.expanded`.
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
"""Options that name a file or folder to write."""
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
"""Options for runs or dumps that grow for hours, which are not mirrored."""


@dataclass(frozen=True, kw_only=True)
class _UrlArgument:
    """A URL on the command line, with its position and the option before it."""

    position: int
    option: str
    is_joined: bool
    url: str

    def replaced(self, path: Path) -> str:
        """Return the argument with its URL replaced by a path."""
        return f"{self.option}={path}" if self.is_joined else str(path)


def with_local_paths(
    tokens: Sequence[str], command: Sequence[str], call: Callable[[Sequence[str]], object]
) -> object:
    """Call a command with local paths instead of URLs of stores.

    Args:
        tokens: The command line.
        command: The names of command and subcommand.
        call: Called with the local command line; returns the exit code.

    Returns:
        The result of the command; 2 if it succeeded but not everything was uploaded.

    Raises:
        UserError: A store does not answer, or has no such object.
    """
    fetch_urls_with(_fetched)
    urls = [] if command and command[0] in _VERBATIM_COMMANDS else _urls(tokens)
    if not urls:
        return call(tokens)
    local = list(tokens)
    mirrored_urls: list[_UrlArgument] = []
    written_urls: list[_UrlArgument] = []
    for url in urls:
        if url.option in _NOT_MIRRORED.get(tuple(command), ()):
            raise UserError(
                "cannot be in a store: its files grow while the command runs",
                where=f"{url.option} {url.url}",
                todo="Give a local folder; only `jumar train --run-dir` mirrors while it runs.",
            )
        if tuple(command) == ("train",) and url.option == "--run-dir":
            mirrored_urls.append(url)
        elif url.option in _WRITTEN:
            written_urls.append(url)
        else:
            local[url.position] = url.replaced(_fetched(url.url))
    if mirrored_urls:
        return _train(mirrored_urls[-1], local, call)
    return _write(written_urls, local, call) if written_urls else call(local)


def _fetched(url: str) -> Path:
    from jumar.stores.fetching import fetched

    return fetched(url)


def _urls(tokens: Sequence[str]) -> list[_UrlArgument]:
    """Return the arguments that are URLs of stores, before `--` and in options for paths."""
    urls: list[_UrlArgument] = []
    own_tokens = tokens[: tokens.index("--")] if "--" in tokens else tokens
    for position, token in enumerate(own_tokens):
        previous = own_tokens[position - 1] if position else ""
        option, mark, value = token.partition("=")
        is_joined = token.startswith("--") and bool(mark)
        url = store_url(value if is_joined else token)
        if not is_joined:
            option = previous if previous.startswith("--") and "=" not in previous else ""
        if url is not None and option not in _VERBATIM_OPTIONS:
            urls.append(
                _UrlArgument(position=position, option=option, is_joined=is_joined, url=url)
            )
    return urls


def _train(
    run_dir: _UrlArgument, tokens: list[str], call: Callable[[Sequence[str]], object]
) -> object:
    """Train in a local directory that the first rank mirrors."""
    from jumar.stores.client import client_of
    from jumar.stores.location import parse
    from jumar.stores.mirror import Mirror, pull
    from jumar.stores.ownership import Ownership

    run = parse(run_dir.url)
    if not run.key:
        raise UserError(
            "a run needs a name in its bucket", where=run_dir.url, todo="Add a name to the URL."
        )
    is_writer = os.environ.get("RANK", "0") == "0" and "--dry-run" not in tokens
    if not is_writer:
        tokens[run_dir.position] = run_dir.replaced(pull(run, print_aside))
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
    tokens[run_dir.position] = run_dir.replaced(local)
    print_aside(f"{run}: written to {local}, and mirrored from there")
    failure: UserError | None = None
    try:
        code = call(tokens)
    finally:
        failure = mirror.close()
        if failure is not None:
            print_aside(
                f"jumar: {run}: this run is not completely in the store: {failure}\n"
                f"  It is complete in {local}; the same command uploads the rest."
            )
    return code if failure is None or code else EXIT_CODE


def _write(
    written_urls: Sequence[_UrlArgument], tokens: list[str], call: Callable[[Sequence[str]], object]
) -> object:
    """Write to a local path, and upload it if the command succeeds."""
    from jumar.stores.location import parse
    from jumar.stores.uploading import Outgoing

    with Outgoing() as outgoing:
        targets: list[tuple[Location, Path]] = []
        for url in written_urls:
            target = parse(url.url)
            local = outgoing.place(target)
            targets.append((target, local))
            tokens[url.position] = url.replaced(local)
        code = call(tokens)
        if not code:
            for target, local in targets:
                print_aside(outgoing.upload(target, local))
    return code
