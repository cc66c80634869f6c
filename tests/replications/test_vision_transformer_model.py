"""The Vision Transformer: the checklist, patches and roll-out by hand, positions, and sizes of the paper's models."""

import pytest
import torch

from replications.vision_transformer.model import VisionTransformer, patches, pictures, roll_out
from replications.vision_transformer.replication import build_model
from replications.vision_transformer.settings import ModelConfig
from tests.checklist import spread
from tests.replications.shipped_variants import facts, parameters


def test_patches_and_channels_by_hand() -> None:
    """A picture of 4 x 4 pixels whose last two its text lacks, in patches of 2 x 2, by rows."""
    text = torch.arange(14).unsqueeze(0) % 3
    x, there = pictures((text,), (torch.ones_like(text, dtype=torch.bool),), 4, 3)
    assert there[0].tolist() == [[True] * 4, [True] * 4, [True] * 4, [True, True, False, False]]
    numbers = (x * torch.tensor([1, 2, 3])).sum(-1) - 1  # the symbol of each pixel, -1 where there is none
    assert patches(numbers, 2)[0].tolist() == [[0, 1, 1, 2], [2, 0, 0, 1], [2, 0, 0, 1], [1, 2, -1, -1]]
    weight = torch.randn(5, 3, 2, 2)
    convolved = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2).float(), weight, stride=2).flatten(2).mT
    torch.testing.assert_close(patches(x, 2).float() @ weight.permute(2, 3, 1, 0).reshape(12, 5), convolved)


def test_roll_out_by_hand() -> None:
    """Two positions, two layers: a half stays, and the lower layer mixes what the upper one takes."""
    lower, upper = torch.tensor([[0.5, 0.5], [0.0, 1.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    heads = torch.stack([lower, 2 * lower - torch.eye(2)])  # their mean is taken
    found = roll_out([heads.unsqueeze(0), upper.expand(1, 2, 2, 2)])
    mixed = (heads.mean(0) + torch.eye(2)) / 2
    torch.testing.assert_close(found[0], (upper + torch.eye(2)) / 2 @ mixed)
    torch.testing.assert_close(found.sum(-1), torch.ones(1, 2))


def config(**changes: object) -> ModelConfig:
    sizes = {"side": 4, "patch": 2, "layers": 2, "heads": 2, "width": 8, "hidden": 12}
    rival = {"features": 4, "stages": 2, "groups": 2}
    return ModelConfig.model_validate(sizes | rival | changes)


@pytest.mark.parametrize(("places", "moved"), [("none", False), ("1-D", True), ("2-D", True)])
def test_who_knows_no_positions_sees_a_set_of_patches(places: str, moved: bool) -> None:
    torch.manual_seed(0)
    model = spread(build_model(config(places=places), 9, 3), 0.5)
    text, mask = torch.randint(4, 9, (3, 16)), torch.ones(3, 16, dtype=torch.bool)
    turned = text.view(3, 2, 2, 2, 2).flip(1, 3).flatten(1)  # patches change places, pixels stay in them
    found, other = model((text,), (mask,)), model((turned,), (mask,))
    assert torch.allclose(found.logits, other.logits) != moved
    (rolled,) = found.attention
    torch.testing.assert_close(rolled.sum(-1), torch.ones(3, 1, dtype=torch.float64))


def test_positions_of_rows_and_columns() -> None:
    e = build_model(config(side=6, places="2-D"), 9, 3).positions()  # 3 x 3 patches
    assert e.shape == (9, 8)
    torch.testing.assert_close(e[0, :4], e[2, :4])  # one row
    torch.testing.assert_close(e[1, 4:], e[7, 4:])  # one column
    assert not torch.allclose(e[0], e[4])


@pytest.mark.parametrize("features", [4, 14])
def test_the_rival_s_gradients_are_those_of_double_precision(features: int) -> None:
    """oneDNN computes in single precision alone, and its fast kernels have no room for few features."""
    torch.manual_seed(0)
    rival = build_model(config(network="convolution", side=12, features=features), 9, 3)
    text, mask = torch.randint(9, (32, 144)), torch.ones(32, 144, dtype=torch.bool)

    def gradients() -> list[torch.Tensor]:
        return list(torch.autograd.grad(rival((text,), (mask,)).logits.logsumexp(-1).sum(), list(rival.parameters())))

    for single, double in zip(gradients(), (rival.double(), gradients())[1], strict=True):
        torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-4)


SIZES = {
    "ViT-B/16": {"patch": 16, "layers": 12, "heads": 12, "width": 768, "hidden": 3072},
    "ViT-L/16": {"patch": 16, "layers": 24, "heads": 16, "width": 1024, "hidden": 4096},
    "ViT-H/14": {"patch": 14, "layers": 32, "heads": 16, "width": 1280, "hidden": 5120},
}


def of_the_paper(**sizes: int) -> VisionTransformer:
    with torch.device("meta"):
        model = build_model(config(side=224, **sizes), 3, 1000)
    assert isinstance(model, VisionTransformer)
    return model


@pytest.mark.parametrize("name", SIZES)
def test_the_paper_s_models_have_the_parameters_of_paper_yaml(name: str) -> None:
    model, counts = of_the_paper(**SIZES[name]), facts("vision_transformer").parameter_counts
    assert counts is not None
    assert counts.totals.keys() == SIZES.keys()
    assert [part.counts[name] for part in counts.parts] == [
        parameters(model.embedding) + model.x_class.numel(), parameters(model.positions) + model.class_position.numel(),
        parameters(model.layers, model.norm), parameters(model.head),
    ]  # fmt: skip
    assert parameters(model) == counts.totals[name]


def test_what_the_paper_prints_is_of_other_models_than_its_names_say() -> None:
    """86, 307 and 632 million: B/16 without its head, L/32 and H/14 with one."""
    base, huge = (of_the_paper(**SIZES[name]) for name in ("ViT-B/16", "ViT-H/14"))
    large = of_the_paper(**SIZES["ViT-L/16"] | {"patch": 32})
    counts = parameters(base) - parameters(base.head), parameters(large), parameters(huge)
    (table,) = (table for table in facts("vision_transformer").tables if table.id == "t1")
    assert [round(count / 1e6) for count in counts] == [row["millions"] for row in table.rows]
