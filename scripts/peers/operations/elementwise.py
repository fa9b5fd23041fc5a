# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""pointwise, softmax, binary, dropout, ensemble: element by element, or nearly so."""
import math

import torch
import torch.nn.functional as F

from operands import split
from operations.linear import activation_of
from protocol import PeerError
from strategies import Family, Form, Operand

# bench's parameters: different from torch's defaults, so that mistakes show.
_FUNCTIONS = {
    "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
    "hardswish": F.hardswish,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "elu": lambda x: F.elu(x, 0.75),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.125),
    "softplus": lambda x: F.softplus(x, 1.5),
    "clamp": lambda x: torch.clamp(x, -0.5, 0.75),
}


# F.gelu multiplies by 1 + erf or 1 + tanh, which lose all digits if x is far below 0.
_STABLE = {
    "gelu": (lambda x: 0.5 * x * torch.erfc(x * -math.sqrt(0.5)), "x / 2 erfc(-x / sqrt(2))"),
    "gelu_tanh": (lambda x: x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)),
                  "x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))"),
}


def _joined(call, n, tensors, operands, arrange=None, explain="one call over the operands as they lie, members side by side"):
    """A function of elements or of a member's features, applicable to all members at once."""
    form = Form("stacked", explain, arrange or (lambda: tensors), call, lambda y: split(y, n))
    return Family(call, operands, [form], n=n)


def pointwise(case, tensors):
    n, x = case.n, tensors["x"]
    if case["function"] != "prelu":
        call = _FUNCTIONS[case["function"]]
        family = _joined(lambda x: call(x), n, (x,), {"x": Operand(split(x, n))})
        if case["function"] in _STABLE:
            stable, formula = _STABLE[case["function"]]
            family.forms.append(Form("stable", f"{formula} over the operands as they lie", lambda: (x,),
                                     lambda x: stable(x.float()).to(x.dtype), lambda y: split(y, n)))
        return family
    slope = tensors["slope"]  # [N, 1] or [N, D]
    rows = slope.expand(n, x.shape[1] // n).reshape(-1)
    return _joined(lambda x, slope: F.prelu(x, slope), n, None, {"x": Operand(split(x, n)), "slope": Operand(slope)},
                   lambda: (x, rows.clone()), "one F.prelu with a slope of each feature of each member")


def softmax(case, tensors):
    n, x = case.n, tensors["x"]
    of_rows = torch.log_softmax if case["log"] == "yes" else torch.softmax
    form = Form("stacked", "one call over the last axis of [B, N, D]", lambda: (x.unflatten(-1, (n, x.shape[1] // n)),),
                lambda x: of_rows(x, -1), lambda y: y.movedim(1, 0))
    return Family(lambda x: of_rows(x, -1), {"x": Operand(split(x, n))}, [form], n=n)


_BINARY = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div}


def binary(case, tensors):
    n, x, broadcast = case.n, tensors["x"], case["broadcast"]
    other = tensors["x.1"] if broadcast == "none" else tensors["other"]
    of_two, activation, is_bare = _BINARY[case["function"]], activation_of(case), case["activation"] == "none"

    def computed(x, other, activation):
        if is_bare or x.dtype == torch.float32:
            return activation(of_two(x, other))
        return activation(of_two(x.float(), other.float())).to(x.dtype)  # rounded once

    def call(x, other):
        return computed(x, other, activation)

    is_shared = broadcast == "members"
    own = split(other, n) if broadcast == "none" else other.reshape(1) if is_shared else other.reshape(n, -1)
    operands = {"x": Operand(split(x, n)), "other": Operand(own, is_shared)}
    is_joined = broadcast in ("none", "members")

    def arrange():
        return (x, other) if is_joined else (x.unflatten(-1, (n, x.shape[1] // n)), own)

    def to_members(y):
        return split(y, n) if is_joined else y.movedim(1, 0)

    words = "the operands as they lie, members side by side" if is_joined else "[B, N, D]"
    forms = [Form("stacked", f"one call over {words}", arrange, call, to_members)]
    if case["activation"] in _STABLE:
        stable, formula = _STABLE[case["activation"]]
        forms.append(Form("stable", f"one call over {words}, {case['activation']} as {formula}", arrange,
                          lambda x, other: computed(x, other, stable), to_members))
    return Family(call, operands, forms, n=n)


_LOW = 0xFFFFFFFF


def _philox_words(seed, elements):
    """A random word for each element, by the member's seed [.., 2]: Philox4x32-10, its words in int64, as torch cannot
    multiply unsigned ones."""
    key, sequence = seed[..., 0:1], seed[..., 1:2]
    block, lane = elements // 4, elements % 4
    counter = [block & _LOW, (block >> 32) & _LOW, (sequence & _LOW).expand_as(block), ((sequence >> 32) & _LOW).expand_as(block)]
    keys = [key & _LOW, (key >> 32) & _LOW]
    for _ in range(10):
        even, odd = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [((odd >> 32) & _LOW) ^ keys[0] ^ counter[1], odd & _LOW,
                   ((even >> 32) & _LOW) ^ keys[1] ^ counter[3], even & _LOW]
        keys = [(keys[0] + 0x9E3779B9) & _LOW, (keys[1] + 0xBB67AE85) & _LOW]
    words = torch.where(lane < 2, torch.where(lane == 0, counter[0], counter[1]),
                        torch.where(lane == 2, counter[2], counter[3]))
    return words


def dropout(case, tensors):
    """Masks follow from the seeds, but F.dropout draws its own: words are computed by integer operations."""
    n, x, seed, probability = case.n, tensors["x"], tensors["seed"], tensors["probability"]
    features = x.shape[1] // n

    def call(x, seed, probability):
        """x [.., rows, D], seed [.., 2], probability [.., 1]: of one member or of all"""
        rows = x.shape[-2]
        elements = torch.arange(rows * features, device=x.device).expand(*seed.shape[:-1], rows * features)
        words = _philox_words(seed, elements).reshape(x.shape)
        p = probability.unsqueeze(-1)
        kept = words.double() * 2.0**-32 >= p.double()
        return torch.where(kept, x.float() / (1 - p), 0.0).to(x.dtype)

    operands = {"x": Operand(split(x, n)), "seed": Operand(seed), "probability": Operand(probability)}
    form = Form("stacked", "Philox by int64 operations over [N, B, D]", lambda: (split(x, n), seed, probability), call)
    return Family(call, operands, [form], n=n)


def ensemble(case, tensors):
    n, x, function = case.n, tensors["x"], case["function"]
    active = None
    if case["mask"] == "some":
        active = torch.nonzero(tensors["mask"].reshape(-1)).reshape(-1)
        if active.numel() == 0:
            raise PeerError("ensemble: the mask leaves no member, expected one at least")
    count = n if active is None else active.numel()

    def call(x, active):
        if active is not None:
            x = x.index_select(1, active)
        if function == "mean":
            return x.mean(1)
        if function == "sum":
            return x.sum(1)
        if function == "variance":
            return x.var(1, unbiased=True)
        if function == "vote":
            winners = x.argmax(-1)  # [B, K]
            return F.one_hot(winners, x.shape[-1]).sum(1).div(count).to(x.dtype)
        return (torch.logsumexp(x.float(), 1) - math.log(count)).to(x.dtype)

    words = "one call over members of [B, N, D]"
    if active is not None:
        words += "; the mask as indices, made before"
    form = Form("stacked", words, lambda: (x.unflatten(-1, (n, x.shape[1] // n)), active), call, lambda y: y.unsqueeze(0))
    why = "members meet in one result, which no calls of single members make"
    return Family(None, {}, [form], why_no_members=why, n=n)
