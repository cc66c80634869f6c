# %% [markdown]
# # Luong et al. 2015: what does the score compare?
#
# In this made-up language the two halves of a sentence change places, so that a word is written far from where it is
# read. The score is hᵀ W_a h̄, "general".

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("luong.halves-general")
print_tried(answer(model, "sonu tutu timi nuri"), "As it was trained")

# %% [markdown]
# One thing is changed: with the identity as W_a the score is hᵀ h̄, "dot", for which these states were not trained.

# %%
sentences = list(zip(*(lines[:40] for lines in model.data.lines("test")), strict=True))


def right() -> float:
    """The share of the sentences that are translated without a mistake."""
    return sum(answer(model, source).output == target for source, target in sentences) / len(sentences)


general = right()
with torch.no_grad():
    model.network.attention.score.w_a.copy_(torch.eye(*model.network.attention.score.w_a.shape))
print_tried(answer(model, "sonu tutu timi nuri"), "With the identity as W_a")
print(f"Sentences without a mistake: {general:.0%} as trained, {right():.0%} without what W_a had learned.")
assert general > right()
