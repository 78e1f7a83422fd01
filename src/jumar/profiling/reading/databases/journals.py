"""Databases whose writer was killed, leaving a journal behind."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def with_journal_applied(path: Path) -> Generator[tuple[Path, str], None, None]:
    """Yield the database and its URI options; if it has a journal, a copy for SQLite to recover.

    Without its journal, a database may silently lack rows or contain half a transaction; in normal
    mode, SQLite would modify the user's file.
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
