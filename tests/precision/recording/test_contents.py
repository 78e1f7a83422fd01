"""What is measured, copied and hashed of tensors, once however often they are seen."""

import pytest
import torch
from torch import Tensor

from jumar.precision.dumps.digest import digest_of, digest_of_text, is_comparable
from jumar.precision.dumps.shards import View
from jumar.precision.recording.contents import Contents, RecordedValue
from jumar.precision.recording.ops import about_op
from jumar.precision.recording.statistics import Meter, is_dense


class Host:
    def __init__(
        self, *, keeps: bool = False, sample: int = 0, room: float = 1e9, digests: bool = False
    ) -> None:
        self.meter = Meter(counts=True)
        self.contents = Contents(
            self.meter, keeps_tensors=keeps, sample=sample, max_bytes=room, digests=digests
        )

    def see(self, tensor: Tensor, *, is_written: bool = False) -> RecordedValue:
        return self.contents.record("input", "0", tensor, is_written=is_written)


def test_tensor_is_measured_once_until_modified() -> None:
    host, tensor = Host(), torch.arange(6.0)
    first = host.see(tensor)
    assert first == RecordedValue("input", "0", "float32", (6,), 0, None, None)
    assert host.see(tensor.view(2, 3)).row == host.see(tensor.view(3, 2).t()).row == 0
    assert host.see(tensor[:3]).row == 1
    assert host.see(tensor[3:]).row == 2
    assert host.see(tensor[::2]).row == 3
    assert host.see(tensor.view(torch.int32)).row == 4
    tensor.add_(1)
    assert host.see(tensor).row == 5
    assert host.see(tensor, is_written=True).row == 6
    host.contents.changed(tensor)
    assert host.see(tensor).row == 7
    host.contents.forget()
    assert host.see(tensor).row == 8
    assert [row.max for row in host.meter.read()][:4] == [5.0, 2.0, 5.0, 4.0]


def test_unmodified_memory_is_not_measured_again() -> None:
    host, tensor = Host(keeps=True, digests=True), torch.ones(3)
    host.contents.blank(tensor)
    assert host.see(tensor) == RecordedValue("input", "0", "float32", (3,), None, None, None)
    host.contents.changed(tensor)
    assert host.see(tensor).row == 0


def test_copy_has_the_numbers_of_its_source() -> None:
    host, source = Host(), torch.arange(4.0)
    host.see(source)
    for target, written, row in (
        (source.clone(), False, 0),
        (source.half(), False, 1),
        (torch.zeros(2, 2), False, 2),
        (source.clone(), True, 3),
    ):
        host.contents.copied(source, target, is_written=written)
        assert host.see(target).row == row
    written = source.clone()
    host.contents.copied(source, written, is_written=True)
    assert host.see(written, is_written=True).row == 0
    unseen, target = torch.ones(4), torch.ones(4)
    host.contents.copied(unseen, target, is_written=False)
    assert host.see(target).row == 4
    blank, target = torch.ones(4), torch.ones(4)
    host.see(blank)
    host.contents.blank(blank)
    host.contents.copied(blank, target, is_written=False)
    assert host.see(target).row == 6


def test_tensors_with_the_same_elements_are_copied_once() -> None:
    host, base = Host(keeps=True), torch.arange(6.0).reshape(2, 3)
    assert host.see(base).tensor == host.see(base).tensor == "000000"
    assert host.see(base.t()).tensor == "000001"
    assert host.see(base.view(6)).tensor == "000002"
    assert host.see(base[:, :2]).tensor == "000003"
    assert host.contents.views == {
        "000001": View("000000", (3, 2), (1, 3)),
        "000002": View("000000", (6,), (1,)),
    }
    tensors = host.contents.tensors
    assert {name: each.tolist() for name, each in tensors.items()} == {
        "000000": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
        "000003": [[0.0, 1.0], [3.0, 4.0]],
    }
    assert host.contents.size == 24 + 16
    base.add_(1)
    assert tensors["000000"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert host.see(base).tensor == "000004"
    host.contents.clear()
    assert (host.contents.tensors, host.contents.views, host.contents.size) == ({}, {}, 0)
    assert host.see(base).tensor == "000000"


def test_transposed_tensor_is_stored_in_memory_order() -> None:
    host, turned = Host(keeps=True), torch.arange(6.0).reshape(2, 3).t()
    assert host.see(turned).tensor == "000000"
    assert host.contents.views == {"000000": View("000000.flat", (3, 2), (1, 3))}
    assert host.contents.tensors["000000.flat"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert host.see(turned.t()).tensor == "000002"
    assert host.contents.views["000002"] == View("000000.flat", (2, 3), (3, 1))
    assert host.see(torch.zeros(2, dtype=torch.complex64)).tensor is None


def test_larger_tensors_are_sampled_at_even_spacing() -> None:
    host = Host(keeps=True, sample=4)
    for count, kept in ((4, [0, 1, 2, 3]), (5, [0, 1, 2, 3]), (10, [0, 2, 5, 7])):
        seen = host.see(torch.arange(count))
        assert host.contents.tensors[seen.tensor or ""].tolist() == kept
    assert host.contents.size == 3 * 4 * 8
    turned = host.see(torch.arange(10).reshape(2, 5).t())
    assert host.contents.tensors[turned.tensor or ""].tolist() == [0, 1, 7, 8]
    assert host.contents.views == {}


def test_tensors_that_do_not_fit_are_counted_and_not_copied() -> None:
    host = Host(keeps=True, room=24)
    for tensor, elements in ((torch.ones(6), 6), (torch.ones(1), 0)):
        seen = host.see(tensor)
        assert host.contents.tensors[seen.tensor or ""].numel() == elements
    assert host.contents.size == 28


def test_hashes_cover_the_elements_in_order() -> None:
    host, base = Host(digests=True), torch.arange(6.0).reshape(2, 3)
    assert host.see(base).digest == host.see(base.view(6)).digest == digest_of(base)
    assert host.see(base.t()).digest == digest_of(base.t().contiguous())
    first = digest_of(base)
    base.add_(1)
    assert host.see(base).digest == digest_of(base) != first
    # What `printf 'a' | sha256sum` begins with.
    assert digest_of_text("a") == "sha256:ca978112ca1bbdca"
    assert digest_of(torch.tensor([97], dtype=torch.uint8)) == digest_of_text("a")
    assert is_comparable("a:1", "a:2")
    assert not any(is_comparable(*pair) for pair in (("a:1", "b:1"), ("a:1", None), (None, "a:1")))
    assert not is_comparable(None, None)


@pytest.mark.parametrize(
    "odd",
    [
        torch.ones(2).to_sparse(),
        torch.empty(2, device="meta"),
    ],
)
def test_tensors_without_storage_are_not_measured(odd: Tensor) -> None:
    host = Host()
    seen = host.see(odd)
    assert (seen.row, seen.shape) == (None, (2,))
    host.contents.changed(odd)
    host.contents.blank(odd)
    host.contents.copied(odd, odd, is_written=False)


def test_inference_mode_tensors_are_measured_once() -> None:
    host = Host()
    with torch.inference_mode():
        tensor = torch.ones(3)
        assert host.see(tensor).row == host.see(tensor).row == 0


def test_dense_tensors_are_those_covering_each_element_once() -> None:
    base = torch.arange(24).reshape(2, 3, 4)
    for dense in (base, base.permute(2, 0, 1), base[:1], base[:1, :1, :1]):
        assert is_dense(dense)
    for sparse in (base[:, :2], base[..., ::2], base[:, :1, :1], torch.ones(1, 3).expand(2, 3)):
        assert not is_dense(sparse)


def test_op_schema_is_read() -> None:
    aten = torch.ops.aten
    add = about_op(aten.add_.Tensor)
    assert (add.name, add.names, add.written) == (
        "aten.add_.Tensor",
        ("Add", "add_.Tensor", "add_"),
        {0: "self"},
    )
    assert add.arguments == ("self", "other", "alpha")
    assert (add.is_recorded, add.is_blank, add.is_copy) == (True, False, False)
    norm = about_op(aten.native_batch_norm.default)
    assert norm.written == {3: "running_mean", 4: "running_var"}
    for op, recorded, blank, copy in (
        (aten.view.default, False, False, False),
        (aten._unsafe_view.default, False, False, False),
        (aten.empty.memory_format, False, True, False),
        (aten.new_empty.default, False, True, False),
        (aten.clone.default, True, False, True),
        (aten.copy_.default, True, False, True),
        (aten.sym_size.int, False, False, False),
        (aten.split.Tensor, False, False, False),
        (aten.topk.default, True, False, False),
    ):
        about = about_op(op)
        assert (about.is_recorded, about.is_blank, about.is_copy) == (recorded, blank, copy), op
