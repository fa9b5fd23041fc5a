# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Norms of rows: layernorm, rmsnorm, chain; and of channels: batchnorm, groupnorm, instancenorm."""
import torch
import torch.nn.functional as F

from operands import split
from operations.linear import activation_of
from strategies import Family, Form, Operand

EPSILON = 1e-5


def _rms_norm(x, gamma):
    """Over the last axis."""
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, x.shape[-1:], gamma, EPSILON)
    wide = x.float()
    y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)
    return (y if gamma is None else y * gamma).to(x.dtype)


def _wide_rms_norm(x, gamma):
    """F.rms_norm has one gamma for all rows, so this is written out."""
    wide = x.float()
    y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)
    return (y if gamma is None else y * gamma).to(x.dtype)


def _wide_layer_norm(x, gamma, beta):
    y = F.layer_norm(x if x.dtype == torch.float32 or gamma is None else x.float(), x.shape[-1:], None, None, EPSILON)
    return (y if gamma is None else torch.addcmul(beta.to(y.dtype), y, gamma.to(y.dtype))).to(x.dtype)


def _sum_before(case, x, bias, residual):
    """residual + activation(x + bias), rounded once: in fp32 if more than one operation remains."""
    dtype, activation = x.dtype, case.get("activation", "none")
    if (bias is not None) + (residual is not None) + (activation != "none") > 1:
        x = x.float()
    if bias is not None:
        x = x + bias
    if activation != "none":
        x = activation_of(case)(x)
    return (x if residual is None else x + residual).to(dtype)


def row_norm(case, tensors):
    norm = case.get("norm", case.op)
    n, names = case.n, _parameter_names(case, norm)
    stored = ["parameter" if case.op == "chain" else "gamma"]
    stored += [f"{stored[0]}.{i}" for i in range(1, len(names))]
    parameters = {name: tensors[key] for name, key in zip(names, stored)}
    rows = {"x": tensors["x"]}
    if case["residual"] != "no":
        rows["residual"] = tensors["x.1"]
    stores_sum = case["residual"] == "stored"

    def chain(normalise, x, bias=None, residual=None, gamma=None, beta=None):
        total = _sum_before(case, x, bias, residual)
        y = normalise(total, gamma, beta)
        if y is x:  # no operation at all: still needs a separate result
            y = x.clone()
        return (y, total) if stores_sum else y

    def of_member(x, gamma, beta):
        if norm == "layernorm":
            return F.layer_norm(x, x.shape[-1:], gamma, beta, EPSILON)
        return _rms_norm(x, gamma) if norm == "rmsnorm" else x

    def of_all(x, gamma, beta):
        if norm == "layernorm":
            return _wide_layer_norm(x, gamma, beta)
        return _wide_rms_norm(x, gamma) if norm == "rmsnorm" else x

    operands = {name: Operand(split(tensor, n)) for name, tensor in rows.items()}
    operands.update({name: Operand(tensor) for name, tensor in parameters.items()})

    def arrange():
        own = {name: tensor.reshape(*tensor.shape[:-1], n, -1) for name, tensor in rows.items()}
        return ({**own, **parameters},)

    forms = [Form("stacked", f"{norm} over the last axis of [B, T, N, D], members' parameters behind it", arrange,
                  lambda own: chain(of_all, **own), lambda y: y.movedim(-2, 0))]
    if norm == "layernorm":
        forms.append(_as_groups(n, rows, parameters, chain))
    return Family(lambda **own: chain(of_member, **own), operands, forms, n=n)


def _parameter_names(case, norm):
    """In the order of the file."""
    if case.op == "chain":
        return ["bias"] * (case["bias"] == "yes") + {"layernorm": ["gamma", "beta"], "rmsnorm": ["gamma"], "none": []}[norm]
    if case["affine"] == "no":
        return []
    return ["gamma", "beta"] if norm == "layernorm" else ["gamma"]


def _as_groups(n, rows, parameters, chain):
    """Members side by side are groups of channels, and group_norm has per-channel parameters."""
    def arrange():
        own = {name: tensor.reshape(-1, tensor.shape[-1]) for name, tensor in rows.items()}
        own.update({name: tensor.reshape(-1) for name, tensor in parameters.items()})
        return (own,)

    def normalise(x, gamma, beta):
        return F.group_norm(x, n, gamma, beta, EPSILON)

    return Form("group_norm", "F.group_norm of [rows, N*D] with a group a member", arrange,
                lambda own: chain(normalise, **own), lambda y: split(y, n))


def channel_norm(case, tensors):
    """batchnorm, groupnorm, instancenorm: torch's own call over all members' channels."""
    op, n, x = case.op, case.n, tensors["x"]
    is_batch = op.startswith("batch")
    names = ["gamma", "beta"] if case["affine"] == "yes" else []
    names += ["mean", "variance"] if is_batch else []
    keys = ["parameter"] + [f"parameter.{i}" for i in range(1, 4)]
    parameters = {name: tensors[key] for name, key in zip(names, keys)}
    if is_batch:  # running statistics are fp32, and torch requires that of all four
        parameters = {name: tensor.float() for name, tensor in parameters.items()}
    trains = case.get("mode") == "train"

    def call(groups, x, gamma=None, beta=None, mean=None, variance=None):
        if is_batch:
            return F.batch_norm(x, mean, variance, gamma, beta, trains, 0.1, EPSILON)
        if op == "groupnorm":
            return F.group_norm(x, groups, gamma, beta, EPSILON)
        return F.instance_norm(x, None, None, gamma, beta, True, 0.1, EPSILON)

    groups = case.get("groups", 1)
    operands = {"x": Operand(split(x, n, 1))}
    operands.update({name: Operand(tensor) for name, tensor in parameters.items()})

    def arrange():
        return x, {name: tensor.reshape(-1).clone() for name, tensor in parameters.items()}

    name = {"b": "batch_norm", "g": "group_norm", "i": "instance_norm"}[op[0]]
    forms = [Form(name, f"F.{name} over the channels of all members, x [B, N*C, ..]", arrange,
                  lambda x, own: call(n * groups, x, **own), lambda y: split(y, n, 1))]
    if name == "instance_norm":
        channels = x.shape[1]
        forms.append(Form("group_norm", "F.group_norm with a group of each channel of all members, x [B, N*C, ..]", arrange,
                          lambda x, own: F.group_norm(x, channels, own.get("gamma"), own.get("beta"), EPSILON),
                          lambda y: split(y, n, 1)))
    if is_batch and not trains:
        forms.append(_written_out(n, arrange))
    return Family(lambda **own: call(groups, **own), operands, forms, n=n)


def _written_out(n, arrange):
    """F.batch_norm on the CPU multiplies x before it subtracts the mean, which costs digits."""
    def channels_of(tensor, x):
        return tensor.reshape(-1, *[1] * (x.dim() - 2))

    def call(x, own):
        scale = torch.rsqrt(own["variance"] + EPSILON) * own.get("gamma", 1.0)
        y = (x - channels_of(own["mean"], x)) * channels_of(scale, x)
        return (y + channels_of(own["beta"], x) if "beta" in own else y).to(x.dtype)

    return Form("written_out", "(x - mean) * scale + beta over x [B, N*C, ..]", arrange, call, lambda y: split(y, n, 1))
