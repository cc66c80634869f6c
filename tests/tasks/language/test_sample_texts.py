"""The texts of the report: from which places, with their line ends, and no longer than a model sees."""

import json

import pytest
import torch

from shared.config import build
from shared.data.tokenizers import EOS
from shared.errors import ReplicationError
from shared.tasks.language.corpus import PreparedLanguage, prepare_language
from shared.tasks.language.samples import write_samples
from shared.tasks.language.settings import LanguageRun
from tests.tasks.language.toy_language_models import Toy, ToyConfig

TEXT = "the cat sat\non the mat\n\nthe dog was not there\n" * 4
TOKENIZERS = {
    "characters": ("character", {"kind": "characters"}),
    "bytes": ("byte", {"kind": "bytes"}),
    "words": ("word", {"kind": "words", "size": 30}),
    "pieces": ("word", {"kind": "sentencepiece", "size": 24}),
}


class Spy(Toy):
    def __init__(self, vocabulary):
        super().__init__(ToyConfig(size=8), vocabulary)
        self.read = []

    def next_log_probs(self, inputs, memory=None):
        self.read.append((tuple(inputs.shape), None if memory is None else memory.reach))
        return super().next_log_probs(inputs, memory)


def prepare(folder, tokenizer, **evaluation):
    unit, kind = TOKENIZERS[tokenizer]
    config = build(LanguageRun, {
        "task": "toy", "model": {}, "seeds": [1],
        "corpus": {"dataset": "toy", "tokenizer": kind, "unit": unit},
        "training": {"updates": 1, "batch": {"sentences": 1, "length": 4}, "validate_every": 1,
                     "optimizer": {"name": "adam", "learning_rate": 0.1}},
        "evaluation": {"length": 4, "reach": {"memory": 6}} | evaluation,
    }, where="test")  # fmt: skip
    for split in ("train", "valid", "test"):
        (folder / f"{split}.text").write_text(TEXT, newline="\n")
    prepare_language(config.corpus, folder, folder)
    text = PreparedLanguage.load(folder)
    torch.manual_seed(0)
    return Spy(len(text.tokenizer)).eval(), text, config


def written(folder, model, text, config, **options):
    write_samples(model, text, config, folder, **options)
    return json.loads((folder / "samples.json").read_text())


@pytest.mark.parametrize("tokenizer", ["characters", "bytes", "words"])
def test_prompts_are_spread_over_the_text_and_go_on_as_it_does(tmp_path, tokenizer):
    samples = {"prompts": 3, "prompt": 9, "length": 7}
    found = written(tmp_path, *prepare(tmp_path, tokenizer, samples=samples))
    for sample in found:
        assert sample.keys() == {"prompt", "text", "true"}
        if tokenizer == "words":
            assert " ".join(f"{sample['prompt']} {sample['true']}".split()) in " ".join(TEXT.split())
        else:
            assert sample["prompt"] + sample["true"] in TEXT
            assert (len(sample["prompt"]), len(sample["true"])) == (9, 7)
    assert len(found) == 3
    assert len({sample["prompt"] for sample in found}) == 3


def test_line_ends_stand_where_end_symbols_are(tmp_path):
    samples = {"prompts": 1, "prompt": 4, "length": 40, "top_k": 1}
    model, text, config = prepare(tmp_path, "words", samples=samples)
    with torch.no_grad():
        model.out.weight.zero_()
        model.out.bias.fill_(0.0)[EOS] = 9.0
    (sample,) = written(tmp_path, model, text, config)
    assert sample["text"] == "\n" * 40
    assert "on the mat\n\nthe dog was not there\n" in sample["true"]


def test_pieces_become_words(tmp_path):
    model, text, config = prepare(tmp_path, "pieces", samples={"prompts": 1, "prompt": 30, "length": 30})
    (sample,) = written(tmp_path, model, text, config)
    assert "▁" not in "".join(sample.values())
    lines = TEXT.splitlines()
    assert all(line in lines for line in sample["true"].split("\n")[1:-1])
    assert all(any(line in whole for whole in lines) for line in sample["prompt"].split("\n"))


@pytest.mark.parametrize(
    ("evaluation", "first", "later", "memory"),
    [
        ({}, 9, 1, (6, False, None)),
        ({"reach": {"memory": 5, "same_length": True, "clamp": 3}}, 9, 1, (5, True, 3)),
        ({"reach": {"memory": 0}}, 4, 4, None),
        ({"reach": {"memory": 0}, "sliding": {"context": 7}}, 7, 7, None),
        ({"reach": {"memory": 0}, "sliding": {"context": 20}}, 9, 9, None),
    ],
)
def test_a_model_sees_as_much_as_it_is_judged_with(tmp_path, evaluation, first, later, memory):
    samples = {"prompts": 2, "prompt": 9, "length": 3}
    model, text, config = prepare(tmp_path, "characters", samples=samples, **evaluation)
    written(tmp_path, model, text, config)
    assert model.read == [((2, first), memory), *[((2, later), memory)] * 2]


def test_a_seed_decides_the_text(tmp_path):
    case = prepare(tmp_path, "characters", samples={"prompt": 9, "length": 40})
    first = written(tmp_path, *case)
    assert written(tmp_path, *case) == first
    assert written(tmp_path, *case, seed=1) != first
    assert len({sample["text"] for sample in first}) == 2


def test_nothing_is_written_where_nothing_is_asked_for(tmp_path):
    write_samples(*prepare(tmp_path, "characters"), tmp_path)
    assert not (tmp_path / "samples.json").exists()


def test_a_short_text_is_refused(tmp_path):
    case = prepare(tmp_path, "characters", samples={"prompt": 100, "length": 5000})
    with pytest.raises(ReplicationError, match=r"100 symbols and 5000 more do not fit into the 184 symbols"):
        write_samples(*case, tmp_path)
