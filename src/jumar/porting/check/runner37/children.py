"""Names the processes that the script starts, and watches them like the script itself.

A name consists of the parent's name and a number: `2.1` is the first process started by the
script's second process. The losses of two runs are paired in the order of these names, since
process IDs differ between runs.
"""

import faulthandler
import functools
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import random
import signal
import subprocess
import sys
import traceback
import weakref

from runner37.events import Events

_PROCESS = "JUMAR_CHECK_PROCESS"
_INHERITED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inherited")
_PASSED_ON = ("JUMAR_CHECK_CONFIG", "JUMAR_STANDIN_RECORD", "PYTHONHASHSEED")


def begin(path):
    """Watch this process, which a watched process started, before its first line runs."""
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    events = Events(config["events"], config["begin"], os.environ.get(_PROCESS, ""))
    events.write("child")
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    random.seed(config["seed"])
    _record_errors(events)
    watch(events)
    from runner37 import seeds, start

    _after_import("numpy", lambda _: seeds.seed_numpy(config["seed"]))
    _after_import("tensorflow", lambda _: start.watch_tensorflow(config, events))


def watch(events):
    """Name and watch the processes that this one starts."""
    family = _Family(events)
    folders = [_INHERITED, os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(folder for folder in folders if folder)
    subprocess.Popen.__init__ = _popen(subprocess.Popen.__init__, family)
    os.system = _named_in_environment(os.system, family, lambda args: args[0])
    at_fork(family, before="before_fork", after_in_child="in_fork")
    _after_import("multiprocessing.util", family.name_spawned)
    _after_import("multiprocessing.process", lambda module: _record_errors_of(module, events))


def at_fork(owner, **methods):
    """Call methods of an object around forks.

    Python 3.7 releases the registered functions after its modules, and crashes if that closes a
    file. They therefore hold only a weak reference; the hooks in the modules keep the object alive.
    """
    reference = weakref.ref(owner)

    def weak_call(name):
        def call():
            living = reference()
            if living is not None:
                getattr(living, name)()

        return call

    os.register_at_fork(**{when: weak_call(name) for when, name in methods.items()})


class _Family:
    def __init__(self, events):
        self.events = events
        self._started = 0

    def next_name(self):
        self._started += 1
        before = [self.events.process] if self.events.process else []
        return ".".join([*before, str(self._started)])

    def before_fork(self):
        self._forked = self.next_name()

    def in_fork(self):
        self.events.process = os.environ[_PROCESS] = self._forked
        self._started = 0
        self.events.write("child")

    def name_spawned(self, module):
        module.spawnv_passfds = _named_in_environment(module.spawnv_passfds, self, None)

    def environment(self, script_environment, name):
        """Return the environment of a process, completed if the script built one."""
        environment = dict(os.environ if script_environment is None else script_environment)
        for key in _PASSED_ON:
            if key in os.environ:
                environment.setdefault(key, os.environ[key])
        for key in ("PYTHONPATH", "PATH"):
            _complete(environment, key)
        environment[_PROCESS] = name
        return environment


def _complete(environment, key):
    """Put the folders of this process before those of the script."""
    inherited_folders = [folder for folder in os.environ.get(key, "").split(os.pathsep) if folder]
    script_folders = [folder for folder in environment.get(key, "").split(os.pathsep) if folder]
    if key == "PATH" and script_folders:
        inherited_folders = inherited_folders[:1]  # the folder with the interpreter
    folders = inherited_folders + [
        folder for folder in script_folders if folder not in inherited_folders
    ]
    if folders:
        environment[key] = os.pathsep.join(folders)


def _popen(original, family):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        script_environment = bound.arguments.get("env")
        if not all(isinstance(key, str) for key in script_environment or ()):
            return original(*args, **kwargs)
        name = family.next_name()
        bound.arguments["env"] = family.environment(script_environment, name)
        family.events.write("started", child=name, command=_shortened(bound.arguments["args"]))
        return original(*bound.args, **bound.kwargs)

    return init


def _named_in_environment(original, family, command):
    @functools.wraps(original)
    def start(*args):
        before = os.environ.get(_PROCESS)
        os.environ[_PROCESS] = name = family.next_name()
        if command is not None:
            family.events.write("started", child=name, command=_shortened(command(args)))
        try:
            return original(*args)
        finally:
            if before is None:
                del os.environ[_PROCESS]
            else:
                os.environ[_PROCESS] = before

    return start


def _shortened(command):
    if isinstance(command, (str, bytes, os.PathLike)):
        command = [command]
    return [os.fsdecode(word)[:200] for word in list(command)[:20]]


def _record_errors(events):
    original = sys.excepthook

    def record(kind, error, trace):
        _write_error(events, error)
        original(kind, error, trace)

    sys.excepthook = record


def _record_errors_of(module, events):
    """Record errors of `multiprocessing` processes, which do not call `sys.excepthook`."""
    original = module.BaseProcess._bootstrap

    @functools.wraps(original)
    def bootstrap(self, *args, **kwargs):
        inner = self.run

        def run():
            try:
                inner()
            except Exception as error:
                _write_error(events, error)
                raise

        self.run = run
        return original(self, *args, **kwargs)

    module.BaseProcess._bootstrap = bootstrap


def _write_error(events, error):
    frames = traceback.extract_tb(error.__traceback__)
    folder = os.path.dirname(os.path.abspath(__file__))
    events.write(
        "error",
        after="",
        type=type(error).__name__,
        message=str(error)[:2000],
        module=getattr(error, "name", None) if isinstance(error, ImportError) else None,
        frames=[
            [os.path.abspath(frame.filename), frame.lineno]
            for frame in frames
            if os.path.dirname(frame.filename) != folder
        ][-40:],
    )


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds one module as Python would, and calls a function once it has been executed."""

    def __init__(self, name, function):
        self._name = name
        self._function = function

    def find_spec(self, name, path=None, target=None):  # noqa: ARG002 - importlib's signature
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            inner = spec.loader.exec_module

            def exec_module(module):
                inner(module)
                self._function(sys.modules.get(name, module))

            spec.loader.exec_module = exec_module
        return spec


def _after_import(name, function):
    if name in sys.modules:
        function(sys.modules[name])
    else:
        sys.meta_path.insert(0, _AfterImport(name, function))
