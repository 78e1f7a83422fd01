"""Follows Python's tracebacks in a stream, and recognises exceptions that ended nothing."""

import re
from typing import Final

from jumar.failures.reading import raised
from jumar.failures.reading.raised import HANDLED

MAX_STREAMS: Final = 20_000
Stream = tuple[int, int | None, int | None]
"""Index of the log, rank, process."""
_FRAME: Final = re.compile(r'(?:^|(?<=[\s\]|>:]))File "([^"]{1,400})", line (\d{1,7})')
"""A frame, with any prefix that a launcher added."""
_OTHER_FRAME: Final = re.compile(
    r"\s*│ (\S{1,400}\.py):(\d{1,7}) in \S|File (\S{1,400}\.py):(\d{1,7}), in \S"
    r"|(Cell In ?\[\d{1,6}\]), line (\d{1,7})"
)
"""A frame as the package `rich` and notebooks print it."""
_LIBRARY: Final = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d|\.egg[/\\]|\.pyx$|^<"
    r"|[/\\](?:bin|Scripts)[/\\][\w-]{1,60}$"
    r"|[/\\]Lib[/\\](?:multiprocessing|concurrent|importlib|asyncio|urllib)[/\\]"
    r"|\\[Ll]ib\\(?:runpy|threading|subprocess|contextlib|codecs|pickle|os|shutil|socket|ssl)\.py$"
)
_FUNCTION: Final = re.compile(r'File "([^"]{1,400})", line \d{1,7}, in (\S{1,200})')
_SURVIVED: Final = "Exception ignored "
_MAX_BETWEEN: Final = 400
"""Maximum number of lines, such as frames of a graph, between a wrapping line and its message."""


class Tracebacks:
    """The current or last traceback of each stream."""

    def __init__(self) -> None:
        self._frames: dict[Stream, tuple[str, bool]] = {}
        self._ignored: dict[Stream, bool] = {}
        self._outermost: dict[Stream, tuple[str, ...]] = {}
        self._handlers: dict[Stream, tuple[str, ...]] = {}
        self._inside: set[Stream] = set()
        self._expected_in: dict[Stream, int] = {}

    def add_line(self, stream: Stream, text: str) -> None:
        """Process a line without launcher prefixes."""
        if "File " in text or "│ " in text or text.startswith("Cell In"):
            self._add_frame(stream, text)
            self._add_function(stream, text)
        elif "Traceback (most" in text:
            self._frames.pop(stream, None)
            self._outermost.pop(stream, None)
            self._inside.discard(stream)
            # An ignored exception has one traceback; a second one belongs to something else.
            if self._ignored.pop(stream, None) is False:
                self._ignored[stream] = True
        elif HANDLED in text and stream in self._outermost:
            self._handlers[stream] = self._outermost[stream]
        elif _SURVIVED in text[:40] and len(self._ignored) < MAX_STREAMS:
            self._ignored[stream] = False

    @property
    def expects_message(self) -> bool:
        """Whether some stream still expects a message, so that any line may be relevant."""
        return bool(self._expected_in)

    def is_message(self, stream: Stream, text: str, before: str) -> bool:
        """Return whether a line is the message of an exception that a line above passed on."""
        if raised.has_message_below(text):
            if len(self._expected_in) < MAX_STREAMS:
                self._expected_in[stream] = _MAX_BETWEEN
            return False
        lines_left = self._expected_in.get(stream, 0)
        if lines_left == 0:
            return False
        if raised.is_no_message(text) or is_source_in(text, before):
            self._expected_in[stream] = lines_left - 1
            if lines_left > 1:
                return False
        del self._expected_in[stream]
        return lines_left > 1 and not raised.is_named(text) and not raised.is_wrapped(text)

    def has_frames(self, stream: Stream) -> bool:
        return stream in self._frames

    def frame(self, stream: Stream) -> str:
        """Return the deepest line in the script, or in a library if there is none."""
        return self._frames.get(stream, ("", False))[0]

    def ended_nothing(self, stream: Stream) -> bool:
        """Return whether Python ignored the exception that a line reports."""
        return self._ignored.pop(stream, None) is not None

    def went_another_way(self, stream: Stream) -> bool:
        """Return whether the handler of the previous exception tried another way, which failed.

        A traceback begins with the function that caught the exception. If the next one continues
        from there, the program had found another way, which failed for its own reason.
        """
        if stream in self._inside and stream not in self._handlers:
            self._inside.discard(stream)
            return True
        return False

    def _add_function(self, stream: Stream, text: str) -> None:
        match = _FUNCTION.search(text)
        if match is None:
            return
        if stream in self._inside:  # a frame below the handler
            self._handlers.pop(stream, None)
        elif match.groups() == self._handlers.get(stream):
            self._inside.add(stream)
        if len(self._outermost) < MAX_STREAMS:
            self._outermost.setdefault(stream, match.groups())

    def _add_frame(self, stream: Stream, text: str) -> None:
        match = _FRAME.search(text) or _OTHER_FRAME.match(text)
        if match is None:
            return
        path, number = (group for group in match.groups() if group is not None)
        in_script = not _LIBRARY.search(path)
        previous = self._frames.get(stream)
        # The deepest line in the script itself is more useful than a line in a library.
        deeper = in_script or previous is None or not previous[1]
        if deeper and (previous is not None or len(self._frames) < MAX_STREAMS):
            self._frames[stream] = (f"{path}:{number}", in_script)


def is_source_in(text: str, before: str) -> bool:
    """Return whether a line is the source code below a frame: `raise ValueError("...")`."""
    frame = _FRAME.search(before)
    return frame is not None and text[max(0, frame.start() - 2) :].startswith("    ")
