# %% [markdown]
# # Dosovitskiy et al. 2021: does it know where a patch is?
#
# A Transformer reads a digit of 12 x 12 pixels as 16 patches. Nothing but learned vectors, added to the patches, say
# where each of them is.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model

at_root()
model = load_model("vision_transformer.vit-10000")
text = model.data.lines("test")[0][0]
tried = answer(model, "test:0")
side = model.network.side

# %% [markdown]
# The digit, and beside it what the class is read from: attention, rolled out over all layers to the pixels.

# %%
print(f"As it was trained: a {tried.output}")
drawn = "".join(" ░▓█"[int(grey)] for grey in text.split())
shares = tried.weights[0].shades()[0]
for row in range(0, side * side, side):
    looked = "".join(" ░▒▓█"[round(4 * shade)] for shade in shares[row : row + side].tolist())
    print(f"  {drawn[row : row + side]}   {looked}")
print(tried.lines[-1])

# %% [markdown]
# One thing is changed: patches change places; and then, no patch is told its place.

# %%
from shared.tasks.classification.evaluation import answers

split = model.data.split("test")


def right() -> float:
    """The share of the test digits that are known."""
    found = [said.logits.argmax(-1) == batch.labels for _, batch, said in answers(model.network, split, 200)]
    return torch.cat(found).float().mean().item()


known = {"as trained": right()}
table = model.network.positions.table
with torch.no_grad():
    table.copy_(table[torch.randperm(len(table), generator=torch.Generator().manual_seed(1))])
    known["with the places shuffled"] = right()
    table.zero_()
    known["without places"] = right()
for said, share in known.items():
    print(f"Test digits that are known, {said}: {share:.0%}")
assert known["as trained"] > known["without places"]
