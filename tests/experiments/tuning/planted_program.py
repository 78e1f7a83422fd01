"""A program that answers as a measured training does, with planted times; it needs no torch.

Words: a JSON object with `step_s`, `hash`, and optionally `dies` (`start` or `block`), `noise` with
its `seed`, and `pattern`, factors on the times of blocks in turn.
"""

import itertools
import json
import os
import random
import signal
import sys

plan = json.loads(sys.argv[1])
draw = random.Random(plan.get("seed", 0))
pattern = itertools.cycle(plan.get("pattern", [1.0]))
if plan.get("dies") == "start":
    sys.exit("jumar: there is no such thing here")


def reply(content: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


reply(
    {
        "kind": "ready",
        "hashes": {"weights": plan["hash"]},
        "memory_bytes": 1 << 20,
        "memory_free_bytes": 1 << 30,
        "device": "cpu",
        "device_name": "a planted processor",
        "on_host": True,
        "cores": 4,
        "threads": 1,
        "workers": 8,
    }
)
for line in sys.stdin:
    steps = int(line.split()[1])
    if plan.get("dies") == "block":
        os.kill(os.getpid(), signal.SIGKILL)
    seconds = (
        next(pattern) * steps * plan["step_s"] * draw.lognormvariate(0, plan.get("noise", 0.01))
    )
    share = plan.get("data_share", 0.1)
    reply(
        {
            "kind": "block",
            "steps": steps,
            "seconds": seconds,
            "queued_s": 0.0,
            "data_s": share * seconds,
            "cpu_s": seconds,
            "loader_cpu_s": 0.0,
            "memory_bytes": 1 << 20,
        }
    )
