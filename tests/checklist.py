"""What holds of every model, whatever paper it is of: one call for each kind, and one for a shipped variant.

    from tests.checklist import assert_variant

    def test_the_model() -> None:
        assert_variant("transformer", "base", parameters=1234)

No symbol sees a later one; padding, and company in a batch, change nothing; step by step, with beams that change
places, a model says what it says in one pass; equations give what their twins give, values and gradients; in mixed
precision it says nearly the same, and its gradients are finite.
"""

import importlib
import re
from collections.abc import Callable, Sequence
from contextlib import chdir, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from shared.attention.twins import plain_equations
from shared.data.tokenizers import BOS, EOS, PAD
from shared.decoding.protocol import Reach
from shared.pipeline.config import ScaleFile
from shared.vision.features import Grid

ROOT = Path(__file__).resolve().parents[1]
F64 = torch.float64
LENGTHS = (7, 4, 2)
STEPS = 6
close = partial(torch.testing.assert_close, atol=1e-8, rtol=1e-8)


def assert_variant(paper: str, variant: str, *, scale: str = "smoke", parameters: int | None = None) -> None:
    """The list, for a shipped variant; and how many parameters its model has for 19 symbols, where that is said."""
    with chdir(ROOT):
        run = ScaleFile(paper, scale).run(variant)
    settings = importlib.import_module(f"replications.{paper}.settings")
    build = importlib.import_module(f"replications.{paper}.replication").build_model
    config, vocabulary, grid, pairs = run.checked_model(settings.ModelConfig), 19, Grid(2, 3, 5), 1
    torch.manual_seed(1)
    match settings.KIND:
        case "translation":
            model = build(config, vocabulary, vocabulary)
            check: Callable[..., None] = assert_translator
        case "captioning":
            model, check = build(config, vocabulary, grid), partial(assert_captioner, grid=grid)
        case "classification":
            model = build(config, vocabulary, 3)
            pairs = 2 if getattr(config, "relation", None) else 1
            check = partial(assert_classifier, texts=pairs)
        case "language":
            vocabulary = max(vocabulary, *(2 + cutoff for cutoff in getattr(config, "cutoffs", ())), 0)
            model, check = build(config, vocabulary, None), assert_language_model
        case "sets":
            model, check, vocabulary = build(config, 2, (3, 5)), assert_set_model, 2
        case _:
            assert_sequence_model(build(config, vocabulary, False), vocabulary, causal=False)
            model, check = build(config, vocabulary, True), assert_sequence_model
    if parameters is not None:
        assert sum(p.numel() for p in model.parameters()) == parameters
    check(model, vocabulary)


def spread(model: nn.Module, std: float = 0.3) -> nn.Module:
    """The model in double precision and evaluation mode, its weights far from where they begin."""
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model.double().eval()


def sequences(vocabulary: int, lengths: Sequence[int] = LENGTHS) -> tuple[Tensor, Tensor]:
    """Symbols (B, T), right-padded, the last of each the end symbol, and their mask."""
    ends = torch.tensor(lengths).unsqueeze(1)
    mask = torch.arange(max(lengths)) < ends
    symbols = torch.randint(EOS + 1, vocabulary, mask.shape).scatter(1, ends - 1, EOS)
    return symbols.masked_fill(~mask, PAD), mask


def assert_alike(
    found: Tensor, expected: Tensor, ours: Sequence[Tensor], theirs: Sequence[Tensor] | None = None, *, tolerance: float
) -> None:  # fmt: skip
    """Values, and for one cotangent gradients of what each side is made of, by default the same, ten times as far off.

    Gradients of theirs may have other shapes; all must be some.
    """
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
    cotangent, sides = torch.randn_like(found), ((found, ours), (expected, ours if theirs is None else theirs))
    for one, other in zip(*(torch.autograd.grad(out, made_of, cotangent) for out, made_of in sides), strict=True):
        assert other.abs().max() > 0
        torch.testing.assert_close(one, other.view_as(one), atol=10 * tolerance, rtol=10 * tolerance)


def assert_sees_no_later(run: Callable[[Tensor], Tensor], symbols: Tensor, vocabulary: int) -> None:
    """``run``, symbols (B, T) to (B, T, …): what is at t does not change with what comes after t."""
    found = run(symbols)
    for t in range(1, symbols.size(1)):
        changed = torch.cat((symbols[:, :t], torch.randint(EOS + 1, vocabulary, symbols[:, t:].shape)), dim=1)
        close(run(changed)[:, :t], found[:, :t])
    other = torch.cat((symbols[:, :1], (symbols[:, 1:] + 1) % vocabulary), dim=1)
    assert not torch.allclose(run(other)[:, 1:], found[:, 1:]), "nothing depends on the symbols"


def assert_forms(model: nn.Module, run: Callable[[], Tensor], *, nats: bool = False) -> None:
    """The equations of the model's paper, what runs in their place, and that in mixed precision."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    found = []
    for form in (nullcontext, plain_equations):
        torch.manual_seed(5)
        with form():
            out = run()
        torch.manual_seed(6)
        cotangent = torch.randn_like(out)
        found.append((out.detach(), torch.autograd.grad(out, parameters, cotangent, materialize_grads=True)))
    (fast, gradients), (plainly, others) = found
    close(fast, plainly)
    scale = max(float(x.abs().max()) for x in others if x.numel())
    for ours, theirs in zip(gradients, others, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-8 * max(1.0, scale), rtol=1e-7)
    assert_mixed(model, run, nats)


@cache
def multiplies_bfloat16_in_lstms() -> bool:
    """oneDNN has LSTMs in bfloat16 only for processors with AVX-512; there is no question to ask but a try."""
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            nn.LSTM(2, 2)(torch.zeros(1, 1, 2))
    except RuntimeError:
        return False
    return True


def assert_mixed(model: nn.Module, run: Callable[[], Tensor], nats: bool) -> None:
    """Under autocast to bfloat16, with weights as small as they begin, results change little; gradients are finite."""
    names = " ".join(type(each).__name__ for each in model.modules())
    if "LSTM" in names and not multiplies_bfloat16_in_lstms():
        return
    spread(model, 0.1).float()
    plain = run()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = run()
    assert not nats or mixed.dtype == torch.float32, "losses are not rounded"
    mixed.float().square().sum().backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            assert parameter.grad.dtype == torch.float32, name
            assert parameter.grad.isfinite().all(), name
    if not re.search("Hashed|LSH|LocalPredictive", names):  # where what is near to what hangs on a digit
        assert (mixed - plain).norm() < 0.1 * plain.norm()


def assert_steps(
    model: Any, state: Any, tokens: Tensor, expected: Callable[[Tensor], tuple[Tensor, Tensor | None]]
) -> None:
    """From ``state``, symbol by symbol, the log-probabilities (B, T, V) and weights of ``expected(tokens)``.

    Half way the second source leaves, and those that stay get two beams, of which one goes on with other symbols.
    """
    log_p, weights = expected(tokens)
    half = tokens.size(1) // 2
    for t in range(half):
        found, a, state = model.step(tokens[:, t : t + 1], state)
        close(found[:, 0], log_p[:, t])
        if a is not None and weights is not None:
            close(a[:, 0], weights[:, t])
    kept = torch.tensor([0, 2])
    state = model.reorder(state, kept, torch.zeros(2, 2, dtype=torch.long))
    others = tokens.clone()
    others[:, half:] = others[:, half:].flip(0)
    both = torch.stack((log_p[kept], expected(others)[0][kept]), dim=1)  # (B′, 2, T, V)
    beams = torch.stack((tokens[kept], others[kept]), dim=1)  # (B′, 2, T)
    for t in range(half, tokens.size(1)):
        found, _, state = model.step(beams[:, :, t], state)
        close(found, both[:, :, t])
        turned = torch.tensor([[1, 0], [0, 1]])  # the beams of the first source change places
        state = model.reorder(state, None, turned)
        beams, both = (x.gather(1, turned.view(2, 2, *[1] * (x.dim() - 2)).expand_as(x)) for x in (beams, both))


def assert_translator(model: Any, vocabulary: int) -> None:
    """Called as model(source, source_mask, target), and an :class:`shared.decoding.protocol.IncrementalDecoder`."""
    model = spread(model)
    source, mask = sequences(vocabulary)
    target = torch.randint(EOS + 1, vocabulary, (len(source), STEPS))
    target[:, 0] = BOS
    logits, weights = model(source, mask, target)
    assert logits.shape == (*target.shape, vocabulary)
    assert_sees_no_later(lambda symbols: model(source, mask, symbols)[0], target, vocabulary)
    for row, length in enumerate(LENGTHS):  # alone, and with more padding
        one = slice(row, row + 1)
        alone, seen = model(source[one, :length], mask[one, :length], target[one])
        close(alone, logits[one])
        if weights is not None and seen is not None and seen.size(2) == length:
            close(seen, weights[one, :, :length])
            assert not weights[one, :, length:].any()
    garbage = source.masked_fill(~mask, vocabulary - 1)
    close(model(garbage, mask, target)[0], logits)

    def expected(symbols: Tensor) -> tuple[Tensor, Tensor | None]:
        logits, weights = model(source, mask, symbols)
        return logits.log_softmax(-1), weights

    with torch.no_grad():
        assert_steps(model, model.start(source, mask), target, expected)
    assert_forms(model, lambda: model(source, mask, target)[0])


def assert_captioner(model: Any, vocabulary: int, *, grid: Grid) -> None:
    """Called as model(features, captions), and an :class:`shared.decoding.protocol.IncrementalDecoder`."""
    model = spread(model)
    with torch.no_grad():
        model.embedding.weight[BOS] = 0
    captions, mask = sequences(vocabulary)
    features = torch.randn(len(captions), grid.rows * grid.columns, grid.size, dtype=torch.float64)
    nats = model(features, captions).nats
    assert nats.shape == captions.shape
    assert not nats.masked_select(~mask).any()
    assert_sees_no_later(lambda symbols: model(features, symbols).nats, captions.masked_fill(~mask, EOS), vocabulary)
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        close(model(features[one], captions[one, :length]).nats, nats[one, :length])

    def expected(symbols: Tensor) -> tuple[Tensor, Tensor | None]:
        """Log-probabilities of every symbol, one after the other in place of the next."""
        following = symbols.roll(-1, 1)
        each = []
        for symbol in range(vocabulary):
            rows = []
            for t in range(symbols.size(1)):
                changed = following.clone()
                changed[:, t] = symbol
                rows.append(-model(features, changed[:, : t + 1]).nats[:, t])
            each.append(torch.stack(rows, 1))
        return torch.stack(each, -1), None

    tokens = torch.randint(EOS + 1, vocabulary, (len(captions), 4))
    tokens[:, 0] = BOS

    class Shown:
        """The decoder, without the log-probability of padding, which no caption is asked for."""

        def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, None, Any]:
            log_p, _, state = model.step(symbols, state)
            log_p[..., PAD] = 0
            return log_p, None, state

        reorder = model.reorder

    with torch.no_grad():
        assert_steps(Shown(), model.start(features), tokens, expected)
    assert_forms(model, lambda: model(features.to(model.embedding.weight), captions).nats, nats=True)


def assert_classifier(model: Any, vocabulary: int, *, texts: int = 1) -> None:
    """Called as model(texts, masks)."""
    model = spread(model)
    read = [sequences(vocabulary, lengths) for lengths in (LENGTHS, LENGTHS[::-1])[:texts]]
    symbols, masks = (tuple(part) for part in zip(*read, strict=True))
    logits, attention, *_ = model(symbols, masks)
    for row in range(len(LENGTHS)):
        lengths = [int(mask[row].sum()) for mask in masks]
        alone = model(
            *(tuple(x[row : row + 1, :n] for x, n in zip(part, lengths, strict=True)) for part in (symbols, masks))
        )
        close(alone.logits, logits[row : row + 1])
        for a, of_one, n in zip(attention, alone.attention, lengths, strict=bool(attention)):  # some do not attend
            close(a[row : row + 1, :, :n], of_one)
            assert not a[row, :, n:].any()
    garbage = tuple(x.masked_fill(~mask, vocabulary - 1) for x, mask in zip(symbols, masks, strict=True))
    close(model(garbage, masks).logits, logits)
    assert_forms(model, lambda: model(symbols, masks).logits)


def assert_language_model(model: Any, vocabulary: int) -> None:
    """A :class:`shared.decoding.protocol.LanguageModel`."""
    model = spread(model)
    text = torch.randint(vocabulary, (3, 10))
    inputs, targets = text[:, :-1], text[:, 1:]
    nats = model(inputs, targets)
    assert_sees_no_later(lambda symbols: model(symbols, targets), inputs, vocabulary)
    for row in range(3):
        close(model(inputs[row : row + 1], targets[row : row + 1]), nats[row : row + 1])
    with torch.no_grad():
        for t in range(1, inputs.size(1) + 1):
            log_p = model.next_log_probs(inputs[:, :t])
            close(log_p.exp().sum(-1), torch.ones(3, dtype=torch.float64))
            close(-log_p.gather(1, targets[:, t - 1 : t])[:, 0], nats[:, t - 1])
        pieces = inputs.split(4, dim=1), targets.split(4, dim=1)
        kept = []
        for form in (nullcontext, plain_equations):  # what is remembered from segment to segment
            with form():
                memory = model.memory(3, Reach(20))
                kept.append(torch.cat([model(*pair, memory) for pair in zip(*pieces, strict=True)], dim=1))
        close(*kept)
        if getattr(model, "relative", True):  # and where no segment begins anew, they are one text
            close(kept[0], nats)
    assert_forms(model, lambda: model(inputs, targets), nats=True)


def assert_sequence_model(model: Any, vocabulary: int, *, causal: bool = True) -> None:
    """A :class:`shared.decoding.protocol.SequenceModel`; a causal one may also write."""
    model = spread(model)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    inputs = torch.randint(vocabulary - 1, mask.shape)
    h = model(inputs, mask)
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        close(model(inputs[one, :length]), h[one, :length])
    garbage = torch.where(mask, inputs, (inputs + 1) % (vocabulary - 1))
    close(model(garbage, mask)[mask], h[mask])
    if causal:
        assert_sees_no_later(model, inputs, vocabulary - 1)
        assert model.generate(inputs, 3).shape == (len(inputs), 3)
        if model.recurrent:
            state, whole = model.initial_state(len(inputs)), model(inputs)
            for t, symbols in enumerate(inputs.unbind(1)):
                found, state = model.step(symbols, state)
                close(found, whole[:, t])
    assert_forms(model, lambda: model(inputs, mask)[mask])


def assert_set_model(model: Any, numbers: int) -> None:
    """Called as model(elements, mask) with elements of so many numbers, whose order changes nothing."""
    model = spread(model)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    elements = torch.randn(*mask.shape, numbers, dtype=torch.float64)
    outputs = model(elements, mask)
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        close(model(elements[one, :length], mask[one, :length]), outputs[one])
    order = torch.randperm(max(LENGTHS))
    close(model(elements[:, order], mask[:, order]), outputs)
    close(model(elements.masked_fill(~mask.unsqueeze(2), 9.0), mask), outputs)
    assert not torch.allclose(model(elements + mask.unsqueeze(2), mask), outputs), "nothing depends on the elements"
    assert_forms(model, lambda: model(elements.to(next(model.parameters())), mask))
