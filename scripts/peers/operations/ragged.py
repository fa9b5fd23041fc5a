# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""ragged_linear: members of different batches and widths."""
import math

import torch

from operations.linear import epilogue, member_linear, project_bmm
from protocol import PeerError
from strategies import Family, Form

_MASK = (1 << 64) - 1


def _random_bits(key, index):
    """SplitMix64, as bench uses it."""
    z = (key + (index + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def _draw_features(largest, spread, axis, member):
    """A member's size, as bench draws it by the member's number: the file has storages only, no widths."""
    key = 7
    for value in (*axis.encode(), 0, member):
        key = _random_bits(key, value)
    share = (_random_bits(key, 0) >> 11) / (1 << 53)
    size = largest - int(largest * spread / 100 * share)
    step = math.gcd(largest, 16)
    return min(largest, max(-(-size // step), 1) * step)


class _Storage:
    """Contiguous members, each aligned to a multiple of 16 bytes."""

    def __init__(self, name, tensor):
        self._name, self._tensor = name, tensor
        self._granule = 16 // tensor.element_size()
        self._at = 0

    def take(self, *shape):
        at = -(-self._at // self._granule) * self._granule
        self._at = at + math.prod(shape)
        if self._at > self._tensor.numel():
            raise PeerError(f"ragged_linear: {self._name} has {self._tensor.numel()} elements, expected {self._at}")
        return self._tensor[at:self._at].reshape(shape).clone()


def ragged_linear(case, tensors, shapes):
    largest = case.size("in", "d")
    storages = {name: _Storage(name, tensors[name]) for name in ("x", "weight", "bias", "residual") if name in tensors}
    members = []
    for i, (batch, out) in enumerate(shapes):
        inputs = _draw_features(largest, case["spread"], "in", i)
        own = {"x": storages["x"].take(batch, inputs), "weight": storages["weight"].take(out, inputs)}
        if "bias" in storages:
            own["bias"] = storages["bias"].take(out)
        if "residual" in storages:
            own["residual"] = storages["residual"].take(batch, out)
        members.append(own)
    if "scale" in tensors:
        _take_scales(case, tensors["scale"], members, shapes)
    return Family(lambda **own: member_linear(case, **own), {}, [_padded(case, members, shapes)], members=members,
                  n=case.n, why_no_vmap="torch.func.vmap takes members of one shape")


def _take_scales(case, scale, members, shapes):
    """Operands with one value per member are dense; those with one per output are stored as biases are."""
    granule = 16 // members[0]["weight"].element_size()
    at = 0
    for i, (own, (_, out)) in enumerate(zip(members, shapes)):
        if case["scale"] == "member":
            own["scale"] = scale[i:i + 1].clone()
            continue
        at = -(-at // granule) * granule
        own["scale"] = scale[at:at + out].clone()
        at += out


def _padded(case, members, shapes):
    """All padded with zeros to the widest."""
    def padded(name, *extents):
        if name not in members[0]:
            return None
        first = members[0][name]
        whole = torch.zeros(len(members), *extents, dtype=first.dtype, device=first.device)
        for i, own in enumerate(members):
            whole[(i, *(slice(0, size) for size in own[name].shape))] = own[name]
        return whole

    batch, out = (max(shape[axis] for shape in shapes) for axis in (0, 1))
    inputs = max(own["x"].shape[1] for own in members)

    def arrange():
        scale = padded("scale", 1 if case["scale"] == "member" else out)
        return (padded("x", batch, inputs), padded("weight", out, inputs), padded("bias", out),
                None if scale is None else scale.unsqueeze(1), padded("residual", batch, out))

    def call(x, weight, bias, scale, residual):
        behind = None if scale is None or bias is None else bias.unsqueeze(1)
        return epilogue(case, project_bmm(x, weight, bias if scale is None else None), behind, scale, residual)

    def to_members(y):
        return [y[i, :rows, :width] for i, (rows, width) in enumerate(shapes)]

    return Form("padded_bmm", "torch.baddbmm of operands that are padded with zeros to the widest member's", arrange, call,
                to_members)
