"""A model of sets built from settings, and made-up sets, for tests of the kind "sets"."""

import torch
from torch import nn

from shared.tasks.sets.settings import SetCorpusConfig
from tests.tasks.in_process import ToyConfig as ToyConfig

CARD = {
    "languages": {}, "splits": {},
    "sources": [{"kind": "generated", "task": "maxima", "parameters": {
        "seed": 1, "sizes": [1, 6], "splits": {"test": 15, "test_other": 10, "valid": 20, "train": 90},
    }}],
}  # fmt: skip
SPLITS = {"train": 30, "valid": 12, "test": 40}
CORPORA = {
    "number": SetCorpusConfig(dataset="toy", asked="number", numbers=1, sizes=(1, 6)),
    "count": SetCorpusConfig(dataset="toy", asked="count", numbers=4, sizes=(2, 5), composed=SPLITS, levels=3),
    "mixture": SetCorpusConfig(dataset="toy", asked="mixture", numbers=2, sizes=(3, 7), components=2),
}


class Toy(nn.Module):
    """The maximum of features, and a layer to all outputs."""

    def __init__(self, config, elements, outputs):
        super().__init__()
        self.features, self.outputs = nn.Linear(elements, config.size), outputs
        self.output = nn.Linear(config.size, outputs[0] * outputs[1])

    def forward(self, elements, mask):
        features = self.features(elements).masked_fill(~mask.unsqueeze(2), -torch.inf)
        return self.output(features.amax(1)).view(len(elements), *self.outputs)
