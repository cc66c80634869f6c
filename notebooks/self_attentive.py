# %% [markdown]
# # Lin et al. 2017: do several rows see several things?
#
# Each text asks two questions, and what most of its cues say answers each. The embedding of a text has four rows, each
# with weights of its own.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("self_attentive.attention")
text = model.data.lines("test")[0][0]
print_tried(answer(model, text), "As it was trained")

# %% [markdown]
# One thing is changed: all rows look where the first one looks; and then, to compare, everywhere alike.

# %%
from shared.tasks.classification.evaluation import answers

split = model.data.split("test")


def right() -> float:
    """The share of the test texts whose class is found."""
    found = [said.logits.argmax(-1) == batch.labels for _, batch, said in answers(model.network, split, 200)]
    return torch.cat(found).float().mean().item()


shares = {"as trained": right()}
w_s2 = model.network.encoder.attention.w_s2.weight
with torch.no_grad():
    w_s2.copy_(w_s2[:1].clone().expand_as(w_s2))
    shares["with four times the first row"] = right()
    w_s2.zero_()
    shares["with the same weight for all words"] = right()
print_tried(answer(model, text), "With the same weight for all words")
for said, share in shares.items():
    print(f"Test texts whose class is found, {said}: {share:.0%}")
assert shares["as trained"] > shares["with the same weight for all words"]
