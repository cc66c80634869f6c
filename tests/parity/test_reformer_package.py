"""Attention by hashing against reformer-pytorch's, told the same buckets: values and gradients.

It is told to let no query see another bucket, and to count once a pair that several rounds find.
"""

import pytest
import torch

from shared.attention.lsh import lsh_attention
from tests.checklist import assert_alike
from tests.parity.fetched_packages import package_of, wheel_of

POSITIONS, CHUNK, BUCKETS, WIDTH = 24, 4, 6, 5
NAME = "reformer_pytorch"
PACKAGE = wheel_of(
    "reformer-pytorch==1.4.4",
    "a867ddf79738b911bf307dec029f1f75a3801a198221bd4673a418315902a124",
    {f"{NAME}/{NAME}.py": f"{NAME}.py"},
)
STAND_INS = {
    "einops": {"rearrange": None, "repeat": None},
    "local_attention": {"LocalAttention": None},
    "product_key_memory": {"PKM": None},
    "axial_positional_embedding": {"AxialPositionalEmbedding": None},
    NAME: {},
    f"{NAME}.reversible": {"ReversibleSequence": None},
}
"""What their file imports of other packages, of which attention alone needs nothing."""


package = package_of(PACKAGE, [NAME], NAME, STAND_INS)


@pytest.mark.registry
@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("causal", [False, True])
def test_values_and_gradients_are_those_of_reformer_pytorch(package, rounds, causal, monkeypatch):
    theirs = package.LSHAttention(
        bucket_size=CHUNK, n_hashes=rounds, causal=causal, allow_duplicate_attention=False,
        attend_across_buckets=False,
    )  # fmt: skip
    for seed in range(20):
        torch.manual_seed(seed)
        qk, v = torch.randn(2, 1, POSITIONS, WIDTH, dtype=torch.float64)
        buckets = torch.randint(BUCKETS, (rounds, POSITIONS))
        apart = (buckets + BUCKETS * torch.arange(rounds).unsqueeze(1)).view(1, -1)
        monkeypatch.setattr(theirs, "hash_vectors", lambda *_, apart=apart, **__: apart)
        given = [x.clone().requires_grad_() for x in (qk, v)]
        mine = [x.clone().requires_grad_() for x in (qk, v)]
        wanted = theirs(*given)[0]
        found = lsh_attention(*(x.unsqueeze(0) for x in mine), buckets[None, None], chunk=CHUNK, causal=causal,
                              published=causal)[0]  # fmt: skip
        assert_alike(found, wanted, mine, given, tolerance=1e-7)
