"""`python -m tests.npu_standin.run train ...`: the command jumar with the stand-in installed."""

import os
import sys

import torch

from tests.npu_standin import install

HAZARD_EXIT_CODE = 70


def main() -> None:
    """Run the command; leave with 70 where memory was freed while a stream still used it."""
    install()
    from jumar.cli.main import run

    try:
        run()
    finally:
        loaded = "torch_npu" in sys.modules
        hazards = torch.ops.npu_standin.stream_hazards() if loaded else 0
        if hazards:
            sys.stderr.write(f"{hazards} tensors were freed under a stream that used them\n")
            sys.stderr.flush()
            os._exit(HAZARD_EXIT_CODE)


if __name__ == "__main__":
    main()
