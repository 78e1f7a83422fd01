"""The script that ModelArts starts: data from object storage in, results out."""

from importlib.resources import files

from jumar.porting.npu.session_options import OUTPUT_FOLDERS, literal

MODELARTS_SCRIPT = "modelarts_run.py"
_ENTRY = 'ENTRY = ""\n'
_FOLDERS = "OUTPUT_FOLDERS: tuple[str, ...] = ()\n"


def modelarts_script(*, entry: str) -> str:
    """The text of `modelarts_run.py` for a script.

    Args:
        entry: The script, relative to the tree; empty when it has to be named when starting.
    """
    text = script_text(MODELARTS_SCRIPT)
    assert text.count(_ENTRY) == text.count(_FOLDERS) == 1
    folders = ", ".join(literal(name) for name in OUTPUT_FOLDERS)
    text = text.replace(_ENTRY, f"ENTRY = {literal(entry)}\n")
    return text.replace(_FOLDERS, f"OUTPUT_FOLDERS: tuple[str, ...] = ({folders})\n")


def script_text(name: str) -> str:
    """The text of a file in `scripts/`, as it is."""
    return (files("jumar.porting.launching") / "scripts" / name).read_text(encoding="utf-8")
