"""How numbers and names stand in a message."""

_SIBILANTS = ("s", "x", "z", "ch", "sh")


def counted(number: float, noun: str) -> str:
    """A number with its noun: `1 finding`, `2 findings`, `0 losses`, `1.5 calls`.

    Args:
        number: How many; a whole one is written without a decimal point.
        noun: The regular English noun in the singular, after any adjectives.
    """
    text = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{text} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith(_SIBILANTS):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"
