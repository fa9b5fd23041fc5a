# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""linear and mlp: products of matrices."""
import torch
import torch.nn.functional as F

from operands import split
from strategies import Family, Form, Operand

_ACTIVATIONS = {
    "none": lambda y: y, "relu": F.relu, "gelu": F.gelu, "silu": F.silu,
    "gelu_tanh": lambda y: F.gelu(y, approximate="tanh"),
}


def activation_of(case):
    return _ACTIVATIONS[case["activation"]]


def epilogue(case, y, bias, scale, residual):
    """After a product: y = activation(scale y + bias + residual), or the residual after the activation.
    fp32 scales make the rest fp32, by torch's promotion rules."""
    dtype = y.dtype
    if scale is not None:
        y = y * scale
    if bias is not None:
        y = y + bias
    if case["residual"] == "before":
        y = y + residual
    y = activation_of(case)(y)
    if case["residual"] == "after":
        y = y + residual
    return y.to(dtype)


def member_linear(case, x, weight, bias=None, scale=None, residual=None):
    """One member's, as a torch user writes it: F.linear adds the bias if nothing comes between."""
    if scale is None:
        return epilogue(case, F.linear(x, weight, bias), None, None, residual)
    return epilogue(case, F.linear(x, weight), bias, scale, residual)


def project_bmm(x, weight, bias=None):
    """x [N, B, in], weight [N, out, in], bias [N, out] -> [N, B, out]"""
    transposed = weight.transpose(1, 2)
    return torch.bmm(x, transposed) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, transposed)


def project_einsum(x, weight, bias=None):
    y = torch.einsum("nbi,noi->nbo", x, weight)
    return y if bias is None else y + bias.unsqueeze(1)


def linear(case, tensors):
    n, is_shared = case.n, case["shared"] == "yes"
    packed_x = tensors["x"]
    x = packed_x if is_shared else split(packed_x, n)
    stacked = {name: tensors.get(name) for name in ("weight", "bias", "scale")}
    residual = split(tensors["residual"], n) if "residual" in tensors else None
    operands = {"x": Operand(x, is_shared)}
    operands.update({name: Operand(tensor) for name, tensor in stacked.items() if tensor is not None})
    if residual is not None:
        operands["residual"] = Operand(residual)

    def wide(project, x, weight, bias, scale, residual):
        in_product = bias if scale is None else None
        behind = None if scale is None or bias is None else bias.unsqueeze(1)
        return epilogue(case, project(x, weight, in_product), behind,
                        None if scale is None else scale.unsqueeze(1), residual)

    def arrange():
        every = x.expand(n, *x.shape) if is_shared else x
        return every, stacked["weight"], stacked["bias"], stacked["scale"], residual

    where = "one x for all" if is_shared else "x [N, B, in]"
    forms = [Form("bmm", f"torch.baddbmm of {where}", arrange, lambda *a: wide(project_bmm, *a)),
             Form("einsum", f"torch.einsum of {where}, bias added behind", arrange, lambda *a: wide(project_einsum, *a)),
             _packed_einsum(case, packed_x, stacked, tensors.get("residual"))]
    if is_shared:
        forms.append(_one_wider(case, packed_x, stacked, tensors.get("residual")))
    return Family(lambda **own: member_linear(case, **own), operands, forms, n=n)


def _packed_einsum(case, packed_x, stacked, residual):
    """As WideCompiler does: members stay side by side in the features."""
    n = case.n
    spec = "bi,noi->bno" if case["shared"] == "yes" else "bni,noi->bno"

    def arrange():
        x = packed_x if case["shared"] == "yes" else packed_x.reshape(packed_x.shape[0], n, -1)
        rows = None if residual is None else residual.reshape(residual.shape[0], n, -1)
        return x, stacked["weight"], stacked["bias"], stacked["scale"], rows

    return Form("wide_compiler", "torch.einsum of x [B, N, in], members side by side, bias added behind", arrange,
                lambda x, weight, *rest: epilogue(case, torch.einsum(spec, x, weight), *rest),
                lambda y: y.movedim(1, 0))


def _one_wider(case, x, stacked, residual):
    """Members that read the same x are one member with N*out outputs."""
    n, weight = case.n, stacked["weight"]

    def arrange():
        scale = stacked["scale"]
        return (x, weight.reshape(-1, weight.shape[2]), None if stacked["bias"] is None else stacked["bias"].reshape(-1),
                None if scale is None else scale.expand(n, weight.shape[1]).reshape(-1), residual)

    return Form("one_linear", "one F.linear of N*out outputs", arrange, lambda *a: member_linear(case, *a),
                lambda y: split(y, n))


def mlp(case, tensors):
    n, is_shared = case.n, case["shared"] == "yes"
    x = tensors["x"] if is_shared else split(tensors["x"], n)
    layers = layers_of(case, tensors["weights"])
    operands = {"x": Operand(x, is_shared)}
    for name, tensor in layers.items():
        operands[name] = Operand(tensor)

    def arrange():
        return x.expand(n, *x.shape) if is_shared else x, layers

    forms = [Form("bmm", "torch.baddbmm a layer, x [N, B, in]", arrange, lambda x, own: mlp_chain(case, project_bmm, x, **own)),
             Form("wide_compiler", "torch.einsum a layer, x [N, B, in]", arrange,
                  lambda x, own: mlp_chain(case, project_einsum, x, **own))]
    return Family(lambda **own: mlp_chain(case, F.linear, **own), operands, forms, n=n)


def mlp_chain(case, project, x, **layers):
    count, activation = case["layers"], activation_of(case)
    for number in range(count):
        x = project(x, layers[f"weight{number}"], layers.get(f"bias{number}"))
        if number + 1 < count or case["last"] == "yes":
            x = activation(x)
    return x


def layers_of(case, weights):
    """{weight0: [N, out, in], bias0: [N, out], ..} from padded rows: biases first, each padded to a multiple
    of 32 bytes; then the weights' rows, each padded to a multiple of 32 bytes, plus 16 bytes."""
    count, hidden = case["layers"], case.size("hidden", "d")
    widths = [case.size("in", "d")] + [hidden] * (count - 1) + [case.size("out", "d")]
    step = 32 // weights.element_size()
    def filled_up(elements):
        return -(-elements // step) * step
    layers, at = {}, 0
    if case["bias"] == "yes":
        for number, out in enumerate(widths[1:]):
            layers[f"bias{number}"] = weights[:, at:at + out].contiguous()
            at += filled_up(out)
    for number, (inputs, out) in enumerate(zip(widths, widths[1:])):
        row = filled_up(inputs) + step // 2
        rows = weights[:, at:at + out * row].reshape(case.n, out, row)
        layers[f"weight{number}"] = rows[:, :, :inputs].contiguous()
        at += out * row
    if at != weights.shape[1]:
        raise ValueError(f"mlp: weights of {weights.shape[1]} elements a member, expected {at}")
    return layers
