# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Every primitive as a Family (strategies.py)."""
from operations import attention, elementwise, embedding, linear, norms, ragged, recurrent, routed, windows
from protocol import Unsupported

_FAMILIES = {
    "linear": linear.linear, "mlp": linear.mlp, "embedding": embedding.embedding,
    "layernorm": norms.row_norm, "rmsnorm": norms.row_norm, "chain": norms.row_norm,
    "conv1d": windows.conv, "conv2d": windows.conv, "conv3d": windows.conv, "pooling": windows.pooling,
    "interpolate": windows.interpolate,
    "flash_attention": attention.flash_attention, "attention": attention.attention,
    "pointwise": elementwise.pointwise, "softmax": elementwise.softmax, "binary": elementwise.binary,
    "dropout": elementwise.dropout, "ensemble": elementwise.ensemble, "recurrent": recurrent.recurrent,
    "top_k": routed.top_k,
}
for _name in ("batchnorm1d", "batchnorm2d", "groupnorm", "instancenorm1d", "instancenorm2d"):
    _FAMILIES[_name] = norms.channel_norm


def family_of(case, tensors, shapes):
    if case.op == "ragged_linear":
        return ragged.ragged_linear(case, tensors, shapes)
    if case.op == "routing":
        raise Unsupported("routing: the rows' names, which wbench compares, are no operand")
    if case.op == "routed_linear":
        return routed.routed_linear(case, tensors, shapes)
    if case.op == "routed_mlp":
        return routed.routed_mlp(case, tensors, shapes)
    return _FAMILIES[case.op](case, tensors)
