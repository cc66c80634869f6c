"""The Performer's layers against those of performer-pytorch, the library in most use: values and gradients.

What it adds to features is set to zero, and its GELU is made a ReLU, as the paper has it. Nothing is padded: its masks
leave padding's keys in the normaliser.
"""

from functools import partial
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from replications.performer.model import Performer
from shared.attention.favor import GeneralizedFeatures, SoftmaxFeatures
from shared.attention.feature_maps import FeatureMap, ReLU
from tests.checklist import F64, assert_alike, spread
from tests.parity.fetched_packages import package_of, wheel_of

D, H, K, P, LAYERS, MULTIPLE = 12, 3, 4, 10, 2, 2
FILES = ("reversible", "performer_pytorch")
PACKAGE = wheel_of(
    "performer-pytorch==1.1.4",
    "8c27835741950c7b5f39d8f98056416b752c4bce9426c4c4c4b9757ba7c55fc7",
    {f"performer_pytorch/{name}.py": f"{name}.py" for name in FILES},
)
KINDS: dict[str, partial[FeatureMap]] = {
    "positive": partial(SoftmaxFeatures, key_size=K, projections=P),
    "generalized": partial(GeneralizedFeatures, key_size=K, projections=P),
    "relu": partial(ReLU),
}


def rearrange(x: Tensor, pattern: str, h: int | None = None) -> Tensor:
    if pattern == "b n (h d) -> b h n d":
        return x.unflatten(2, (h, -1)).transpose(1, 2)
    assert pattern == "b h n d -> b n (h d)"
    return x.transpose(1, 2).flatten(2)


def repeat(x: Tensor, pattern: str, b: int, h: int) -> Tensor:
    assert pattern == "j d -> b h j d"
    return x.expand(b, h, -1, -1)


STAND_INS = {
    "einops": {"rearrange": rearrange, "repeat": repeat},
    "local_attention": {"LocalAttention": None},
    "axial_positional_embedding": {"AxialPositionalEmbedding": None},
    "distutils": {},
    "distutils.version": {"LooseVersion": lambda version: [int(n) for n in version.split(".")[:2]]},
    "performer_pytorch": {"__path__": []},
}
"""The modules that are imported, of whose names only few are needed."""


package = package_of(PACKAGE, FILES, "performer_pytorch", STAND_INS)


def ours(kind: str, causal: bool) -> Performer:
    """Far from its initial values."""
    model = Performer(
        symbols=5, width=D, heads=H, hidden_size=MULTIPLE * D, layers=LAYERS, features=KINDS[kind], causal=causal
    )  # fmt: skip
    return spread(model, 0.4)


def body(model: Performer, x: Tensor) -> Tensor:
    for layer in model.layers:
        x = layer(x, partial(layer.attention, mask=None, causal=model.causal))
    return x


def build(package: ModuleType, model: Performer, kind: str, *, epsilon: float = 0.0) -> nn.Module:
    """Their layers, of our sizes, which add so much to what they would divide by."""
    theirs = package.Performer(
        D, LAYERS, H, K, causal=model.causal, ff_mult=MULTIPLE, nb_features=P, auto_check_redraw=False,
        generalized_attention=kind != "positive", qkv_bias=False, attn_out_bias=False,
    )  # fmt: skip
    for module in theirs.modules():
        if isinstance(module, package.FeedForward):
            module.act = nn.ReLU()
        if isinstance(module, package.FastAttention) and model.causal:
            module.causal_linear_fn = partial(package.causal_linear_attention_noncuda, eps=epsilon)
    return theirs.to(F64)


def weights(model: Performer) -> dict[str, Tensor]:
    """Ours under their names."""
    found = {}
    for n, layer in enumerate(model.layers):
        first, second, attention = f"net.layers.{n}.0", f"net.layers.{n}.1", layer.attention
        parts = {
            f"{first}.norm": layer.attention_norm, f"{second}.norm": layer.feed_forward_norm,
            f"{first}.fn.to_q": attention.w_q, f"{first}.fn.to_k": attention.w_k, f"{first}.fn.to_v": attention.w_v,
            f"{first}.fn.to_out": attention.w_o,
            f"{second}.fn.fn.w1": layer.feed_forward.w_1, f"{second}.fn.fn.w2": layer.feed_forward.w_2,
        }  # fmt: skip
        for name, module in parts.items():
            found |= {f"{name}.{own}": weight for own, weight in module.named_parameters()}
        if hasattr(attention.features, "w"):
            found[f"{first}.fn.fast_attention.projection_matrix"] = attention.features.w
    return found


@pytest.fixture
def without_what_is_added(package, monkeypatch):
    """As they are, kernels add 1e-4 to features of softmax attention; generalized attention may have no projections."""
    monkeypatch.setattr(package, "softmax_kernel", partial(package.softmax_kernel, eps=0.0))
    return package


@pytest.mark.registry
@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_are_those_of_performer_pytorch(without_what_is_added, monkeypatch, kind, causal):
    package = without_what_is_added
    if kind == "relu":  # the official code's default, without projections and without scale

        def plain(data, *, projection_matrix, kernel=package.generalized_kernel, **others):
            return kernel(data, projection_matrix=None, normalize_data=False, **others)

        monkeypatch.setattr(package, "generalized_kernel", plain)
    model = ours(kind, causal)
    theirs, x = build(package, model, kind), torch.randn(3, 17, D, dtype=F64, requires_grad=True)
    found, expected = body(model, x), functional_call(theirs, weights(model), (x,))
    assert_alike(found, expected, [x, *model.layers.parameters()], tolerance=1e-10)


@pytest.mark.registry
def test_what_they_add_is_the_difference(package):
    model = ours("positive", causal=False)
    x = torch.randn(3, 17, D, dtype=F64)
    theirs = functional_call(build(package, model, "positive"), weights(model), (x,))
    assert 1e-7 < (body(model, x) - theirs).abs().max() < 0.05


@pytest.mark.registry
def test_their_causal_attention_sees_a_little_of_the_future_and_ours_nothing(package):
    """It takes the largest key of all positions off, and adds a constant afterwards."""
    model = ours("positive", causal=True)
    theirs = build(package, model, "positive", epsilon=1e-6)
    x = torch.randn(1, 17, D, dtype=F64)
    other = torch.cat((x[:, :9], 5 * torch.randn_like(x[:, 9:])), dim=1)
    with torch.no_grad():
        before, after = (functional_call(theirs, weights(model), (each,))[:, :9] for each in (x, other))
        assert not torch.equal(before, after)
        assert torch.equal(body(model, x)[:, :9], body(model, other)[:, :9])


@pytest.mark.registry
def test_their_orthogonal_matrices_are_those_that_we_call_uncorrected(package):
    """Of a QR decomposition as it comes, whose first coordinates have one sign each time."""
    torch.manual_seed(1)
    found = torch.stack([package.orthogonal_matrix_chunk(4) for _ in range(400)])
    share = (found.diagonal(dim1=1, dim2=2) > 0).double().mean(0)
    assert share[0] < 0.2
    corrected = SoftmaxFeatures(key_size=4, projections=1600).w.view(400, 4, 4)
    share = (corrected.diagonal(dim1=1, dim2=2) > 0).double().mean(0)
    assert (share - 0.5).abs().max() < 0.1
