# %% [markdown]
# # Katharopoulos et al. 2020: what does φ do?
#
# A Transformer with linear attention, φ(Q)(φ(K)ᵀV) with φ(x) = elu(x) + 1, has learned digits of 7 x 7 pixels and
# completes one of which the upper rows are given. It runs as a recurrent network: its state does not grow.

# %%
import torch

from shared.pipeline.trying import answer, at_root, load_model, print_tried

at_root()
model = load_model("linear_transformer.mnist-linear")
print_tried(answer(model, "test:1"), "As it was trained")

# %% [markdown]
# One thing is changed: φ(x) = max(x, 0) in place of elu(x) + 1, with the weights as they are.

# %%
from replications.linear_transformer import model as paper
from shared.attention.feature_maps import ReLU

pixels = model.data.split("test").batch(range(200))


def nats() -> float:
    """The mean loss of a pixel of the test digits."""
    with torch.no_grad():
        return model.network.output(model.network(pixels.inputs), pixels.targets).mean().item()


with_elu = nats()
paper.ELU = ReLU()
print_tried(answer(model, "test:1"), "With another φ")
print(f"Loss of a pixel: {with_elu:.2f} nats as trained, {nats():.2f} with another φ.")
assert with_elu < nats()
