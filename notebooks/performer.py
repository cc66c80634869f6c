# %% [markdown]
# # Choromanski et al. 2021: how many random features?
#
# A Performer with 32 random features for each head has learned to copy words. Its features estimate softmax attention,
# so that exact attention can take their place, with the same weights.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("performer.copy-positive")
print_tried(answer(model, "3 1 4 1 5 9"), "As it was trained, with 32 features")

# %% [markdown]
# One thing is changed: the features. First exact attention takes their place, then two features for each head.

# %%
from shared.attention.favor import SoftmaxFeatures

words = ["3 1 4 1 5 9", "2 7 1 8 2 8", "1 4 1 4 2 1", "5 7 7 2 1 5", "6 6 2 6 7 7", "8 9 10 1 2 3"]


def right() -> int:
    """How many of the symbols are copied rightly."""
    copies = [answer(model, word).output.split() for word in words]
    return sum(
        a == b for word, copy in zip(words, copies, strict=True) for a, b in zip(word.split(), copy, strict=True)
    )


counts = {"32 features": right()}
for attention in model.network.attentions:
    attention.exact.fill_(True)
counts["exact attention"] = right()
torch.manual_seed(1)
for attention in model.network.attentions:
    attention.exact.fill_(False)
    attention.features = SoftmaxFeatures(key_size=8, projections=2)
counts["2 features"] = right()
print_tried(answer(model, words[0]), "With 2 features")
print(", ".join(f"{said}: {count} of {6 * len(words)} symbols" for said, count in counts.items()))
assert counts["2 features"] < counts["32 features"]
