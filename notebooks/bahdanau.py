# %% [markdown]
# # Bahdanau et al. 2015: what is attention good for?
#
# RNNsearch translates a made-up language in which neighbours change places. Every written word attends to the words
# that were read: it should find its own, wherever it stands.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("bahdanau.rnnsearch-50")
print_tried(answer(model, "teso tola mumo dala romu"), "As it was trained")

# %% [markdown]
# One thing is changed: without v_a all energies are 0, and attention gives all words the same weight.

# %%
sentences = list(zip(*(lines[:40] for lines in model.data.lines("test")), strict=True))


def right() -> float:
    """The share of the sentences that are translated without a mistake."""
    return sum(answer(model, source).output == target for source, target in sentences) / len(sentences)


attentive = right()
with torch.no_grad():
    model.network.attention.v_a.zero_()
print_tried(answer(model, "teso tola mumo dala romu"), "With the same weight for all words")
print(f"Sentences without a mistake: {attentive:.0%} as trained, {right():.0%} with equal weights.")
assert attentive > right()
