# %% [markdown]
# # Shaw et al. 2018: what do distances do?
#
# Nothing is added to the words of this Transformer: each pair of words has a vector for its distance instead, which
# attention adds to keys and values.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("shaw.relative")
print_tried(answer(model, "furo biso toru sema lovo pilu"), "As it was trained")

# %% [markdown]
# One thing is changed: all distances have the vector 0, so that nothing tells the order of the words.

# %%
from replications.shaw.model import RelativeAttention

sentences = list(zip(*(lines[:40] for lines in model.data.lines("test")), strict=True))


def right() -> float:
    """The share of the sentences that are translated without a mistake."""
    return sum(answer(model, source).output == target for source, target in sentences) / len(sentences)


ordered = right()
with torch.no_grad():
    for part in model.network.modules():
        if isinstance(part, RelativeAttention):
            part.w_k_distances.zero_()
            part.w_v_distances.zero_()
print_tried(answer(model, "furo biso toru sema lovo pilu"), "Without distances")
print(f"Sentences without a mistake: {ordered:.0%} as trained, {right():.0%} without distances.")
assert ordered > right()
