# %% [markdown]
# # Dai et al. 2019: what does the memory hold?
#
# The text states facts, key:value, and asks for them again, key?, beyond the segment of 32 words that the model reads
# at once. What it knows of earlier segments is in its memory.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("transformer_xl.recall-xl")
split, reach = model.data.split("test"), model.config.evaluation.reach.reach
print_tried(answer(model, "kero:sava deno:sura bemo:wula turo:zona davo:wula kero?"), "As it was trained")

# %% [markdown]
# One thing is changed: how many words of earlier segments the memory keeps.

# %%
losses = {}
for memory in (0, 16, 32, 64, 128):
    with torch.no_grad():
        state = model.network.memory(16, reach._replace(memory=memory))
        batches = list(split.evaluation_batches(columns=16, length=32))[:40]
        nats = [model.network(batch.inputs, batch.targets, state).mean() for batch in batches]
    losses[memory] = torch.stack(nats).mean().item()
    print(f"memory of {memory:3} words: {losses[memory]:.3f} nats a word")
assert losses[64] < losses[0]
