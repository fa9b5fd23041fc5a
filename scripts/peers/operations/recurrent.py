# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""recurrent: torch's own LSTM and GRU layers (on CUDA: cuDNN's), and all members step by step."""
import torch

from operands import split
from operations.linear import project_bmm
from strategies import Family, Form, Operand

# wbench's names of operands of each kind, in the order of arguments.
_PARAMETERS = {"input_weight": "weight", "hidden_weight": "weight.1", "input_bias": "bias", "hidden_bias": "bias.1"}
_STATES = {"first_hidden": "state", "first_cell": "state.1"}


def recurrent(case, tensors):
    n, is_shared = case.n, case["shared"] == "yes"
    is_lstm, is_reversed = case["cell"] == "lstm", case["reversed"] == "yes"
    x = tensors["x"] if is_shared else split(tensors["x"], n)
    parameters = {name: tensors[own] for name, own in _PARAMETERS.items() if own in tensors}
    states = {name: split(tensors[own], n) for name, own in _STATES.items() if own in tensors}
    operands = {"x": Operand(x, is_shared)}
    operands.update({name: Operand(tensor) for name, tensor in {**parameters, **states}.items()})

    def layer(x, weights, first_hidden=None, first_cell=None):
        x = x.flip(1) if is_reversed else x
        zeros = x.new_zeros(1, x.shape[0], weights[1].shape[1])
        h = zeros if first_hidden is None else first_hidden.unsqueeze(0)
        state = h
        if is_lstm:
            state = (h, zeros if first_cell is None else first_cell.to(x.dtype).unsqueeze(0))
        y = (torch.lstm if is_lstm else torch.gru)(x, state, weights, len(weights) == 4, 1, 0.0, False, False, True)[0]
        return y.flip(1) if is_reversed else y

    def members():
        return [{"x": operands["x"].member(i), "weights": _as_module_has_them(is_lstm, {k: v[i] for k, v in parameters.items()}),
                 **{name: operands[name].member(i) for name in states}} for i in range(n)]

    def arrange():
        every = x.expand(n, *x.shape) if is_shared else x
        h = states.get("first_hidden", every.new_zeros(n, every.shape[1], parameters["hidden_weight"].shape[2]))
        c = states.get("first_cell", torch.zeros_like(h, dtype=torch.float32))
        return every, parameters, h, c

    def step_by_step(x, own, h, c):
        batch, steps = x.shape[1:3]
        u = project_bmm(x.flatten(1, 2), own["input_weight"], own.get("input_bias")).unflatten(1, (batch, steps))
        outputs = [None] * steps
        for t in reversed(range(steps)) if is_reversed else range(steps):
            v = project_bmm(h, own["hidden_weight"], own.get("hidden_bias"))
            h, c = (_lstm if is_lstm else _gru)(u[:, :, t], v, h, c)
            outputs[t] = h
        return torch.stack(outputs, 2)

    forms = [Form("bmm", "torch.baddbmm for x, then one and the cells a step, x [N, B, T, in]", arrange, step_by_step)]
    return Family(layer, operands, forms, n=n, members=members(),
                  why_no_vmap="torch has no batching rule for its recurrent layers")


def _as_module_has_them(is_lstm, own):
    """A member's parameters as views of the one buffer that cuDNN reads in place, as nn.LSTM keeps them."""
    weight = own["hidden_weight"]
    kind = torch.nn.LSTM if is_lstm else torch.nn.GRU
    module = kind(own["input_weight"].shape[1], weight.shape[1], bias="input_bias" in own, device=weight.device,
                  dtype=weight.dtype)
    flat = list(module.parameters())
    with torch.no_grad():
        for parameter, value in zip(flat, own.values()):
            parameter.copy_(value)
    module.flatten_parameters()
    return [parameter.detach() for parameter in module.parameters()]


def _lstm(u, v, h, c):
    taken, kept, candidate, shown = (u + v).chunk(4, -1)
    c = torch.sigmoid(kept) * c + torch.sigmoid(taken) * torch.tanh(candidate)
    return (torch.sigmoid(shown) * torch.tanh(c)).to(h.dtype), c


def _gru(u, v, h, c):
    (reset, kept, candidate), (reset_v, kept_v, candidate_v) = u.chunk(3, -1), v.chunk(3, -1)
    kept = torch.sigmoid(kept + kept_v)
    candidate = torch.tanh(candidate + torch.sigmoid(reset + reset_v) * candidate_v)
    return (1 - kept) * candidate + kept * h, c
