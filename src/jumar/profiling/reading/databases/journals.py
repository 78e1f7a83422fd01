"""Databases whose writer was killed, with the journal it left behind."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def settled(path: Path) -> Generator[tuple[Path, str], None, None]:
    """The database as it is, or a copy of it with the journal its writer left behind.

    Otherwise rows only in the journal would silently be missing and a cut-off transaction half
    applied; SQLite would repair that in the user's own file.
    """
    journals = [path.with_name(path.name + ending) for ending in ("-wal", "-journal")]
    journals = [journal for journal in journals if journal.is_file() and journal.stat().st_size]
    if not journals:
        yield path, "mode=ro&immutable=1"
        return
    with TemporaryDirectory(prefix="jumar-profile-") as folder:
        for file in (path, *journals):
            shutil.copyfile(file, Path(folder) / file.name)
        yield Path(folder) / path.name, "mode=rw"
