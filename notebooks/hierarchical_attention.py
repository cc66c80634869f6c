# %% [markdown]
# # Yang et al. 2016: does it matter which words count?
#
# One sentence of each document says its class, by the first of two values after a word of a topic that decides. The
# model weighs the words of each sentence, and then the sentences.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("hierarchical_attention.attention")
text = model.data.lines("test")[0][0]
print_tried(answer(model, text), "As it was trained")

# %% [markdown]
# What each sentence weighs: the sum of its words' weights.

# %%
from shared.tasks.classification.evaluation import answers

weights = answer(model, text).weights[0].values[0].tolist()
tokens, begin = text.split(), 0
for place, word in enumerate(tokens):
    if word == ".":
        print(f"{sum(weights[begin : place + 1]):4.0%}  {' '.join(tokens[begin : place + 1])}")
        begin = place + 1

# %% [markdown]
# One thing is changed: all sentences weigh alike; or all words of a sentence do; and then both.
#
# The first costs this model nothing: the mean of its sentences' vectors still tells the class.

# %%
split = model.data.split("test")


def right() -> float:
    """The share of the test documents whose class is found."""
    found = [said.logits.argmax(-1) == batch.labels for _, batch, said in answers(model.network, split, 200)]
    return torch.cat(found).float().mean().item()


sentences, words = (level.attention.u_w.weight for level in (model.network.sentences, model.network.words))
learned = sentences.clone()
shares = {"as trained": right()}
with torch.no_grad():
    sentences.zero_()
    shares["with the same weight for all sentences"] = right()
    sentences.copy_(learned)
    words.zero_()
    shares["with the same weight for all words of a sentence"] = right()
    sentences.zero_()
    shares["with both"] = right()
print_tried(answer(model, text), "With the same weight for all sentences and words")
for said, share in shares.items():
    print(f"Test documents whose class is found, {said}: {share:.0%}")
assert shares["as trained"] > shares["with the same weight for all words of a sentence"]
