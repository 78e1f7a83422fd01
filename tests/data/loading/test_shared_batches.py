import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.data.loading.shared_batches import BatchPacker, BatchUnpacker

DTYPES = [torch.uint8, torch.int64, torch.float32, torch.bfloat16, torch.bool, torch.float64]


@st.composite
def batches(draw: st.DrawFn) -> dict[str, torch.Tensor]:
    made: dict[str, torch.Tensor] = {}
    for name in draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)):
        shape = draw(st.lists(st.integers(0, 5), max_size=4))
        values = torch.randint(0, 100, shape).to(draw(st.sampled_from(DTYPES)))
        if values.ndim == 4 and draw(st.booleans()):
            values = values.to(memory_format=torch.channels_last)
        elif values.ndim >= 2 and draw(st.booleans()):
            values = values.transpose(0, 1)
        made[name] = values
    return made


@settings(max_examples=40)
@given(st.lists(batches(), max_size=6))
def test_every_batch_arrives_with_its_values_types_and_strides(
    sent: list[dict[str, torch.Tensor]],
) -> None:
    packer, unpacker = BatchPacker(0, 2), BatchUnpacker()
    arrived = [unpacker.unpack(packer.pack(batch)) for batch in sent]
    for batch, copy in zip(sent, arrived, strict=True):
        assert batch.keys() == copy.keys()
        for name, tensor in batch.items():
            assert tensor.dtype == copy[name].dtype
            assert torch.equal(tensor, copy[name])
            assert copy[name].stride() == torch.empty_like(tensor).stride()


def test_strided_slice_arrives_dense() -> None:
    packer, unpacker = BatchPacker(0, 1), BatchUnpacker()
    values = torch.arange(40).reshape(4, 10)[:, ::3]
    arrived = unpacker.unpack(packer.pack({"x": values}))["x"]
    assert torch.equal(arrived, values)
    assert arrived.is_contiguous()


def test_buffer_is_sent_once_and_reused() -> None:
    packer = BatchPacker(0, 2)
    sent = [packer.pack({"x": torch.full((100,), step)}) for step in range(6)]
    assert [packed.memory is not None for packed in sent] == [True, True] + [False] * 4
    assert [packed.buffer for packed in sent] == [(0, 0), (0, 1)] * 3


def test_larger_batch_gets_a_larger_buffer() -> None:
    packer, unpacker = BatchPacker(0, 1), BatchUnpacker()
    for size in (10, 1000, 20, 1001, 5000):
        values = torch.arange(size)
        assert torch.equal(unpacker.unpack(packer.pack({"x": values}))["x"], values)


def test_delivered_batch_is_not_changed_by_later_ones() -> None:
    packer, unpacker = BatchPacker(0, 1), BatchUnpacker()
    first = unpacker.unpack(packer.pack({"x": torch.zeros(50)}))["x"]
    unpacker.unpack(packer.pack({"x": torch.ones(50)}))
    assert first.eq(0).all()


def test_tensors_are_aligned_to_64_bytes() -> None:
    batch = {
        "a": torch.arange(3, dtype=torch.int64),
        "b": torch.arange(64, dtype=torch.uint8),
        "c": torch.zeros((2, 3, 4, 5)).to(memory_format=torch.channels_last),
        "d": torch.zeros(0),
    }
    packed = BatchPacker(4, 2).pack(batch)
    assert [place[:3] + place[4:] for place in packed.slices] == [
        ("a", torch.int64, (3,), 0, 24),
        ("b", torch.uint8, (64,), 64, 128),
        ("c", torch.float32, (2, 3, 4, 5), 128, 128 + 480),
        ("d", torch.float32, (0,), 640, 640),
    ]
    assert packed.slices[2].stride == (60, 1, 15, 3)
    assert packed.used == 640
    assert packed.buffer == (4, 0)
    assert packed.memory is not None
    assert packed.memory.numel() == 640
    assert packed.memory.is_shared()


def test_enlarged_buffer_has_an_eighth_to_spare() -> None:
    packer = BatchPacker(0, 1)

    def sent(size: int) -> int | None:
        memory = packer.pack({"x": torch.zeros(size, dtype=torch.uint8)}).memory
        return None if memory is None else memory.numel()

    # The first as large as needed; what fits to the last byte is no reason for another one.
    assert [sent(size) for size in (80, 80, 81, 91, 92, 10)] == [80, None, 91, None, 103, None]
