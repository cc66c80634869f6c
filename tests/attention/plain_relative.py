"""Attention by distance from the equations of the papers, a number at a time; of ours it takes the weights alone.

Section 3.3 of Dai et al. (2019), and 3.2 of Shaw et al. (2018).
"""

import math

import torch

from shared.attention.relative import LearnedDistances


def plain_relative(module, x, queries, *, clamp, window):
    """What the last positions find.

    Args:
        module: whose weights are used.
        x: (B, S, D).
        queries: Q.
        clamp: the distance from which on all are one, for Transformer-XL.
        window: how many keys a query sees, itself included; None for all.

    Returns:
        (B, Q, D).
    """
    heads = module.heads
    w_q, w_o = (w.weight.unflatten(i, (heads, -1)) for w, i in ((module.w_q, 0), (module.w_o, 1)))
    w_k, w_v = module.w_kv.weight.unflatten(0, (2, heads, -1))
    size, width, key_size = x.size(1), x.size(2), w_k.size(1)
    zero = x.new_zeros(key_size)
    outputs = []
    for sequence in x:
        for i in range(size - queries, size):
            out = x.new_zeros(width)
            for h in range(heads):
                q, scores = w_q[h] @ sequence[i], []
                seen = [j for j in range(i + 1) if window is None or i - j < window]
                for j in seen:
                    u = v = zero
                    if isinstance(module.positions, LearnedDistances):
                        r = module.positions.table[min(i - j, len(module.positions.table) - 1)]
                    else:
                        angles = [min(i - j, clamp) / 10_000 ** (2 * n / width) for n in range(width // 2)]
                        r = x.new_tensor([f(angle) for angle in angles for f in (math.sin, math.cos)])
                        r = module.positions.w_r.weight.unflatten(0, (heads, -1))[h] @ r
                        u, v = module.biases.u[h], module.biases.v[h]
                    scores.append(((q + u) @ (w_k[h] @ sequence[j]) + (q + v) @ r) / math.sqrt(key_size))
                a = torch.softmax(torch.stack(scores), dim=0)
                out = out + w_o[:, h] @ sum(w * (w_v[h] @ sequence[j]) for w, j in zip(a, seen, strict=True))
            outputs.append(out)
    return torch.stack(outputs).view(len(x), queries, width)
