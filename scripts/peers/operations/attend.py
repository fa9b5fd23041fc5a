# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Softmax of scores times values, by scaled_dot_product_attention or written out; masks of every kind.

All shapes are [B, H, T, D] here, H the heads of one member or of all: members are additional heads, or batch
rows.
"""
import math

import torch
import torch.nn.functional as F

HAS_SDPA = hasattr(F, "scaled_dot_product_attention")
# Since 2.5: heads that share keys, and flex_attention.
HAS_FLEX = _HAS_GQA = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 5)


class Attend:
    """What a case's axes mean for scores, and which of torch's functions support it."""

    def __init__(self, seq, keys, device, causal=False, window=0, has_lengths=False, has_bias=False, has_slopes=False,
                 soft_cap=0, dtype=torch.float32):
        self.soft_cap, self.is_causal, self.window = soft_cap, causal, window
        # Distances in 16 bits have larger errors than a score may have: then scores are written out, in fp32.
        self.is_written_out = soft_cap > 0 or not HAS_SDPA or (has_slopes and dtype != torch.float32)
        needs_mask = window > 0 or has_lengths or has_bias or has_slopes or self.is_written_out
        self.is_plain_causal = causal and seq == keys and not needs_mask
        position = torch.arange(seq, device=device)[:, None] + (keys - seq)
        key = torch.arange(keys, device=device)[None, :]
        self.key = key
        self.distance = (position - key).abs()
        self.visible = None
        if causal and not self.is_plain_causal:
            self.visible = key <= position
        if window > 0:
            near = self.distance < window
            self.visible = near if self.visible is None else self.visible & near
        # Queries that see no key give 0, which softmax does not.
        self.may_be_blind = (causal and seq > keys) or (window > 0 and (has_lengths or seq != keys))

    def why_no_sdpa(self):
        if not HAS_SDPA:
            return f"torch {torch.__version__} has no scaled_dot_product_attention (2.0 has)"
        if self.soft_cap > 0:
            return "scaled_dot_product_attention has no soft cap"
        return "masks of 16 bits would round the slopes' distances" if self.is_written_out else ""

    def flex_mask(self):
        """The mask of keys that are never seen, in blocks that flex_attention skips; made once."""
        if self.visible is None and not self.is_plain_causal:
            return None
        from torch.nn.attention.flex_attention import create_block_mask
        seq, keys = self.distance.shape
        causal, window = self.is_causal, self.window
        def is_seen(batch, head, i, j):
            behind = i + (keys - seq) - j
            seen = behind >= 0 if causal else behind == behind
            return seen & (behind.abs() < window) if window > 0 else seen
        return create_block_mask(is_seen, None, None, seq, keys, device=self.distance.device)

    def flex(self, q, k, v, block_mask, lengths=None, bias=None, slopes=None):
        """All in one kernel, by flex_attention: `lengths` [B] or [B, H], `bias` [B, H, Tq, Tk], `slopes` [H]."""
        from torch.nn.attention.flex_attention import flex_attention
        shift, cap = k.shape[2] - q.shape[2], self.soft_cap

        def score(s, batch, head, i, j):
            if cap > 0:
                s = cap * torch.tanh(s / cap)
            if slopes is not None:
                s = s - slopes[head] * (i + shift - j).abs()
            if bias is not None:
                s = s + bias[batch, head, i, j]
            if lengths is not None:
                own = lengths[batch] if lengths.dim() == 1 else lengths[batch, head]
                s = torch.where(j < own, s, -math.inf)
            return s

        return flex_attention(q, k, v, score_mod=score, block_mask=block_mask, enable_gqa=q.shape[1] != k.shape[1])

    def slope_bias(self, slopes):
        """[.., heads] -> [.., heads, Tq, Tk], from parameters alone"""
        return -slopes[..., None, None] * self.distance

    def __call__(self, q, k, v, lengths=None, bias=None, slope_bias=None):
        """`lengths`: such that `key < lengths` broadcasts to [B, H, Tq, Tk]."""
        visible = self.visible
        if lengths is not None:
            inside = self.key < lengths
            visible = inside if visible is None else visible & inside
        if bias is not None and slope_bias is not None:
            bias = bias + slope_bias
        elif bias is None:
            bias = slope_bias
        if self.is_written_out:
            y = self._written_out(q, k, v, visible, bias)
        else:
            mask = visible if bias is None else bias.to(q.dtype)
            if bias is not None and visible is not None:
                mask = mask.masked_fill(~visible, -math.inf)
            y = self._sdpa(q, k, v, mask)
        if self.may_be_blind:
            y = y.masked_fill(~visible.any(-1, keepdim=True), 0)
        return y

    def _sdpa(self, q, k, v, mask):
        if q.shape[1] == k.shape[1]:
            return F.scaled_dot_product_attention(q, k, v, mask, 0.0, self.is_plain_causal)
        if _HAS_GQA:
            return F.scaled_dot_product_attention(q, k, v, mask, 0.0, self.is_plain_causal, enable_gqa=True)
        k, v = _for_every_head(q, k, v)
        return F.scaled_dot_product_attention(q, k, v, mask, 0.0, self.is_plain_causal)

    def _written_out(self, q, k, v, visible, bias):
        k, v = _for_every_head(q, k, v)
        scores = (q.float() / math.sqrt(q.shape[-1])) @ k.float().transpose(-2, -1)
        if self.soft_cap > 0:
            scores = self.soft_cap * torch.tanh(scores / self.soft_cap)
        if bias is not None:
            scores = scores + bias
        if visible is not None:
            scores = scores.masked_fill(~visible, -math.inf)
        return (torch.softmax(scores, -1) @ v.float()).to(q.dtype)


def _for_every_head(q, k, v):
    times = q.shape[1] // k.shape[1]
    return (k, v) if times == 1 else (k.repeat_interleave(times, 1), v.repeat_interleave(times, 1))


def to_heads(x, heads):
    """[.., T, heads*D] -> [.., heads, T, D], a view"""
    return x.unflatten(-1, (heads, x.shape[-1] // heads)).transpose(-3, -2)


def from_heads(y):
    """[.., heads, T, D] -> [.., T, heads*D]"""
    return y.transpose(-3, -2).flatten(-2)
