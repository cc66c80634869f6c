"""The generated documents, read by a reader that shares nothing with the generator."""

import itertools
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from test_generators import SMALL

from shared.config import build, load_yaml
from shared.data.generated import generate
from shared.data.generated.documents import Documents, vocabulary


def check(parameters, corpus):
    """Every document against the rule: the first value of the one sentence with a key is the class."""
    words = vocabulary(parameters)
    meaning = {form: forms[0] for forms in words.values for form in forms}
    for segment in itertools.chain(*corpus.values()):
        text, label, positions = segment.texts
        assert text.endswith(" .")
        sentences = [sentence.split() for sentence in text.removesuffix(" .").split(" . ")]
        assert parameters.sentences[0] <= len(sentences) <= parameters.sentences[1]
        deciding = [number for number, sentence in enumerate(sentences) if {*sentence} & {*words.keys}]
        assert len(deciding) == 1
        for number, sentence in enumerate(sentences):
            values = [meaning[word] for word in sentence if word in meaning]
            assert len({*values}) == len(values) == 2
            assert sum(word in words.topics for word in sentence) == (number != deciding[0])
            assert number != deciding[0] or values[0] == label
        begin = sum(len(sentence) + 1 for sentence in sentences[: deciding[0]])
        assert positions == " ".join(map(str, range(begin, begin + len(sentences[deciding[0]]) + 1)))


def test_the_shipped_labels_follow_from_the_texts(pytestconfig, generated):
    parameters = load_yaml(pytestconfig.rootpath / "data/generated_documents.yaml")["sources"][0]["parameters"]
    corpus = generated("documents", parameters)
    check(build(Documents, parameters, where="card"), corpus)
    for segments in corpus.values():
        counts = Counter(segment.texts[1] for segment in segments)
        assert max(counts.values()) - min(counts.values()) <= 1
    counts = Counter(word for segment in corpus["train"] for word in segment.texts[0].split())
    assert counts.most_common(1)[0][0] == "."  # so that models know it as the first word of the vocabulary


@given(seed=st.integers(0, 1000), values=st.integers(2, 4), most=st.integers(1, 4), spare=st.integers(0, 8))
@settings(deadline=None, max_examples=30)
def test_labels_follow_from_the_texts_for_any_parameters(seed, values, most, spare):
    shortest = 4 * most + spare
    splits = {"train": {"buckets": [[shortest, shortest + 5]], "per_bucket": 20}}
    parameters = SMALL["documents"] | {"seed": seed, "values": values, "sentences": [1, most], "splits": splits}
    check(build(Documents, parameters, where="test"), generate("documents", parameters))
