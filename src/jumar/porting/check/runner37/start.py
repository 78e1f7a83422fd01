"""Run and watch a script like `python SCRIPT ARGUMENTS`: `python start.py CONFIG.json`."""

import ast
import faulthandler
import importlib
import json
import os
import random
import signal
import sys
import traceback
import types

_IMPORTED = "__jumar_check_has_imported__"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    from runner37.events import Events

    events = Events(config["events"], config["begin"])
    # A hanging program is asked for its stack before it is killed.
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    sys.exit(run(config, events))


def run(config, events):
    """Prepare TensorFlow, run the script, and record how it ended."""
    from runner37 import children

    script = config["script"]
    try:
        prepare(config, events)
        children.watch(events)
    except Exception as error:
        report(events, error, "tensorflow")
        return 1
    sys.path[0] = os.getcwd()
    sys.argv = [script] + config["arguments"]
    stage = ["parses"]
    try:
        execute(script, config["module"], lambda: reached_imports(events, stage))
    except SystemExit as system_exit:
        return handle_exit(events, system_exit)
    except BaseException as error:
        report(events, error, stage[0])
        return 1
    events.write("end", reason="script")
    leave_soon_if_loaded()
    return 0


def prepare(config, events):
    from runner37 import seeds

    watch_tensorflow(config, events)
    seeds.seed_numpy(config["seed"])
    random.seed(config["seed"])


def watch_tensorflow(config, events):
    """Watch TensorFlow in this process, and make it reproducible."""
    import tensorflow
    from runner37 import graphs, order, queues, seeds, sessions

    events.write("tensorflow", version=tensorflow.__version__)
    watch = graphs.Watch(events)
    watch.install()
    sessions.install(watch, sessions.Counter(events, config["steps"]), events)
    order.install()
    queues.install()
    seeds.install(config["seed"])


def execute(script, name, imported):
    """Run the file as the module `__main__`, and report the end of its top-level imports."""
    with open(script, "rb") as file:
        tree = ast.parse(file.read(), script)
    insert_callback(tree)
    module = types.ModuleType("__main__")
    module.__file__ = script
    module.__builtins__ = __builtins__
    if name:
        package = name if script.endswith("__main__.py") else name.rpartition(".")[0]
        module.__package__ = package
        if package:
            importlib.import_module(package)
    module.__dict__[_IMPORTED] = imported
    sys.modules["__main__"] = module
    exec(compile(tree, script, "exec", dont_inherit=True), module.__dict__)  # noqa: S102


def insert_callback(tree):
    """Insert a call of the callback after the last top-level import."""
    position = 0
    for index, statement in enumerate(tree.body):
        is_guard = isinstance(statement, ast.Try) or (
            isinstance(statement, ast.If) and not isinstance(statement.test, ast.Compare)
        )
        inside = ast.walk(statement) if is_guard else [statement]
        if any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in inside):
            position = index + 1
    if position == 0 and ast.get_docstring(tree) is not None:
        position = 1
    name = ast.Name(id=_IMPORTED, ctx=ast.Load())
    call = ast.Expr(value=ast.Call(func=name, args=[], keywords=[]))
    if tree.body:
        ast.copy_location(call, tree.body[max(0, position - 1)])
    tree.body.insert(position, ast.fix_missing_locations(call))


def reached_imports(events, stage):
    stage[0] = "imports"
    events.write("imports")


def handle_exit(events, system_exit):
    """Handle `sys.exit` by the script, or by the counter after the last step."""
    from runner37.sessions import Stop

    leave_soon_if_loaded()
    if isinstance(system_exit, Stop):
        return 0
    code = system_exit.code
    if code is None or code == 0:
        events.write("end", reason="script")
        return 0
    events.write("exit", code=str(code))
    if not isinstance(code, int):
        sys.stderr.write("{}\n".format(code))
        return 1
    return code


def report(events, error, after):
    """Print the traceback as Python would, and record its location in the script."""
    frames = traceback.extract_tb(error.__traceback__)
    folder = os.path.dirname(os.path.abspath(__file__))
    script_frames = [frame for frame in frames if os.path.dirname(frame.filename) != folder]
    if frames and os.path.dirname(frames[-1].filename) == folder:
        script_frames = list(frames)  # a bug in the runner, impossible to find without its location
    sys.stdout.flush()
    sys.stderr.write("Traceback (most recent call last):\n")
    sys.stderr.write("".join(traceback.format_list(script_frames)))
    sys.stderr.write("".join(traceback.format_exception_only(type(error), error)))
    sys.stderr.flush()
    events.write(
        "error",
        after=after,
        type=type(error).__name__,
        message=str(error)[:2000],
        module=getattr(error, "name", None) if isinstance(error, ImportError) else None,
        frames=[[frame.filename, frame.lineno] for frame in script_frames][-40:],
    )
    leave_soon_if_loaded()


def leave_soon_if_loaded():
    try:
        from runner37.sessions import leave_soon
    except ImportError:
        return
    leave_soon()


if __name__ == "__main__":
    main()
