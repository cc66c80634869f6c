# %% [markdown]
# # Lee et al. 2019: how does attention find a maximum?
#
# The model has learned the largest of up to ten numbers between 0 and 1. Attention lets each number look at the others
# (SAB), and a learned seed looks at all of them (PMA). Nothing tells their order.

# %%
import numpy as np
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("set_transformer.maxima-sab")
print_tried(answer(model, "0.21; 0.83; 0.4; 0.79; 0.05"), "As it was trained")
print("In another order:", answer(model, "0.05; 0.79; 0.83; 0.21; 0.4").output)

# %% [markdown]
# What each number attends to, in the first block of the encoder, and what the seed attends to; means over heads. It is
# the numbers that pick the largest; the seed then finds it everywhere.

# %%
numbers = [0.05, 0.21, 0.4, 0.79, 0.83]
elements = torch.tensor([numbers]).unsqueeze(2)
block, pma = model.network.encoder[0].mab.multihead, model.network.pma
with torch.no_grad():
    x = model.network.embedding(elements)
    of_numbers = block(x, block.project(x), weights=True)[1].mean(1)[0]
    z = pma.rff(model.network.features(elements, torch.ones(1, 5, dtype=torch.bool)))
    of_seed = pma.mab.multihead(pma.seeds.unsqueeze(0), pma.mab.multihead.project(z), weights=True)[1].mean(1)[0]
print("     ", *(f"{number:5.2f}" for number in numbers))
for name, row in zip([*map("{:.2f}".format, numbers), "seed"], torch.cat((of_numbers, of_seed)).tolist(), strict=True):
    print(f"{name:5}", *(f"{weight:5.0%}" for weight in row))

# %% [markdown]
# One thing is changed: the seed attends to all numbers alike; and then each number does, too.

# %%
sets = model.data.split("test").batch(np.arange(500))


def error() -> float:
    """The mean distance from the largest number of the test sets."""
    with torch.no_grad():
        return (model.network(sets.elements, sets.mask)[:, 0] - sets.targets).abs().mean().item()


errors = {"as trained": error()}
with torch.no_grad():
    pma.mab.multihead.w_q.weight.zero_()
    errors["where the seed attends to all alike"] = error()
    for layer in model.network.encoder:
        layer.mab.multihead.w_q.weight.zero_()
    errors["where numbers do, too"] = error()
print_tried(answer(model, "0.21; 0.83; 0.4; 0.79; 0.05"), "With the same weight for all numbers")
for said, mean in errors.items():
    print(f"Mean distance from the maximum, {said}: {mean:.3f}")
assert errors["as trained"] < errors["where numbers do, too"]
