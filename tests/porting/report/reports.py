"""Reports as a port leaves them, made by hand."""

from jumar.porting.edits import (
    Edit,
    FileReport,
    Finding,
    Kept,
    Place,
    Text,
    TreeReport,
)

TRAIN = """\
# coding: utf-8
'''Train a small network.'''
from __future__ import print_function

import tensorflow as tf


def network(images, keep):
    net = tf.layers.dense(images, 64, activation=tf.nn.relu)
    net = tf.nn.dropout(net, rate=1 - keep)
    return tf.layers.dense(net, 10)


def inputs(names):
    queue = tf.train.string_input_producer(names, shuffle=True)
    return tf.TFRecordReader().read(queue)


def main():
    config = tf.ConfigProto()
    config.gpu_options.allow_growth = True
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        for step in range(100):
            session.run('train')
            if step % 10 == 0:
                print('step', step, '完成')


if __name__ == '__main__':
    main()
"""


def at(text: str, piece: str) -> Place:
    """Where a piece of a text begins."""
    before = text[: text.index(piece)]
    return Place(line=before.count("\n") + 1, column=len(before) - before.rfind("\n"))


def changed(before: str, pairs: dict[str, str]) -> str:
    after = before
    for old, new in pairs.items():
        assert after.count(old) == 1
        after = after.replace(old, new)
    return after


def edit(before: str, after: str, old: str, new: str, rule: str, reason: Text) -> Edit:
    return Edit(
        rule=rule,
        place=at(before, old),
        place_after=at(after, new) if new else None,
        before=old,
        after=new,
        reason=reason,
        confidence="certain",
        source="npu_bridge: npu_init.py",
    )


IMPORT = "import tensorflow as tf\n"
NEW_IMPORT = IMPORT + "from npu_bridge.npu_init import npu_config_proto, npu_ops\n"
DROPOUT = "tf.nn.dropout(net, rate=1 - keep)"
NEW_DROPOUT = "npu_ops.dropout(net, keep_prob=1.0 - (1 - keep))"
SESSION = "tf.Session(config=config)"
NEW_SESSION = "tf.Session(config=npu_config_proto(config_proto=config))"
GROWTH = "    config.gpu_options.allow_growth = True\n"


def ported_file(path: str = "train.py", before: str = TRAIN) -> FileReport:
    """A training script with four edits, two findings and something kept."""
    after = changed(
        before, {IMPORT: NEW_IMPORT, DROPOUT: NEW_DROPOUT, SESSION: NEW_SESSION, GROWTH: ""}
    )
    queue = "tf.train.string_input_producer(names, shuffle=True)"
    return FileReport(
        path=path,
        status="ported",
        edits=(
            Edit(
                rule="imports",
                place=at(before, IMPORT),
                place_after=at(after, "from npu_bridge"),
                before="",
                after="from npu_bridge.npu_init import npu_config_proto, npu_ops",
                reason=Text(
                    en="The names of `npu_bridge` that this file uses.",
                    zh="本文件用到的 `npu_bridge` 名称。",
                ),
                confidence="certain",
                source="npu_bridge: npu_init.py",
            ),
            edit(
                before,
                after,
                DROPOUT,
                NEW_DROPOUT,
                "dropout",
                Text(
                    en="One fused operator; it takes the share that is kept.",
                    zh="融合算子，参数为保留概率 keep_prob。",
                ),
            ),
            edit(
                before,
                after,
                GROWTH,
                "",
                "gpu-options",
                Text(en="GPU options have no effect.", zh="GPU 选项在 NPU 上无效。"),
            ),
            edit(
                before,
                after,
                SESSION,
                NEW_SESSION,
                "session-config",
                Text(
                    en="Without `NpuOptimizer` in its config a session stays on the CPU.",
                    zh="会话配置中没有 `NpuOptimizer` 时，会话只在 CPU 上运行。",
                ),
            ),
        ),
        findings=(
            Finding(
                rule="queue-input",
                place=at(before, queue),
                place_after=at(after, queue),
                code=queue,
                reason=Text(
                    en="Queues run on the host; the device cannot hold them.",
                    zh="队列算子只能在主机侧运行，无法下沉到 Device。",
                ),
                todo=Text(
                    en="Read with `tf.data`, or set mix_compile_mode=True.",
                    zh="改用 `tf.data` 读取，或设置 mix_compile_mode=True。",
                ),
                severity="blocking",
                confidence="certain",
                source="Facenet_ID0122 of the model zoo",
            ),
            Finding(
                rule="feed-dict",
                place=at(before, "session.run('train')"),
                place_after=None,
                code="session.run('train')",
                reason=Text(en="Each run waits for the host.", zh="每次 run 都要等待主机。"),
                todo=Text(en="Set iterations_per_loop.", zh="设置 iterations_per_loop。"),
                severity="speed",
                confidence="unsure",
                source="measured",
            ),
        ),
        kept=(
            Kept(
                rule="dropout",
                place=at(before, "tf.layers.dense(net, 10)"),
                code="tf.layers.dense(net, 10)",
                reason=Text(en="No dropout.", zh="不是 dropout。"),
            ),
        ),
        before=before,
        after=after,
    )


def tree_report() -> TreeReport:
    """A small tree with a file of each status."""
    return TreeReport(
        root="networks/small",
        files=(
            FileReport(path="README.md", status="copied"),
            FileReport(
                path="legacy.py",
                status="unreadable",
                note=Text(en="line 3: no Python", zh="第 3 行：不是 Python"),
            ),
            FileReport(path="tools/names.py", status="unchanged"),
            ported_file(),
        ),
        options=("--precision", "allow_mix_precision", "--devices", "8"),
        added=("launch.sh",),
        version="0.1.0",
    )


HOSTILE = (
    "</script></pre><script>alert('x')</script>\"'><img src=http://evil.example/x onerror=a()>"
    " {{7*7}} ```|` \x1b[31m \u202e"
)


def hostile_report() -> TreeReport:
    """Everything that a tree can name or hold, as an attack on whoever renders it."""
    text = Text(en=HOSTILE, zh=HOSTILE)
    place = Place(line=1, column=1)
    return TreeReport(
        root=HOSTILE,
        files=(
            FileReport(path=HOSTILE, status="copied", note=text),
            FileReport(
                path=f"{HOSTILE}\n# line.py",
                status="ported",
                edits=(
                    Edit(
                        rule=HOSTILE,
                        place=place,
                        place_after=None,
                        before=HOSTILE,
                        after=HOSTILE,
                        reason=text,
                        confidence="likely",
                        source=HOSTILE,
                    ),
                ),
                findings=(
                    Finding(
                        rule=HOSTILE,
                        place=place,
                        place_after=place,
                        code=HOSTILE,
                        reason=text,
                        todo=text,
                        severity="look",
                        confidence="likely",
                        source=HOSTILE,
                    ),
                ),
                kept=(Kept(rule=HOSTILE, place=place, code=HOSTILE, reason=text),),
                note=text,
                before=f"{HOSTILE}\n" * 20,
                after=f"{HOSTILE}\n" * 10 + f"{HOSTILE} changed\n" + f"{HOSTILE}\n" * 9,
            ),
        ),
        options=(HOSTILE,),
        added=(HOSTILE,),
        version=HOSTILE,
    )
