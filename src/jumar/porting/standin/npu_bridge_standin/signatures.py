"""The signatures of the real package's functions and classes, from `signatures.json`.

Device-only functions are created from that file alone: they accept the recorded arguments and
raise. A parameter is stored as its name and, if it has one, its default; `{"code": ...}` is a
default that JSON cannot represent. A name stored as null accepts any arguments.
"""

import inspect
import json
from pathlib import Path

_RECORDED = json.loads(Path(__file__).with_name("signatures.json").read_text(encoding="utf-8"))


def signature_of(module, name):
    """Return the recorded signature of a function or of a class's constructor, without `self`."""
    return inspect.Signature(
        inspect.Parameter(
            parameter[0],
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=parameter[1] if len(parameter) > 1 else inspect.Parameter.empty,
        )
        for parameter in _RECORDED[module][name]
    )


def bound(signature, function, args, kwargs):
    """Return the arguments of a call by name, with defaults.

    Raises:
        TypeError: The arguments do not match; the message is Python's.
    """
    try:
        arguments = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError("{}() {}".format(function, error)) from None
    arguments.apply_defaults()
    return dict(arguments.arguments)


def with_signature(module, name):
    """Decorate an `__init__` that accepts keywords only, so that it has the recorded signature."""
    signature = signature_of(module, name)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def decorate(init):
        def __init__(self, *args, **kwargs):
            init(self, **bound(signature, "__init__", args, kwargs))

        __init__.__signature__ = signature.replace(
            parameters=[this, *signature.parameters.values()]
        )
        return __init__

    return decorate


def keep(instance, arguments, public=()):
    """Store arguments as attributes, with a leading underscore unless they are public."""
    for name, value in arguments.items():
        setattr(instance, name if name in public else "_" + name, value)


def device_only(name, signature=None):
    """Return a device-only function, which raises when it is called, not when imported."""

    def call(*args, **kwargs):
        if signature is not None:
            bound(signature, name, args, kwargs)
        raise NotImplementedError(
            "npu_bridge stand-in: {} runs only on an Ascend device".format(name)
        )

    call.__name__ = name
    call.__doc__ = "Only available on an Ascend device."
    if signature is not None:
        call.__signature__ = signature
    return call


def add_device_only(namespace):
    """Define the recorded names that a module does not define itself.

    Args:
        namespace: The `globals()` at the end of the module.
    """
    module = namespace["__name__"]
    for name, parameters in _RECORDED[module].items():
        if name not in namespace:
            signature = None if parameters is None else signature_of(module, name)
            namespace[name] = device_only(name, signature)
