"""What each CANN release needs, and versions that fit each other."""

import re
import subprocess
from importlib.resources import files

import pytest

from jumar.ground.errors import UserError
from jumar.launching.cann import (
    environment_text,
    every_line,
    facts,
    fitting,
    release_lines,
    release_names,
)


def run(text: str, *names: str) -> dict[str, str]:
    """The variables after a script, started without any."""
    shown = "".join(f'printf "%s\\n" "${{{name}:-}}"\n' for name in names)
    done = subprocess.run(
        ["bash", "-c", f"set -eu\n{text}\n{shown}"],
        env={"HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(names, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("release", release_names())
def test_every_line_has_reason_and_source_and_runs_without_cann(release):
    lines = release_lines(release)
    assert lines
    for each in [*lines, *every_line()]:
        assert len(each.reason) > 20
        assert len(each.source) > 10
        assert "\n" not in each.line
        assert each.reason in environment_text(release)
    assert run(environment_text(release), "HCCL_CONNECT_TIMEOUT")["HCCL_CONNECT_TIMEOUT"] == "1200"


def test_releases_without_set_env_get_every_path():
    seen = run(environment_text("20.2"), "ASCEND_OPP_PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
    assert seen["ASCEND_OPP_PATH"] == "/usr/local/Ascend/nnae/latest/opp"
    assert seen["PYTHONPATH"].startswith("/usr/local/Ascend/tfplugin/latest/tfplugin/python")
    assert "/usr/local/Ascend/nnae/latest/fwkacllib/lib64" in seen["LD_LIBRARY_PATH"].split(":")
    older = run(environment_text("V100R020C00"), "ASCEND_OPP_PATH", "PYTHONPATH")
    assert older["ASCEND_OPP_PATH"] == "/usr/local/Ascend/nnae/latest/opp"
    assert older["PYTHONPATH"].endswith("/site-packages/topi")


def test_variable_set_by_the_user_is_kept():
    text = f"export HCCL_CONNECT_TIMEOUT=600\n{environment_text('9.1.0')}"
    assert run(text, "HCCL_CONNECT_TIMEOUT") == {"HCCL_CONNECT_TIMEOUT": "600"}


@pytest.mark.parametrize(
    ("release", "same_as"),
    [("8.3.RC1", "8.3"), ("v100r020c20", "20.2"), ("9.1.0", "9.0"), ("5.0.4", "5.1")],
)
def test_release_is_recognised_by_two_numbers_or_its_old_name(release, same_as):
    assert release_lines(release) == release_lines(same_as)


@pytest.mark.parametrize("release", ["4.0", "21.0", "latest", "9"])
def test_unknown_release_is_refused(release):
    with pytest.raises(UserError, match="unknown CANN release"):
        release_lines(release)


def test_torch_and_its_adapter_have_the_same_release():
    names = set(
        re.findall(r'"cann": "([^"]+)"', (files("jumar.launching") / "versions.json").read_text())
    )
    assert len(names) > 3
    for name in names:
        release = fitting(name)
        numbers = release.torch.split(".")[:2]
        assert release.adapter.split(".")[:2] == numbers
        assert tuple(map(int, numbers)) >= (2, 6)
        assert release.tag.startswith(name.lower())
    assert fitting().cann in names
    assert fitting("8.5").cann == "8.5.0"
    assert "910b" in facts("versions")["chips"]


def test_release_without_a_matching_torch_is_refused():
    with pytest.raises(UserError, match="no known image of CANN 7"):
        fitting("7.0")
