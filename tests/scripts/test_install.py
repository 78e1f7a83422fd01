"""What `make` says while it prepares the virtual environment."""

from scripts.install import sizes_text


def test_download_size_names_the_goals_if_there_are_several() -> None:
    assert sizes_text(["run"]) == "80 MB"
    assert sizes_text(["run", "ci"]) == "80 MB for run, 250 MB for ci"
