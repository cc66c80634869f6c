"""The Vision Transformer against torchvision's: outputs and gradients of the same weights."""

import torch
from torch import nn
from torch.nn import functional
from torchvision.models.vision_transformer import VisionTransformer as Theirs

from replications.vision_transformer.model import VisionTransformer
from tests.checklist import spread

CHANNELS, CLASSES, SIDE, PATCH, LAYERS, HEADS, WIDTH, HIDDEN = 3, 5, 8, 2, 3, 4, 16, 24


def copy(theirs, ours):
    """Give ours the weights of theirs."""
    weights = theirs.state_dict()
    of_class, *of_patches = weights["encoder.pos_embedding"][0]
    ours.embedding.weight.copy_(weights["conv_proj.weight"].permute(0, 2, 3, 1).flatten(1))
    ours.embedding.bias.copy_(weights["conv_proj.bias"])
    ours.x_class.copy_(weights["class_token"][0, 0])
    ours.class_position.copy_(of_class)
    ours.positions.table.copy_(torch.stack(of_patches))
    pairs = [(ours.norm, theirs.encoder.ln), (ours.head, theirs.heads.head)]
    for layer, block in zip(ours.layers, theirs.encoder.layers, strict=True):
        attention, packed = layer.attention, block.self_attention
        for name in ("weight", "bias"):
            of_queries, of_others = getattr(packed, f"in_proj_{name}").split((WIDTH, 2 * WIDTH))
            getattr(attention.w_q, name).copy_(of_queries)
            getattr(attention.w_kv, name).copy_(of_others)
        pairs += [(attention.w_o, packed.out_proj), (layer.attention_norm, block.ln_1)]
        pairs += [(layer.feed_forward_norm, block.ln_2), *((layer.feed_forward[i], block.mlp[i]) for i in (0, 3))]
    for mine, other in pairs:
        mine.load_state_dict(other.state_dict())


def test_logits_and_gradients_are_those_of_torchvision():
    torch.manual_seed(0)
    theirs = Theirs(SIDE, PATCH, LAYERS, HEADS, WIDTH, HIDDEN, num_classes=CLASSES).double()
    ours = VisionTransformer(
        channels=CHANNELS, classes=CLASSES, side=SIDE, patch=PATCH, layers=LAYERS, heads=HEADS, width=WIDTH,
        hidden=HIDDEN, places="1-D", class_token=True, dropout=0.0,
    ).double()  # fmt: skip
    spread(theirs)
    with torch.no_grad():
        copy(theirs, ours)
    for module in ours.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-6  # torchvision's
    text = torch.randint(CHANNELS, (2, SIDE**2))
    picture = functional.one_hot(text, CHANNELS).double().unflatten(1, (SIDE, SIDE)).permute(0, 3, 1, 2)
    found, wanted = ours((text,), (torch.ones_like(text, dtype=torch.bool),)).logits, theirs(picture)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    found.square().sum().backward()
    wanted.square().sum().backward()
    torch.testing.assert_close(
        ours.embedding.weight.grad, theirs.conv_proj.weight.grad.permute(0, 2, 3, 1).flatten(1), rtol=1e-9, atol=1e-9
    )
