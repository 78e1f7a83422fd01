"""Events as JSON lines, which the supervisor reads during and after the run."""

import json
import os
import time


class Events:
    """The file of events; each line is on the disk before the script continues.

    Several processes append to it, each line in one write. `process` is the name of a process
    that the script started, empty for the script itself.
    """

    def __init__(self, path, begin, process=""):
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - open until the process ends
        self._begin = begin
        self.process = process

    def write(self, kind, **fields):
        line = {"event": kind, "seconds": round(time.time() - self._begin, 3)}
        if self.process:
            line.update(process=self.process, pid=os.getpid())
        line.update(fields)
        self._file.write(json.dumps(line).encode() + b"\n")
