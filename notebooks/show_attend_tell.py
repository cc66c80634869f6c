# %% [markdown]
# # Xu et al. 2015: what if the gate stays shut?
#
# The model captions scenes composed of OpenMoji pictures. For each word it looks at places of the picture, and a gate β
# says how much of what it sees counts for the word.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("show_attend_tell.soft")
print_tried(answer(model, "test:3"), "As it was trained")

# %% [markdown]
# One thing is changed: a bias of -100 shuts the gate, so that the decoder is told nothing of what attention sees.

# %%
pictures = [f"test:{number}" for number in range(12)]
seen = [answer(model, picture).output for picture in pictures]
with torch.no_grad():
    model.network.decoder.f_beta.bias.fill_(-100)
blind = [answer(model, picture).output for picture in pictures]
for picture, one, other in zip(pictures, seen, blind, strict=True):
    print(f"{picture}: {one}\n    gate shut: {other}")
assert len({*blind}) <= len({*seen})
