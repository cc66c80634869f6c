"""What decides a claim is trained and judged alike, but for what its variants are named for; networks are models."""

import importlib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from shared.claims.schema import load_claims
from shared.config import flat, load_yaml
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.search import Search
from shared.tasks.kinds import load_measures, papers
from tests.checklist import ROOT, assert_variant
from tests.replications.shipped_variants import REPLICATIONS, scale_file_of

RATE = "training.optimizer.learning_rate"
DIFFER = {
    "bahdanau * *": ["model.alignment_size"],
    "bahdanau * B15-C2": ["training.max_words"],
    "bahdanau bench B15-C4": ["training.updates"],
    "bahdanau paper_scale *": ["training.updates", "training.patience"],  # the paper's own
    "luong bench *": ["model.attention.positions"],  # of the score by location alone
    "luong paper_scale *": ["evaluation.ensemble", "model.attention.*"],
    "performer * C21-C5": ["model.swap_at", "training.updates", "training.schedule.*"],
    "reformer quick *": ["evaluation.swapped*"],  # looks at a model with other rounds of hashing
    "self_attentive bench *": ["evaluation.deletion*", "model.b"],
    "set_transformer * *": ["model.width"],  # as wide as makes parameters as many
    "show_attend_tell bench X15-C2": ["model.gate"],
    "transformer * V17-C[23]": ["model.d_[kv]"],
    "transformer bench V17-C4": ["model.d_model"],
    "transformer * V17-C7": ["model.positions.count"],
    "transformer quick V17-C1": ["training.updates", "training.validate_every"],  # equal operations
    "transformer bench V17-C9": ["model.settings.*", "training.updates"],
    "transformer_xl * *": ["evaluation.sliding.*", "evaluation.contexts.*", "evaluation.samples.*"],
    "transformer_xl bench D19-C3": ["task"],  # of the same text; absolute positions have a floor of their own
}
"""Paper, scale and claim to what else may differ, as README and claim say."""


def deciding(paper: str, scale: str) -> Iterator[tuple[str, str, str]]:
    """Every claim and the two variants that its primary comparison is of, where both are trained at the scale."""
    settings = scale_file_of(paper, scale)
    for claim in load_claims(REPLICATIONS / paper / "claims.yaml", scale).claims:
        if claim.primary is not None and claim.undecided_at(scale) is None:
            pair = [name for name in claim.primary.variants if name in settings.variants]
            if len(pair) == 2 and not any("study" in settings.run(name).model for name in pair):
                yield claim.id, *pair


def of(settings: ScaleFile, variant: str) -> dict[str, object]:
    run = settings.run(variant)
    return flat(run.model_dump(exclude={"seeds", "model"}) | {"model": dict(run.model)})


@pytest.mark.parametrize(
    ("paper", "scale"), [(paper, scale) for paper in papers() for scale in scales_of(paper) if scale != "smoke"]
)
def test_two_sides_differ_in_what_they_are_named_for(paper: str, scale: str) -> None:
    load_measures()
    settings, identities = scale_file_of(paper, scale), load_yaml(REPLICATIONS / paper / "variants.yaml")["variants"]
    pairs = list(deciding(paper, scale))
    assert pairs or scale != "quick"
    for claim, first, second in pairs:
        named = {key for name in (first, second) for key in flat(identities[name])}
        allowed = [key for place, keys in DIFFER.items() if fnmatch(f"{paper} {scale} {claim}", place) for key in keys]
        ours, theirs = of(settings, first), of(settings, second)
        for key in {key for key in ours | theirs if ours.get(key) != theirs.get(key)} - {RATE}:
            own = any(f"{key}.".startswith(f"{name}.") or f"{name}.".startswith(f"{key}.") for name in named)
            assert own or any(fnmatch(key, each) for each in allowed), f"{claim}: {key}"
        assert {*settings.run(first).seeds} & {*settings.run(second).seeds}, claim


@pytest.mark.parametrize(
    "path", sorted((ROOT / "replications").glob("*/*/search.yaml")), ids=lambda path: "-".join(path.parts[-3:-1])
)
def test_the_same_model_as_one_that_is_searched_has_its_settings(path: Path) -> None:
    settings = scale_file_of(*path.parts[-3:-1])
    for group in Search(settings).same:
        if "the same model" in group.because:
            for variant in group.variants:
                assert settings.run(variant).model == settings.run(group.same_as).model, variant


@pytest.mark.parametrize("scale", ["quick", "bench", "paper_scale"])
def test_who_is_handed_weights_has_as_many_updates_after_it_as_who_starts_anew(scale: str) -> None:
    settings = scale_file_of("performer", scale)
    exact, transferred, scratch = map(settings.run, ("copy-transformer", "transferred", "scratch"))
    assert transferred.model["swap_at"] == exact.training.updates
    assert transferred.training.updates - exact.training.updates == scratch.training.updates > 0
    assert transferred.evaluation.checkpoint == exact.evaluation.checkpoint == "last"  # the best may be before it


PAPERS = sorted(path.parent.name for path in (ROOT / "replications").glob("*/model.py"))


def networks(paper: str) -> list[str]:
    """Variants with a network of the paper's own, one for each ``model`` section."""
    file: ScaleFile = scale_file_of(paper, "smoke")
    known = importlib.import_module(f"replications.{paper}.settings").ModelConfig.model_fields
    sections: dict[str, str] = {}
    for variant in file.built_variants:
        model = file.run(variant).model
        if model.keys() <= known.keys():
            sections.setdefault(repr(sorted(model.items())), variant)
    return list(sections.values())


@pytest.mark.parametrize(("paper", "variant"), [(paper, variant) for paper in PAPERS for variant in networks(paper)])
def test_a_shipped_network_is_a_model(paper: str, variant: str) -> None:
    assert_variant(paper, variant)
