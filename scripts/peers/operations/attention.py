# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""flash_attention, and attention with its projections."""
import torch
import torch.nn.functional as F

from operands import split
from operations.attend import HAS_FLEX, Attend, from_heads, to_heads
from operations.linear import project_bmm, project_einsum
from strategies import Family, Form, Operand, sdpa_backend_unsupported

_BACKENDS = ("flash", "efficient", "math", "cudnn")


def _with_backends(attend, make, name, explain):
    """A form in which torch chooses, and one for each backend by name."""
    why = attend.why_no_sdpa()
    own_words = "scores written out" if attend.is_written_out else "scaled_dot_product_attention"
    forms = [make(name, f"{explain}; {own_words}", None, "", True)]
    for backend in _BACKENDS:
        forms.append(make(f"sdpa_{backend}", f"{explain}; the backend {backend}", backend,
                          why or sdpa_backend_unsupported(backend, attend.key.device), False))
    return forms


def flash_attention(case, tensors):
    n, heads = case.n, case["heads"]
    kv_heads = case["kv_heads"] or heads
    q, k, v = (tensors[name] for name in "qkv")
    lengths = tensors.get("key_lengths")
    attend = Attend(q.shape[1], k.shape[1], q.device, case["causal"] == "yes", case["window"], case.has("lengths"),
                    case.has("bias"), case.has("slopes"), case["soft_cap"], q.dtype)
    slope_bias = attend.slope_bias(tensors["slopes"]) if case.has("slopes") else None
    bias = tensors.get("bias")

    def member(q, k, v, lengths=None, bias=None, slope_bias=None):
        if lengths is not None:
            lengths = lengths[:, None, None, None]
        return from_heads(attend(to_heads(q, heads), to_heads(k, kv_heads), to_heads(v, kv_heads), lengths, bias, slope_bias))

    operands = {name: Operand(split(tensor, n)) for name, tensor in zip("qkv", (q, k, v))}
    if lengths is not None:
        operands["lengths"] = Operand(lengths, case["lengths"] == "shared")
    if bias is not None:
        operands["bias"] = Operand(bias)
    if slope_bias is not None:
        operands["slope_bias"] = Operand(slope_bias)

    def arrange():
        """As additional heads: members that lie side by side already are."""
        of_heads = lengths
        if lengths is not None:
            of_heads = lengths[:, None] if lengths.dim() == 1 else lengths.t().repeat_interleave(heads, 1)
            of_heads = of_heads[:, :, None, None]
        return (q, k, v, of_heads, None if bias is None else bias.movedim(0, 1).flatten(1, 2),
                None if slope_bias is None else slope_bias.flatten(0, 1))

    def call(q, k, v, lengths, bias, slope_bias):
        return from_heads(attend(to_heads(q, n * heads), to_heads(k, n * kv_heads), to_heads(v, n * kv_heads), lengths,
                                 bias, slope_bias))

    def as_batch():
        """As additional batch rows: like WideCompiler."""
        own = lengths
        if lengths is not None:
            own = (lengths.repeat(n) if lengths.dim() == 1 else lengths.flatten())[:, None, None, None]
        rows = [split(tensor, n).flatten(0, 1) for tensor in (q, k, v)]
        each = None if slope_bias is None else slope_bias.repeat_interleave(q.shape[0], 0)
        return (*rows, own, None if bias is None else bias.flatten(0, 1), each)

    def batch_call(q, k, v, lengths, bias, slope_bias):
        return from_heads(attend(to_heads(q, heads), to_heads(k, kv_heads), to_heads(v, kv_heads), lengths, bias, slope_bias))

    def make(name, explain, backend, unsupported, is_compiled):
        return Form(name, explain, arrange, call, lambda y: split(y, n), is_compiled, backend, unsupported)

    forms = _with_backends(attend, make, "stacked_heads", "one call of N*heads heads, members side by side; what slopes add "
                           "to scores is made before" if case.has("slopes") else "one call of N*heads heads, members side by side")
    def flexible():
        of_heads = lengths
        if lengths is not None and lengths.dim() == 2:
            of_heads = lengths.t().repeat_interleave(heads, 1)
        return (q, k, v, attend.flex_mask(), of_heads, None if bias is None else bias.movedim(0, 1).flatten(1, 2),
                tensors["slopes"].reshape(-1) if case.has("slopes") else None)

    def flex_call(q, k, v, *rest):
        return from_heads(attend.flex(to_heads(q, n * heads), to_heads(k, n * kv_heads), to_heads(v, n * kv_heads), *rest))

    forms.append(Form("flex", "one flex_attention of N*heads heads; blocks that causality or a window hide are left out",
                      flexible, flex_call, lambda y: split(y, n), why_not_eager="flex_attention is made to be compiled",
                      unsupported="" if HAS_FLEX else f"torch {torch.__version__} has no flex_attention (2.5 has)"))
    forms.append(Form("wide_compiler", "one call of N*B batch rows, members one behind the other", as_batch, batch_call,
                      lambda y: y.unflatten(0, (n, -1))))
    return Family(member, operands, forms, n=n)


def _projected(project, x, weights, bias, key=None, value=None):
    """(q, k, v), features last"""
    if key is None:
        return project(x, weights[0], bias).chunk(3, -1)
    thirds = (None, None, None) if bias is None else bias.chunk(3, -1)
    return [project(source, weight, third) for source, weight, third in zip((x, key, value), weights, thirds)]


def attention(case, tensors):
    n, heads, is_cross = case.n, case["heads"], case["inputs"] == "cross"
    inputs = {"x": tensors["x"]}
    if is_cross:
        inputs.update(key=tensors["x.1"], value=tensors["x.2"])
    count = 4 if is_cross else 2
    weights = {f"weight{i}": tensors["weight" if i == 0 else f"weight.{i}"] for i in range(count)}
    biases = {"bias": tensors["bias"], "out_bias": tensors["bias.1"]} if case["bias"] == "yes" else {}
    lengths = tensors.get("key_lengths")
    seq, keys = inputs["x"].shape[1], inputs.get("key", inputs["x"]).shape[1]
    attend = Attend(seq, keys, inputs["x"].device, case["causal"] == "yes", 0, case.has("lengths"), dtype=inputs["x"].dtype)

    def member(x, key=None, value=None, lengths=None, bias=None, out_bias=None, **weights):
        ordered = list(weights.values())
        q, k, v = (to_heads(part, heads) for part in _projected(F.linear, x, ordered, bias, key, value))
        a = attend(q, k, v, None if lengths is None else lengths[:, None, None, None])
        return F.linear(from_heads(a), ordered[-1], out_bias)

    operands = {name: Operand(split(tensor, n)) for name, tensor in inputs.items()}
    operands.update({name: Operand(tensor) for name, tensor in {**weights, **biases}.items()})
    if lengths is not None:
        operands["lengths"] = Operand(lengths, case["lengths"] == "shared")
    batch = inputs["x"].shape[0]

    def arrange():
        """[N, B*T, D]: rows of a member contiguous."""
        own = None
        if lengths is not None:
            own = (lengths.repeat(n) if lengths.dim() == 1 else lengths.flatten())[:, None, None, None]
        return ({name: split(tensor, n).flatten(1, 2) for name, tensor in inputs.items()}, list(weights.values()), biases,
                own)

    def wide(project, inputs, weights, biases, lengths):
        parts = _projected(project, weights=weights, bias=biases.get("bias"), **inputs)
        q, k, v = (to_heads(part.unflatten(1, (batch, -1)).flatten(0, 1), heads) for part in parts)
        a = from_heads(attend(q, k, v, lengths))  # [N*B, T, D]
        return project(a.unflatten(0, (n, batch)).flatten(1, 2), weights[-1], biases.get("out_bias"))

    def make(name, explain, backend, unsupported, is_compiled):
        return Form(name, explain, arrange, lambda *a: wide(project_bmm, *a), lambda y: y, is_compiled, backend, unsupported)

    forms = _with_backends(attend, make, "bmm", "projections by torch.baddbmm of x [N, B*T, D], one attention of N*B batch rows")
    forms.append(Form("wide_compiler", "projections by torch.einsum of x [N, B*T, D], one attention of N*B batch rows",
                      arrange, lambda *a: wide(project_einsum, *a)))
    return Family(member, operands, forms, n=n)
