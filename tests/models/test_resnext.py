import pytest
import torch

from jumar.models.resnext import ResNeXt50, decays, tf_variables

WEIGHT_DECAY = 1e-4
NORM = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]


def tiny() -> ResNeXt50:
    return ResNeXt50(num_classes=4, cardinality=2, width=2)


def expected_names() -> list[str]:
    def conv_norm(name: str) -> list[str]:
        return [f"{name}.conv.weight"] + [f"{name}.norm.{part}" for part in NORM]

    names = conv_norm("stem")
    for stage, depth in enumerate((3, 4, 6, 3)):
        for block in range(depth):
            parts = ["reduce", "grouped", "expand"]
            for part in ["shortcut", *parts] if block == 0 else parts:
                names += conv_norm(f"stages.{stage}.{block}.{part}")
    return [*names, "classifier.weight", "classifier.bias"]


@pytest.mark.parametrize(("num_classes", "count"), [(1001, 25_030_953), (1000, 25_028_904)])
def test_parameter_count_matches_the_original(num_classes: int, count: int) -> None:
    with torch.device("meta"):
        model = ResNeXt50(num_classes=num_classes)
    assert sum(p.numel() for p in model.parameters()) == count


def test_state_dict_names_are_stable() -> None:
    assert list(tiny().state_dict()) == expected_names()


@pytest.mark.parametrize("size", [(32, 32), (33, 47), (64, 64), (65, 63), (112, 112)])
def test_any_image_size_gives_logits_and_same_padded_maps(
    size: tuple[int, int],
) -> None:
    model = tiny().eval()
    maps: list[torch.Size] = []
    model.stages.register_forward_hook(lambda module, inputs, output: maps.append(output.shape))
    with torch.no_grad():
        assert model(torch.randn(2, 3, *size)).shape == (2, 4)
    # Five halvings, each rounded up.
    assert maps[0][2:] == tuple(-(-pixels // 32) for pixels in size)


@pytest.mark.parametrize("size", [32, 45])
def test_matrix_products_have_the_logits_and_gradients_of_convolutions(size: int) -> None:
    torch.manual_seed(0)
    product = tiny().double().to(memory_format=torch.channels_last)
    convolution = ResNeXt50(num_classes=4, cardinality=2, width=2, matrix_product=False)
    convolution = convolution.double().to(memory_format=torch.channels_last)
    convolution.load_state_dict(product.state_dict())
    images = torch.randn(3, 3, size, size, dtype=torch.float64)
    images = images.contiguous(memory_format=torch.channels_last)
    logits = [model(images) for model in (product, convolution)]
    torch.testing.assert_close(*logits)
    for values in logits:
        values.square().sum().backward()
    for ours, theirs in zip(product.parameters(), convolution.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_regularisation_at_initialisation_matches_the_original() -> None:
    torch.manual_seed(0)
    model = ResNeXt50(num_classes=1001)
    decayed = [p for name, p in model.named_parameters() if decays(name, p)]
    term = WEIGHT_DECAY * sum(p.double().square().sum().item() for p in decayed) / 2
    assert round(term, 2) == 1.40


def test_weight_decay_applies_to_all_but_batch_norms() -> None:
    model = tiny()
    norms = {
        f"{path}.{name}"
        for path, module in model.named_modules()
        if isinstance(module, torch.nn.BatchNorm2d)
        for name, _ in module.named_parameters()
    }
    kept = {name for name, p in model.named_parameters() if not decays(name, p)}
    assert kept == norms
    assert decays("classifier.bias", model.classifier.bias)


def test_block_is_initialised_to_its_shortcut() -> None:
    block = tiny().train().stages[0][1]
    x = torch.rand(2, 256, 8, 8)
    torch.testing.assert_close(block(x), x)


def test_batch_norms_have_the_originals_constants() -> None:
    norms = [m for m in tiny().modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert len(norms) == 53
    assert {(m.eps, m.momentum) for m in norms} == {(1e-4, 0.1)}


def test_grouped_kernels_have_glorots_limit_and_the_others_variance_scaling() -> None:
    torch.manual_seed(0)
    model = ResNeXt50(num_classes=1001)
    grouped = model.stages[3][0].grouped.conv.weight
    limit = (6 / (9 * 32 + 9 * 1024)) ** 0.5
    assert 0.999 * limit < grouped.abs().max().item() <= limit
    for weight in (model.stages[3][0].reduce.conv.weight, model.classifier.weight):
        fan_in = weight[0].numel()
        assert weight.square().mean().item() * fan_in == pytest.approx(1.0, rel=0.01)


def test_variables_round_trip() -> None:
    model = tiny()
    state = model.state_dict()
    variables = tf_variables(model)
    assert len(variables) == 267
    for variable in variables:
        again = variable.to_torch(variable.to_tensorflow(state[variable.name]))
        assert torch.equal(again, state[variable.name])
