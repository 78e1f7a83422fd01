"""`jumar launch ranktable`: reports the content and faults of a table, and converts it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.paths import exists, read_text
from jumar.ground.text import counted
from jumar.launching.ranktables.checking import (
    HCCN_CONF,
    against_machine,
    against_variables,
    contradictions,
)
from jumar.launching.ranktables.reading import read_rank_table
from jumar.launching.ranktables.table import RankTable, Version
from jumar.launching.ranktables.writing import converted, torchrun_lines

_MAX_SERVERS_SHOWN = 16
"""Maximum number of servers whose torchrun command is shown."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Lines about the content of a table, and a line for each contradiction."""

    about: tuple[str, ...]
    wrong: tuple[str, ...]


def report_on(
    path: Path,
    *,
    variables: Mapping[str, str],
    hccn: Path = HCCN_CONF,
    server_id: str = "",
) -> Report:
    """Read a table and check it against itself, the environment and this machine.

    Args:
        path: The table.
        variables: The environment.
        hccn: The driver's file with the addresses of the devices.
        server_id: The server_id of this machine; by default detected from its addresses.

    Raises:
        UserError: The file cannot be read, or is not a rank table.
    """
    table = read_rank_table(path)
    machine, machine_contradictions = against_machine(table, hccn, server_id)
    contradictions_found = [
        *contradictions(table),
        *against_variables(table, path, variables),
        *machine_contradictions,
    ]
    form = "without version" if table.version == "0" else table.version
    servers = counted(len(table.servers), "server")
    about = [f"{path}: form {form}, {servers}, {counted(len(table.devices), 'device')}; {machine}"]
    lines = torchrun_lines(table)
    about += lines[:_MAX_SERVERS_SHOWN]
    if len(lines) > _MAX_SERVERS_SHOWN:
        about.append(f"... and {counted(len(lines) - _MAX_SERVERS_SHOWN, 'server')} more")
    return Report(about=tuple(about), wrong=tuple(contradictions_found))


def sound_table(path: Path) -> RankTable:
    """Read a table for use in training, which must have no contradictions.

    Raises:
        UserError: The table has contradictions; the message lists the first ones.
    """
    table = read_rank_table(path)
    contradictions_found = contradictions(table)
    if contradictions_found:
        raise UserError(
            "; ".join(contradictions_found[:3]),
            where=str(path),
            todo=f"Run jumar launch ranktable {shlex.quote(str(path))} to list all.",
        )
    return table


def convert_to(path: Path, version: Version, to: Path) -> None:
    """Write a table in another version; an existing file with other content is kept.

    Raises:
        UserError: The table lacks a required field or has contradictions, or the file exists with
            other content.
    """
    text = converted(sound_table(path), version)
    if exists(to) and read_text(to) != text:
        raise UserError("already exists", where=str(to), todo="Choose another --to.")
    write_text(to, text)
