"""Our Transformer's weights in two other packages, those of the optional group ``parity``.

Both are of the models whose heads share the width among them (H·K = H·V = D). Symbols that a translation never has, the
start and the padding symbol, are ruled out as our searches do it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from replications.transformer.model import Transformer
from shared.attention.multi_head import MultiHeadAttention
from shared.data.tokenizers import BOS, EOS, PAD, UNK

if TYPE_CHECKING:
    import ctranslate2
    from transformers import MarianMTModel

NEVER = (PAD, BOS)


def tokens_of(symbols: Iterable[int]) -> list[str]:
    """Names by which the translator knows symbols."""
    return [str(symbol) for symbol in symbols]


def sizes_of(model: Transformer) -> dict[str, int]:
    """Its sizes."""
    layer = model.decoder[0]
    assert layer.attention.w_o.in_features == model.embedding.embedding_dim
    return {
        "vocabulary": model.embedding.num_embeddings, "width": model.embedding.embedding_dim,
        "layers": len(model.decoder), "heads": layer.attention.heads,
        "hidden_size": layer.feed_forward.w_1.out_features,
    }  # fmt: skip


def parts_of(attention: MultiHeadAttention) -> tuple[Tensor, ...]:
    """The matrices of queries, keys, values and outputs, each (D, D)."""
    return attention.w_q.weight, *attention.w_kv.weight.chunk(2), attention.w_o.weight


@torch.no_grad()
def marian(model: Transformer, *, positions: int = 1024) -> MarianMTModel:
    """Hugging Face's Marian: post-norm, with biases of attention, which stay zero here."""
    from transformers import MarianConfig, MarianMTModel

    sizes = sizes_of(model)
    config = MarianConfig(
        vocab_size=sizes["vocabulary"], d_model=sizes["width"], max_position_embeddings=positions,
        encoder_layers=sizes["layers"], encoder_attention_heads=sizes["heads"], encoder_ffn_dim=sizes["hidden_size"],
        decoder_layers=sizes["layers"], decoder_attention_heads=sizes["heads"], decoder_ffn_dim=sizes["hidden_size"],
        activation_function="relu", dropout=0.0, scale_embedding=True, pad_token_id=PAD, eos_token_id=EOS,
        decoder_start_token_id=BOS, forced_eos_token_id=None,
    )  # fmt: skip
    theirs = MarianMTModel(config).to(model.embedding.weight.dtype).eval()
    theirs.model.shared.weight.copy_(model.embedding.weight)
    for ours, stack in ((model.encoder, theirs.model.encoder), (model.decoder, theirs.model.decoder)):
        stack.embed_positions.weight.copy_(model.positions(0, positions))
        for layer, copy in zip(ours, stack.layers, strict=True):
            pairs = [(layer.attention, layer.attention_norm, copy.self_attn, copy.self_attn_layer_norm)]
            if ours is model.decoder:
                cross = layer.source_attention, layer.source_norm
                pairs.append((*cross, copy.encoder_attn, copy.encoder_attn_layer_norm))
            for attention, norm, its, its_norm in pairs:
                for weight, linear in zip(
                    parts_of(attention), (its.q_proj, its.k_proj, its.v_proj, its.out_proj), strict=True
                ):
                    linear.weight.copy_(weight)
                    linear.bias.zero_()
                its_norm.load_state_dict(norm.state_dict())
            copy.fc1.load_state_dict(layer.feed_forward.w_1.state_dict())
            copy.fc2.load_state_dict(layer.feed_forward.w_2.state_dict())
            copy.final_layer_norm.load_state_dict(layer.feed_forward_norm.state_dict())
    theirs.final_logits_bias.zero_()
    return theirs


def generate(
    theirs: MarianMTModel, source: Tensor, mask: Tensor, *, beam: int, minimum: int, maximum: int
) -> list[list[int]]:
    """Translations of (B, S) by Hugging Face's search, without end symbols."""
    options = {"length_penalty": 0.0, "early_stopping": False} if beam > 1 else {}
    found: Any = theirs.generate(
        input_ids=source, attention_mask=mask.long(), num_beams=beam, do_sample=False, min_new_tokens=minimum,
        max_new_tokens=maximum, suppress_tokens=list(NEVER), **options,
    )  # fmt: skip
    return [[symbol for symbol in row if symbol not in (PAD, BOS, EOS)] for row in found.tolist()]


def translator(model: Transformer, folder: Path, *, positions: int = 1024, threads: int = 1) -> ctranslate2.Translator:
    """CTranslate2's translator in float32, written to ``folder`` and loaded from there."""
    import ctranslate2
    from ctranslate2.specs import TransformerSpec

    sizes = sizes_of(model)
    spec = TransformerSpec.from_config(sizes["layers"], sizes["heads"], pre_norm=False)
    embedding = model.embedding.weight.detach()
    for ours, stack in ((model.encoder, spec.encoder), (model.decoder, spec.decoder)):
        stack.position_encodings.encodings = model.positions(0, positions).detach()
        for layer, copy in zip(ours, stack.layer, strict=True):
            _copy_attention(layer.attention, layer.attention_norm, copy.self_attention, fused=True)
            if ours is model.decoder:
                _copy_attention(layer.source_attention, layer.source_norm, copy.attention, fused=False)
            _copy(layer.feed_forward.w_1, copy.ffn.linear_0)
            _copy(layer.feed_forward.w_2, copy.ffn.linear_1)
            _copy_norm(layer.feed_forward_norm, copy.ffn.layer_norm)
    for copy in (spec.encoder.embeddings[0], spec.decoder.embeddings, spec.decoder.projection):
        copy.weight = embedding
    vocabulary = tokens_of(range(sizes["vocabulary"]))
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    bos, eos, unk = tokens_of([BOS, EOS, UNK])
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = bos, eos, unk
    spec.config.decoder_start_token = bos
    spec.validate()
    spec.optimize()
    spec.save(str(folder))
    return ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=threads)


def _copy_attention(attention: MultiHeadAttention, norm: nn.LayerNorm, copy: Any, *, fused: bool) -> None:
    w_q, w_k, w_v, w_o = (weight.detach() for weight in parts_of(attention))
    groups = [(w_q, w_k, w_v)] if fused else [(w_q,), (w_k, w_v)]
    for linear, group in zip(copy.linear, [*groups, (w_o,)], strict=True):
        linear.weight = torch.cat(group)
    _copy_norm(norm, copy.layer_norm)


def _copy(linear: nn.Linear, copy: Any) -> None:
    copy.weight, copy.bias = linear.weight.detach(), linear.bias.detach()


def _copy_norm(norm: nn.LayerNorm, copy: Any) -> None:
    copy.gamma, copy.beta = norm.weight.detach(), norm.bias.detach()


def translate(
    translator: ctranslate2.Translator, sources: list[list[int]], *, beam: int, minimum: int, maximum: int
) -> list[list[int]]:
    """Translations of sources, end symbols included, by CTranslate2's search, without end symbols."""
    found = translator.translate_batch(
        [tokens_of(source) for source in sources], beam_size=beam, length_penalty=0.0, min_decoding_length=minimum,
        max_decoding_length=maximum, max_input_length=0,
        suppress_sequences=[[token] for token in tokens_of(NEVER)],
    )  # fmt: skip
    return [[int(token) for token in result.hypotheses[0]] for result in found]


def score(translator: ctranslate2.Translator, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
    """Log-probabilities of the targets' symbols and of the end symbol after them."""
    found = translator.score_batch([tokens_of(s) for s in sources], [tokens_of(t) for t in targets])
    return [result.log_probs for result in found]
