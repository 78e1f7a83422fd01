"""Parts from which the sentences of a check are assembled, in both languages."""

from typing import Final

from jumar.ground.text import Text, counted

NOTHING: Final = Text(en="", zh="")

ORIGINAL: Final = Text(en="the original", zh="原脚本")
PORT: Final = Text(en="the port", zh="移植结果")


def as_is(text: str) -> Text:
    """Return a text that is the same in both languages, such as a name or a script's message."""
    return Text(en=text, zh=text)


def number_of(number: int, noun: str, chinese: str) -> Text:
    """Return a number with its noun.

    Args:
        number: The count.
        noun: The English noun in the singular.
        chinese: The Chinese noun, with its measure word before it.
    """
    return Text(en=counted(number, noun), zh=f"{number} {chinese}")


def steps(number: int) -> Text:
    """Return a number of steps: `1 step`, `2 steps`."""
    return number_of(number, "step", "步")


def joined(*parts: Text) -> Text:
    """Join the clauses of a sentence, without empty ones."""
    clauses = [part for part in parts if part.en]
    return Text(
        en="; ".join(part.en for part in clauses), zh="；".join(part.zh for part in clauses)
    )
