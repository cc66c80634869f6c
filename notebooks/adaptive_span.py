# %% [markdown]
# # Sukhbaatar et al. 2019: how far does each head look back?
#
# The text states facts, key:value, and asks for them again, key?. Each head has learned how many words it looks back;
# in training, a long span costs.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried
from shared.tasks.language.evaluation import decoded

at_root()
model = load_model("adaptive_span.adaptive")
split, reach = model.data.split("test"), model.config.evaluation.reach.reach
words = decoded(model.data.tokenizer, split.symbols[:200].tolist()).split()
asked = max(place for place, word in enumerate(words[:40]) if word.endswith("?"))
print_tried(answer(model, " ".join(words[: asked + 1])), "As it was trained")

# %% [markdown]
# The spans that the heads have learned:

# %%
layers = [layer.attention for layer in model.network.layers]
limit = layers[0].limit
for number, attention in enumerate(layers, 1):
    spans = attention.spans().tolist()
    print(f"layer {number}:", ", ".join(f"{span:.0f}" for span in spans), f"of at most {limit} words")

# %% [markdown]
# One thing is changed: no head looks further back than so many words.

# %%
learned = [attention.share.clone() for attention in layers]
losses = {}
for most in (0, 8, 32, limit):
    with torch.no_grad():
        for attention, share in zip(layers, learned, strict=True):
            attention.share.copy_(share.clamp(max=most / limit))
        state = model.network.memory(16, reach)
        batches = list(split.evaluation_batches(columns=16, length=32))[:40]
        nats = [model.network(batch.inputs, batch.targets, state).mean() for batch in batches]
    losses[most] = torch.stack(nats).mean().item()
    print(f"spans of at most {most:3} words: {losses[most]:.3f} nats a word")
assert losses[limit] <= losses[0]
