"""How the real package's functions and classes are called, as `signatures.json` has them.

What only a device can do is made from that file alone: a function that takes the recorded arguments
and raises. A parameter is stored as its name and, where it has one, its default; `{"code": ...}`
is a default that JSON cannot hold. A name that is stored as null takes any arguments.
"""

import inspect
import json
from pathlib import Path

_RECORDED = json.loads(Path(__file__).with_name("signatures.json").read_text(encoding="utf-8"))


def signature_of(module, name):
    """The recorded signature of a function, or of how a class is made, without `self`."""
    return inspect.Signature(
        inspect.Parameter(
            parameter[0],
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=parameter[1] if len(parameter) > 1 else inspect.Parameter.empty,
        )
        for parameter in _RECORDED[module][name]
    )


def bound(signature, function, args, kwargs):
    """The arguments of a call by name, with defaults.

    Raises:
        TypeError: As Python's own, where they do not fit.
    """
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError("{}() {}".format(function, error)) from None
    given.apply_defaults()
    return dict(given.arguments)


def with_signature(module, name):
    """A decorator for an `__init__` that takes everything by name: it is called as recorded."""
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


def keep(instance, given, public=()):
    """Keep arguments as attributes: of their own name, or with an underscore before it."""
    for name, value in given.items():
        setattr(instance, name if name in public else "_" + name, value)


def device_only(name, signature=None):
    """A function for what only a device can do; it raises when it is called, not when imported."""

    def call(*args, **kwargs):
        if signature is not None:
            bound(signature, name, args, kwargs)
        raise NotImplementedError(
            "npu_bridge stand-in: {} runs only on an Ascend device".format(name)
        )

    call.__name__ = name
    call.__doc__ = "Only on an Ascend device."
    if signature is not None:
        call.__signature__ = signature
    return call


def add_device_only(namespace):
    """Define the recorded names of a module that it does not define itself.

    Args:
        namespace: `globals()` of the module, at its end.
    """
    module = namespace["__name__"]
    for name, parameters in _RECORDED[module].items():
        if name not in namespace:
            signature = None if parameters is None else signature_of(module, name)
            namespace[name] = device_only(name, signature)
