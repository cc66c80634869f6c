# %% [markdown]
# # Kitaev et al. 2020: how many rounds of hashing?
#
# A Reformer has learned to say a word of 23 symbols again. A symbol attends only to those that a random hash puts into
# its bucket; four rounds of hashing make it likely that the right one is among them.

# %%
import numpy as np
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("reformer.lsh-4")
word = "3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3 2 3 8 4 6 2 6"
print_tried(answer(model, word), "As it was trained, with 4 rounds")

# %% [markdown]
# The buckets of the symbols (symbol@place) in one round and head of the first layer. A symbol of the second half, which
# begins at place 24, finds those before it in its own bucket.

# %%
symbols = [0, *map(int, word.split())] * 2
layer = model.network.layers[0]
with torch.no_grad():
    x = model.network._embedded(torch.tensor([symbols[:-1]]), 0)
    buckets = layer.attention.hashes(layer.attention_norm(x))[0, 0, 0].tolist()
for bucket in sorted({*buckets}):
    members = [place for place, of in enumerate(buckets) if of == bucket]
    print(f"bucket {bucket}:", " ".join(f"{symbols[place]}@{place}" for place in members))

# %% [markdown]
# One thing is changed: the number of rounds, with the weights as they are.

# %%
copies = model.data.split("test").batch(np.arange(200))


def right() -> float:
    """The share of the symbols of the second half that are predicted."""
    with torch.no_grad():
        said = model.network.output.log_probs(model.network(copies.inputs)).argmax(-1)
    return (said == copies.targets)[:, -23:].float().mean().item()


shares = {4: right()}
for rounds in (1, 2, 8):
    generator = torch.Generator().manual_seed(rounds)
    for layer in model.network.layers:
        heads, _, size, half = layer.attention.rotations.shape
        layer.attention.rotations = torch.empty(heads, rounds, size, half)
        layer.attention.redraw(generator)
    shares[rounds] = right()
    if rounds == 1:
        print_tried(answer(model, word), "With one round")
for rounds, share in sorted(shares.items()):
    print(f"Symbols that are said again rightly, rounds of hashing {rounds}: {share:.1%}")
assert shares[1] < shares[4]
