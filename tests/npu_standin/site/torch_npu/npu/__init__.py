"""`torch.npu` of the stand-in."""

import torch

_standin = torch.ops.npu_standin


class _Switch:
    """`torch_npu.npu.matmul` and `torch_npu.npu.conv`, which take attributes that exist only."""

    __slots__ = ("allow_hf32",)

    def __init__(self, allow_hf32: bool) -> None:
        self.allow_hf32 = allow_hf32

    def __setattr__(self, name: str, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be a bool, but got {type(value).__name__}")
        super().__setattr__(name, value)


# As they are before anybody sets them.
matmul = _Switch(allow_hf32=False)
conv = _Switch(allow_hf32=True)


def _lazy_init() -> None:
    if _is_in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, "
            "you must use the 'spawn' start method"
        )


def _is_in_bad_fork() -> bool:
    return _standin.in_fork()


def _index(device=None) -> int:
    if isinstance(device, int):
        return device
    if device is None:
        return current_device()
    device = torch.device(device)
    if device.type != "npu":
        raise ValueError(f"Expected a npu device, but got: {device}")
    return current_device() if device.index is None else device.index


def is_available() -> bool:
    return device_count() > 0


def device_count() -> int:
    return _standin.device_count()


def current_device() -> int:
    return _standin.current_device()


def set_device(device) -> None:
    _standin.set_device(_index(device))


class device:  # noqa: N801 - its name in the real package
    """Selects a device while the context lasts."""

    def __init__(self, device) -> None:
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = current_device()
        set_device(self.idx)

    def __exit__(self, *_: object) -> None:
        set_device(self.prev_idx)


def get_device_name(device_name=None) -> str:
    return f"stand-in NPU {_index(device_name)}"


class _Properties:
    def __init__(self, index: int) -> None:
        self.name = get_device_name(index)
        self.total_memory = _standin.memory_of(index)[3]


def get_device_properties(device_name=None) -> _Properties:
    return _Properties(_index(device_name))


def is_bf16_supported() -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16, torch.float32]


def synchronize(device=None) -> None:
    _standin.synchronize(_index(device))


def max_memory_allocated(device=None) -> int:
    return _standin.memory_of(_index(device))[1]


def memory_allocated(device=None) -> int:
    return _standin.memory_of(_index(device))[0]


def reset_peak_memory_stats(device=None) -> None:
    _standin.reset_peak(_index(device))


def mem_get_info(device=None) -> tuple[int, int]:
    _, _, free, total = _standin.memory_of(_index(device))
    return free, total


def empty_cache() -> None:
    """Nothing is cached: a freed block goes back at once."""


def manual_seed_all(seed: int) -> None:
    for index in range(device_count()):
        _standin.default_generator(index).manual_seed(int(seed))


def manual_seed(seed: int) -> None:
    _standin.default_generator(current_device()).manual_seed(int(seed))


def get_rng_state(device="npu") -> torch.Tensor:
    return _standin.default_generator(_index(device)).get_state()


def set_rng_state(new_state: torch.Tensor, device="npu") -> None:
    _standin.default_generator(_index(device)).set_state(new_state)


class Stream(torch.Stream):
    """A stream of the device."""

    def __new__(cls, device=None, priority: int = 0) -> "Stream":
        return super().__new__(cls, device=torch.device("npu", _index(device)), priority=priority)


def current_stream(device=None) -> torch.Stream:
    return torch.accelerator.current_stream(_index(device))


class _OnStream:
    def __init__(self, stream: torch.Stream) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        self._before = current_stream(self._stream.device)
        torch.accelerator.set_stream(self._stream)

    def __exit__(self, *_: object) -> None:
        torch.accelerator.set_stream(self._before)


def stream(stream: torch.Stream) -> _OnStream:
    return _OnStream(stream)
