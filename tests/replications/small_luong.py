"""Models of Luong et al. small enough for every test, one for every score, alignment and feeding of the input."""

import pytest
import torch

from replications.luong.replication import build_model
from replications.luong.settings import ModelConfig

F64 = torch.float64
K_X, K_Y, M, N, L, D, S_MAX = 11, 9, 4, 6, 2, 2, 4
CONTENT = ("dot", "general", "concat")
ALIGNMENTS = ("global", "local-m", "local-p")
ATTENTIONS = [("location", "global"), *((score, where) for where in ALIGNMENTS for score in CONTENT)]
KINDS = [(None, None, False), *((*kind, feed) for feed in (False, True) for kind in ATTENTIONS)]
kinds = pytest.mark.parametrize(("score", "alignment", "feed"), KINDS)
directions = pytest.mark.parametrize("reverse", [True, False])


def attention(score, alignment, window=D, positions=S_MAX):
    """The configuration's section of that name."""
    extra = {} if alignment == "global" else {"window": window}
    extra |= {"positions": positions} if score == "location" else {}
    return {"score": score, "alignment": alignment, **extra}


def config(score=None, alignment=None, feed=False, **others):
    sizes = {"embedding_size": M, "hidden_size": N, "layers": L, "reverse": True, "input_feeding": feed}
    chosen = None if score is None else attention(score, alignment)
    return ModelConfig.model_validate(sizes | {"attention": chosen} | others)


def small(*kind, **others):
    """With weights large enough to matter."""
    model = build_model(config(*kind, **others), K_X, K_Y)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model.to(F64).eval()


def sentences(lengths=(6, 4, 2), steps=5):
    """Sources of these lengths, the end symbol 2 included, and targets."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    source = torch.randint(3, K_X, mask.shape).scatter(1, torch.tensor(lengths).unsqueeze(1) - 1, 2)
    return source.masked_fill(~mask, 0), mask, torch.randint(1, K_Y, (len(lengths), steps))
