"""Operations that are counted on shapes alone are those of real tensors, and the page has every variant."""

import re

import pytest

from shared.data.cards import load_card
from shared.metrics.operations import FORWARD_PASSES, OPERATIONS_PER_MULTIPLY_ADD, count_operations
from shared.pipeline.config import ScaleFile, scales_of
from shared.pipeline.costs import PAGE, PEAK, SCALE, USE, cost_of, network_of, paper_costs, rounded, traffic
from shared.tasks.kinds import load_replication, papers

SAMPLES = [
    "bahdanau.rnnsearch-30", "bahdanau.rnnencdec-30", "luong.swaps-base", "luong.local-p-general-feed",
    "transformer.base", "self_attentive.attention", "show_attend_tell.soft", "transformer_xl.xl", "transformer_xl.lstm",
    "linear_transformer.copy-linear", "linear_transformer.copy-softmax",
]  # fmt: skip


@pytest.fixture(autouse=True)
def project(root, monkeypatch):
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize("name", SAMPLES)
def test_shapes_give_the_operations_of_real_tensors(name):
    paper, _, variant = name.partition(".")
    scale = "quick" if variant in ScaleFile(paper, "quick").variants else "smoke"
    config = ScaleFile(paper, scale).run(variant)
    runner, config = network_of(load_replication(paper), config)
    found = cost_of(runner, config)
    batch, sizes = runner.part("module").random_batch(config)
    model = runner.model(config, sizes)
    counted = count_operations(runner.part("module").module(model, config, None).training_step, batch, 0)
    training = config.training
    each = OPERATIONS_PER_MULTIPLY_ADD * FORWARD_PASSES * training.accumulate * counted
    assert found.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert found.operations == pytest.approx(each * training.updates, rel=1e-2)
    assert (found.updates, found.seeds) == (training.updates, len(config.seeds))


def test_the_page_has_every_variant_that_trains_a_network():
    page = PAGE.read_text(encoding="utf-8")
    for paper in [paper for paper in papers() if SCALE in scales_of(paper)]:
        settings, replication = ScaleFile(paper, SCALE), load_replication(paper)
        own = re.search(rf"^## {paper}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert own is not None, f"{PAGE} lacks {paper}; run `python -m shared.pipeline costs`"
        listed = re.findall(r"^\| ([\w-]+) \| [\d,]+ \|", own[1], re.MULTILINE)
        wanted = [each for each in settings.variants if network_of(replication, settings.run(each)) is not None]
        assert listed == wanted, f"{PAGE} is not current; run `python -m shared.pipeline costs`"


def test_the_page_has_the_sums_over_seeds_and_what_is_to_be_downloaded():
    page, found = PAGE.read_text(encoding="utf-8"), paper_costs("self_attentive")
    for variant, cost in found["costs"].items():
        assert cost.hours == pytest.approx(cost.seeds * cost.operations / (PEAK * USE) / 3600)
        assert cost.disk == cost.seeds * 2 * 12 * cost.parameters
        counts = f"{cost.parameters:,} | {cost.updates:,} | {cost.seeds} | {cost.operations:.2g}"
        assert f"\n| {variant} | {counts} | {rounded(cost.hours)} |\n" in page
    sums = [rounded(number) for number in (found["hours"], found["disk"] / 1e9, found["data"] / 1e9)]
    assert f"\n| self_attentive | {' | '.join(sums)} | {found['download']} |\n" in page


def with_sizes(card, *sizes):
    """A card whose official files have other sizes."""
    (source,) = [source for source in card.sources if source.kind == "web"]
    files = [file.model_copy(update={"bytes": size}) for file, size in zip(source.downloads, sizes, strict=True)]
    return card.model_copy(update={"sources": (source.model_copy(update={"downloads": tuple(files)}),)})


def test_a_file_is_downloaded_once_and_a_size_that_no_card_has_is_unknown():
    mnist, text8 = load_card("mnist"), load_card("text8")
    assert traffic([]) == (0, [])
    assert traffic([load_card("generated_copy")]) == (0, [])
    assert traffic([load_card("bible")]) == (0, ["bible"])  # of a package, whose size its card does not have
    assert traffic([with_sizes(mnist, 3, 4)]) == (7, [])
    assert traffic([with_sizes(mnist, 3, 4), with_sizes(mnist, 3, 4), with_sizes(text8, 10)]) == (17, [])
    assert traffic([with_sizes(mnist, 3, None), with_sizes(text8, None)]) == (3, ["mnist", "text8"])
