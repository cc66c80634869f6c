# %% [markdown]
# # Vaswani et al. 2017: what do positions do?
#
# A Transformer of one layer and four heads translates a made-up language with swapped neighbours. Attention itself
# knows no order; positions are added to the words.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("transformer.base")
print_tried(answer(model, "seno risu detu sovo firo"), "As it was trained")

# %% [markdown]
# What each head of the decoder attends to in the source, while it writes the translation:

# %%
source = torch.tensor([[*model.data.source.encode(["seno risu detu sovo firo"])[0], 3]])
maps = model.network.attention_maps(source, source > 0, torch.cat((torch.tensor([[2]]), source[:, :-1]), dim=1))
for number, head in enumerate(maps["cross"][-1, 0].tolist(), 1):
    print(f"head {number}", *("  ".join(f"{weight:.2f}" for weight in row) for row in head), sep="\n  ")

# %% [markdown]
# One thing is changed: no positions are added.

# %%
from shared.layers.positions import NoPositions

model.network.positions = NoPositions()
print_tried(answer(model, "seno risu detu sovo firo"), "Without positions")
