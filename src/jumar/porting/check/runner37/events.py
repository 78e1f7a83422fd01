"""Events as JSON lines, which the supervisor reads while the script runs and afterwards."""

import json
import time


class Events:
    """The file of events; each line is on the disk before the script goes on."""

    def __init__(self, path):
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - open until the process ends
        self._begin = time.time()

    def write(self, kind, **fields):
        line = {"event": kind, "seconds": round(time.time() - self._begin, 3)}
        line.update(fields)
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
