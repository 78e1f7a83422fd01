"""Small vocabularies for tests."""

from pathlib import Path

from jumar.data.text.vocabulary import SPECIAL

PIECES = (
    *SPECIAL,
    *"abcdefghijklmnopqrstuvwxyz0123456789.,!?'",
    *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"),
    *"中文词语天气很好今明我们你他的是在有人",
    *("the", "cat", "sat", "on", "mat", "##ing", "##ed", "dog", "ran", "un", "##want", "run"),
    "##ς",
    "ο",
    "##δ",
    "##ο",
    "##σ",
)


def write_vocabulary(path: Path, pieces: tuple[str, ...] = PIECES) -> Path:
    path.write_bytes("".join(f"{piece}\n" for piece in pieces).encode())
    return path
