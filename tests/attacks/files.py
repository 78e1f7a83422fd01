"""Files of others, by kind: images, profiles, dumps, scripts, rank tables, logs."""

import json
import os
from pathlib import Path
from typing import Any

from tests.attacks.ground import Ground
from tests.attacks.hostile import (
    HANDLER,
    ONE_LINE,
    WORDS,
    bomb,
    climbing,
    code,
    huge_png,
    lying_zip,
    numbered,
    object_array,
    tarred,
    worded,
    write_json,
    zipped,
)
from tests.data.pictures import picture

PNG = picture(kind="PNG", size=(40, 40))
DOCUMENT = "\n".join((*ONE_LINE, "a" * 100_000, "\x00\x1b[2J", ""))
OP_COLUMNS = (
    "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,"
    "Input Shapes\n"
)


def pictures(ground: Ground) -> list[Path]:
    """Archives that climb, link and explode; a folder of links, and files that lie."""
    climbs = climbing(PNG, ".png", ground.outside)
    links = {"link": str(ground.outside), "train/cat/link.png": str(ground.secret)}
    inside = {f"train/cat/{number}.png": PNG for number in range(3)}
    worded_names = {f"train/cat {word[:60]}/{word[:60]}.png": PNG for word in ONE_LINE}
    folder = ground.work / "pictures" / "train" / "cat"
    folder.mkdir(parents=True)
    (folder / "linked.png").symlink_to(ground.secret)
    (folder / "\x1b[2Jclear.png").write_bytes(PNG)
    (folder / f"<img src=x onerror={HANDLER}()>.png").write_bytes(PNG)
    (folder / "huge.png").write_bytes(huge_png())
    (folder / "pickle.png").write_bytes(bomb(ground.canary))
    return [
        ground.write("climbing.zip", zipped({**climbs, **inside}, links=links)),
        ground.write("named.zip", zipped({**inside, **worded_names})),
        ground.write("lying.zip", lying_zip("train/cat/1.png")),
        ground.write("huge.zip", zipped({"train/cat/1.png": huge_png()})),
        ground.work / "pictures",
    ]


def cell(text: str) -> str:
    """A cell of a table."""
    return '"' + text.replace('"', '""') + '"'


def profile_folder(ground: Ground) -> list[Path]:
    """Tables, traces, archives and databases of profilers."""
    words = [word for word in ONE_LINE if "\n" not in word]
    rows = [
        f"1,{cell(word)},{cell(word)},{cell(word)},{start}.5,3.5,0,8,{cell(word)}\n"
        for start, word in enumerate(words, 1)
    ]
    sizes = '1,a,MatMul,AI_CORE,1e308,-1,NaN,99999999999999999999,"""1e9;"""\n'
    table = OP_COLUMNS + "".join(rows) * 3
    events = [
        {"ph": "X", "cat": "cpu_op", "name": word, "pid": 1, "tid": 2, "ts": at, "dur": 3}
        | {"args": {"Input Dims": [[2**62, 2**62], word], "Input type": [word]}}
        for at, word in enumerate(words)
    ]
    kernels = [
        {"ph": "X", "cat": "kernel", "name": word, "pid": 0, "tid": 7, "ts": at, "dur": 2}
        | {"args": {"correlation": at, "stream": word, "device": 0}}
        for at, word in enumerate(words)
    ]
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 99}
    trace: dict[str, Any] = {
        "schemaVersion": 1,
        "distributedInfo": {"rank": 0},
        "traceEvents": [{**step, "pid": 1, "tid": 2}, *events, *kernels],
    }
    write_json(ground.work / "trace.json", trace)
    write_json(ground.work / "numbers.json", numbered(trace))
    times = {"Start Timestamp(us)": 1.5, "Elapse Time(ms)": 2.5}
    links_used = {word: {"Transit Size(MB)": 1.5} for word in WORDS[:10]}
    entry = {"Communication Time Info": times, "Communication Bandwidth Info": links_used}
    collectives = {"collective": {f"{word}@1": entry for word in WORDS[:10]}}
    write_json(ground.work / "talk" / "communication.json", {"step1": collectives})
    links = {"link": str(ground.outside)}
    climbs = climbing(table.encode(), ".csv", ground.outside)
    (ground.work / "capture").mkdir()
    (ground.work / "capture" / "kernel_details.csv").symlink_to(ground.secret)
    return [
        ground.write("table/kernel_details.csv", table).parent,
        ground.write("sizes/kernel_details.csv", OP_COLUMNS + sizes * 3).parent,
        ground.work / "trace.json",
        ground.work / "numbers.json",
        ground.write(
            "climbing.zip", zipped({**climbs, "kernel_details.csv": table.encode()}, links=links)
        ),
        ground.write("lying.zip", lying_zip("kernel_details.csv")),
        ground.write("ascend_pytorch_profiler_0.db", b"SQLite format 3\0" + bytes(200)),
        ground.work / "capture",
        ground.work / "talk",
    ]


def dump(ground: Ground, made: Path) -> list[Path]:
    """Dumps that name files elsewhere, hold objects, and say harmful things."""
    stored = json.loads((made / "dump.json").read_text())

    def changed(name: str, value: Any) -> Path:
        folder = ground.work / name
        folder.mkdir()
        for path in made.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        write_json(folder / "dump.json", value)
        return folder

    climbing_shard = changed("climbing", {**stored, "shards": {"../../outside/secret.txt": 6}})
    pickled = changed("pickled", stored)
    for path in pickled.glob("*.safetensors"):
        path.write_bytes(bomb(ground.canary))
    named = {**stored, "facts": dict(zip(ONE_LINE, ONE_LINE, strict=True)), "notices": [*ONE_LINE]}
    objects = ground.work / "objects"
    objects.mkdir()
    for name in ("Conv2D.conv.1.0.1736408883704643.output.0.npy", "Functional.relu.0.forward.npy"):
        (objects / name).write_bytes(object_array(ground.canary))
    ground.write("ptdbg/api.pkl", bomb(ground.canary))
    first = stored["calls"][0]
    calls = [
        {**first, "op": word, "layer": word, "cann": word, "arguments": {"0": word}}
        for word in WORDS
    ]
    values = [[row[0], WORDS[number], *row[2:]] for number, row in enumerate(first["values"])]
    calls[0]["values"] = values
    hostile_calls = {**stored, "calls": calls, "number_of_calls": len(calls)}
    return [
        changed("steps", {**stored, "step": "../../../escaped", "rank": "/etc"}),
        changed("calls", hostile_calls),
        climbing_shard,
        pickled,
        changed("named", named),
        changed("worded", worded(stored, ONE_LINE)),
        changed("numbered", numbered(stored)),
        objects,
        ground.work / "ptdbg" / "api.pkl",
    ]


def cann_results(ground: Ground) -> list[Path]:
    """Results of msaccucmp and overflow records of harmful names and impossible numbers."""
    head = "Index,OpType,NPUDump,GroundTruth,TensorIndex,OverFlow,CosineSimilarity,Odd"
    lines = [
        f"{number},{cell(word)},{cell(word)},*,{cell(f'{word}:output:0')},YES,{value},{cell(word)}"
        for word in ONE_LINE
        for number, value in enumerate(("nan", "1e999", "-1", "9" * 400))
    ]
    reasons = [f"1,Add,{cell(word)},b,NaN,NaN,NaN,NaN,{cell(word)}" for word in ONE_LINE]
    data = {"status": 32, "task_id": 3, "stream_id": 12}
    record = {"magic": "0x5a5a5a5a", "acc_list": {"valid": 1, "acc_type": "AIC", "data": data}}
    for name, value in {
        "named": {word: {**data, "status": 2} for word in ONE_LINE},
        "worded": worded(record),
        "numbered": numbered(record),
        "climbing": {"AIC": {**data, "task_id": "../../outside/secret.txt"}},
    }.items():
        write_json(ground.work / f"{name}.json", value)
    dumped = f"MatMulV2.{ONE_LINE[0].replace('/', '_')}.3.12.1767268800001000"
    return [
        *sorted(ground.work.glob("*.json")),
        ground.write(dumped, b""),
        ground.write("result_1.csv", "\n".join([head, *lines])),
        ground.write("result_2.csv", "\n".join([f"{head},CompareFailReason", *reasons])),
        ground.write("result_3.csv", f"{head}\n" + "1" * 200_000),
        ground.write("deep.json", "[" * 50_000),
        ground.write("pickle.csv", bomb(ground.canary)),
    ]


def scripts(ground: Ground) -> list[Path]:
    """Projects whose code must not run, whose names say harmful things, and that link elsewhere."""
    project = ground.work / "project"
    tf = "import tensorflow as tf\nsess = tf.Session()\n"
    words = "".join(f"print({word!a})\n" for word in WORDS[:9])
    for name, text in {
        "train.py": code(ground.canary) + tf + words,
        "setup.py": code(ground.canary),
        "conftest.py": code(ground.canary),
        "tensorflow.py": code(ground.canary),
        "\x1b[2Jclear.py": tf,
        f"<img src=x onerror={HANDLER}()>.py": tf,
        "{{7*7}}.py": tf,
        "=cmd.py": tf,
        "bidi.py": f"# {WORDS[1]}\n{tf}x = '{WORDS[1][:-2]}'\n",
        "markup.py": f'{tf}tf.train.Saver(); y = """{WORDS[2]}"""\nsess.run("{WORDS[2][:20]}")\n',
        "deep.py": tf + "x = " + "(" * 3000 + ")" * 3000 + "\n",
        "long.py": tf + "x = " + "-" * 20000 + "1\n",
        "number.py": tf + "x = " + "9" * 5000 + "\n",
        "zero.py": tf + "\0",
    }.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (project / "linked.py").symlink_to(ground.secret)
    (project / "up").symlink_to(ground.outside)
    (project / "round").symlink_to(project)
    os.mkfifo(project / "pipe.py")
    return [project, project / "train.py"]


def wrong_report(ground: Ground, value: dict[str, Any]) -> list[Path]:
    """Reports of ports, with harm in each of their texts."""
    stored = json.dumps(value)
    files = value["files"][0]
    names = [
        {**files, "path": word} for word in (*ONE_LINE, "/etc/passwd", "../../outside/secret.txt")
    ]
    kept = {"status", "severity", "confidence", "rule", "format"}

    def said(each: Any, turn: int = 0) -> Any:
        if isinstance(each, dict):
            return {
                k: v if k in kept else said(v, turn + n) for n, (k, v) in enumerate(each.items())
            }
        if isinstance(each, list):
            return [said(v, turn + n) for n, v in enumerate(each)]
        return ONE_LINE[turn % len(ONE_LINE)] if isinstance(each, str) else each

    for name, changed in {
        "words": worded(value),
        "said": {**said(value), "format": value["format"]},
        "names": {**value, "files": names, "root": ONE_LINE[2], "options": list(ONE_LINE)},
        "numbers": numbered(value),
    }.items():
        write_json(ground.work / f"{name}.json", changed)
    ground.write("deep.json", stored[:-1] + ', "x": ' + "[" * 50_000)
    return sorted(ground.work.glob("*.json"))


def rank_table(ground: Ground) -> list[Path]:
    """Rank tables of harmful words and impossible numbers."""
    server = {
        "server_id": "10.0.0.1",
        "device": [{"device_id": "0", "device_ip": "192.168.1.1", "rank_id": "0"}],
    }
    table = {"version": "1.0", "server_count": "1", "status": "completed", "server_list": [server]}
    message = [
        {
            **server,
            "server_id": word,
            "host_ip": word,
            "device": [{**server["device"][0], "device_ip": word}],
        }
        for word in ONE_LINE
    ]
    kinds = {
        "words": {**table, "server_list": message, "server_count": str(len(message))},
        "everything": worded(table),
        "ranks": {
            **table,
            "server_list": [{**server, "device": [{"device_id": "9" * 5000, "rank_id": "-1"}]}],
        },
        "numbers": {**table, "server_count": 10**400, "server_list": [numbered({"a": 1})] * 3},
    }
    for name, value in kinds.items():
        write_json(ground.work / f"{name}.json", value)
    return sorted(ground.work.glob("*.json"))


def mixlist(ground: Ground) -> list[Path]:
    """Op lists of harmful names."""
    write_json(ground.work / "names.json", {"black-list": {"to-add": [*ONE_LINE]}, WORDS[2]: {}})
    write_json(
        ground.work / "types.json", {"black-list": {"to-add": 10**400}, "gray-list": WORDS[0]}
    )
    ground.write("deep.json", "[" * 50_000)
    ground.write("pickle.json", bomb(ground.canary))
    return sorted(ground.work.glob("*.json"))


def logs(ground: Ground) -> list[Path]:
    """Logs with escapes in what is quoted of them, and archives of them."""
    lines = [
        f"[rank{number}]: RuntimeError: [ERROR] HCCL {word} ERR02200 EI0002 CUDA out of memory\n"
        for number, word in enumerate(ONE_LINE)
    ]
    text = "Traceback (most recent call last):\n" + "".join(lines) + "9" * 5000 + "\n"
    data = text.encode("utf-8", "surrogatepass") + b"\xff\xfe\0"
    climbs = climbing(data, ".log", ground.outside)
    links = {"link": str(ground.outside), "secret.log": str(ground.secret)}
    folder = ground.work / "folder"
    folder.mkdir()
    (folder / "secret.log").symlink_to(ground.secret)
    (folder / "round").symlink_to(folder)
    (folder / "\x1b[2Jrank0.log").write_bytes(data)
    os.mkfifo(folder / "pipe.log")
    return [
        ground.write("plain.log", data),
        ground.write("climbing.zip", zipped(climbs, links=links)),
        ground.write("climbing.tar.gz", tarred(climbs, links=links)),
        ground.write("lying.zip", lying_zip("a.log")),
        folder,
    ]


def sweep(ground: Ground) -> Path:
    """A sweep whose runs lie elsewhere and whose fields say harmful things."""
    runs = [
        {"name": name, "varied": [f"seed={word}"], "assignments": [f"seed={word}"], "exit_code": 0}
        for name, word in zip(
            ("../../outside/run", str(ground.outside / "run"), *ONE_LINE),
            (*ONE_LINE, "a", "b"),
            strict=True,
        )
    ]
    plan = {
        "recipe": "alexnet-demo",
        "vary": ["seed=1,2"],
        "common": [],
        "baseline": [],
        "repeats": 1,
    }
    folder = ground.work / "sweep"
    write_json(folder / "sweep.json", {**plan, "runs": runs})
    return folder


def tensorflow(ground: Ground) -> list[Path]:
    """Checkpoints of TensorFlow whose state leads elsewhere, and an index that lies."""
    state = (
        'model_checkpoint_path: "../../outside/secret"\nall_model_checkpoint_paths: "/etc/passwd"\n'
    )
    ground.write("state/checkpoint", state)
    footer = b"\xff" * 40 + bytes.fromhex("57fb808b247547db")
    ground.write("index/model.index", b"\0" * 40 + footer)
    ground.write("index/model.data-00000-of-00001", b"\0" * 8)
    return [ground.work / "state", ground.work / "index" / "model.index"]


def trained_on(ground: Ground) -> list[Path]:
    """TFRecord files that lie about their lengths."""
    ground.write("shards/train-00000-of-00001", b"\xff" * 16 + bytes(100))
    ground.write("shards/validation-00000-of-00001", bomb(ground.canary))
    return [ground.work / "shards"]
