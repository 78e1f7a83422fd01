"""English that is left in a Chinese report."""

import re

_FOREIGN = re.compile(
    r"^ +\| [^\n]*|```.*?```|\"output\": \[.*?\]"  # what the script printed
    r"|\w+Error: [^；;|\"\n]*|Missing parentheses[^|\"\n]*"  # what Python said
    r"|'jumar port'|-m pip install \S+|loss scale|loss_scale",
    re.MULTILINE | re.DOTALL,
)
_WORDS = re.compile(r"\b[A-Za-z]+ [a-z]+\b")


def english_in(text: str) -> list[str]:
    """Two English words in a row, apart from what the script, Python and its tools are called."""
    return _WORDS.findall(_FOREIGN.sub("", text))
