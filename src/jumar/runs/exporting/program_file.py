"""Write a traced network as a `.pt2` file, and run it in a process without jumar."""

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram

from jumar.ground.errors import UserError
from jumar.runs.exporting.checking import Array, Runner
from jumar.runs.exporting.tracing import calling_exporter

FACTS = "facts.json"
"""Name of the facts in the archive: `torch.export.load(file, extra_files={"facts.json": ""})`."""

_RUN = """
import sys, numpy, torch
torch.set_num_threads(1)
network = torch.export.load(sys.argv[1]).module()
inputs = numpy.load("inputs.npz")
results = {}
for batch in range(int(sys.argv[2])):
    names = sorted(name for name in inputs.files if name.startswith(f"{batch:03d}_"))
    with torch.no_grad():
        outputs = network(*(torch.from_numpy(inputs[name]) for name in names))
    for position, output in enumerate(outputs if isinstance(outputs, tuple) else (outputs,)):
        results[f"{batch:03d}_{position:03d}"] = output.numpy()
assert "jumar" not in sys.modules
numpy.savez("results.npz", **results)
"""
_TIMEOUT_S = 600


def program_content(program: ExportedProgram, facts: Mapping[str, Any]) -> bytes:
    """Return the bytes of a `.pt2` archive."""
    program.example_inputs = None  # pyright: ignore[reportAttributeAccessIssue]
    buffer = io.BytesIO()
    with calling_exporter():
        torch.export.save(program, buffer, extra_files={FACTS: json.dumps(facts)})
    return buffer.getvalue()


def program_runner(content: bytes) -> Runner:
    """Return a runner of a `.pt2` archive in another process, which imports only torch."""

    def run(batches: Sequence[tuple[Array, ...]]) -> list[list[Array]]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "network.pt2").write_bytes(content)
            arrays: dict[str, Any] = {
                f"{number:03d}_{position:03d}": array
                for number, batch in enumerate(batches)
                for position, array in enumerate(batch)
            }
            np.savez(folder / "inputs.npz", **arrays)
            completed = subprocess.run(
                [sys.executable, "-c", _RUN, "network.pt2", str(len(batches))],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            if completed.returncode:
                message = (completed.stderr.strip() or "no message").splitlines()[-1]
                raise UserError(f"the file cannot be used: {message}", where="check")
            with np.load(folder / "results.npz") as results:
                return [
                    [results[key] for key in sorted(results) if key.startswith(f"{number:03d}_")]
                    for number in range(len(batches))
                ]

    return run
