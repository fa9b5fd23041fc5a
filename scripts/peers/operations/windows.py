# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""conv1d, conv2d and conv3d, pooling and interpolate: windows over positions."""
import torch
import torch.nn.functional as F

from operands import split
from operations.linear import activation_of
from protocol import Unsupported
from strategies import Family, Form, Operand


class _Shape:
    """A convolution's parameters, from the axes."""

    def __init__(self, case):
        self.stride, self.padding, self.dilation = case["stride"], case["padding"], case["dilation"]
        self.groups, kernel = case["groups"], case["kernel"]
        if case["form"] == "pointwise":
            self.stride, self.padding, self.groups, kernel = 1, 0, 1, 1
        if case["form"] == "depthwise":
            self.groups = max(1, case["channels"])
        is_default = self.padding < 0
        if is_default:
            self.padding = kernel // 2 * self.dilation
        if is_default and case.op == "conv3d":
            depth = 1 if case["form"] == "pointwise" else case["kernel_depth"] or kernel
            self.padding = (depth // 2 * self.dilation, self.padding, self.padding)


def conv(case, tensors):
    """Everything is channels first here; if a case has them last, operands are views of channels-last memory."""
    n, shape = case.n, _Shape(case)
    is_last = case["layout"] == "last"
    x_is_last = {"same": is_last, "first": False, "last": True}[case["x_layout"]]
    convolve = getattr(F, case.op)
    axes = int(case.op.removeprefix("conv").removesuffix("d"))  # of positions

    def first(tensor, is_last):
        return tensor.movedim(-1, 1) if is_last else tensor

    weight = first(tensors["weight"], is_last).contiguous()
    bias = tensors.get("bias")
    name, of_y = ("x channels_last" if last else "x" for last in (x_is_last, is_last))
    activations = {"x": (tensors[name], x_is_last)}
    if case["residual"] != "no":
        activations["residual"] = (tensors[f"{name}.1" if name == of_y else of_y], is_last)

    def finish(y, residual):
        if case["residual"] == "before":
            y = y + residual
        y = activation_of(case)(y)
        return y + residual if case["residual"] == "after" else y

    def call(groups, x, weight, bias=None, residual=None):
        y = convolve(x, weight, bias, shape.stride, shape.padding, shape.dilation, groups)
        return finish(y, residual)

    def stacked(tensor, is_last):
        if not is_last:
            return split(tensor, n, 1)
        return split(tensor, n, -1).movedim(-1, 2)

    operands = {name: Operand(stacked(*activation)) for name, activation in activations.items()}
    operands["weight"] = Operand(split(weight, n, 0))
    if bias is not None:
        operands["bias"] = Operand(split(bias, n, 0))

    def arrange(memory_format=torch.contiguous_format):
        x = first(*activations["x"]).contiguous(memory_format=memory_format)
        residual = activations.get("residual")
        if residual is not None:
            residual = first(*residual).contiguous(memory_format=memory_format)
        return x, weight.contiguous(memory_format=memory_format), bias, residual

    def as_case(y):
        """[.., C, positions] in the case's layout"""
        return y.movedim(-1 - axes, -1) if is_last else y

    def to_members(y):
        return as_case(split(y, n, 1))

    def wide(*a):
        return call(n * shape.groups, *a)

    forms = [Form("grouped", "one convolution of N*groups groups, channels first", arrange, wide, to_members)]
    if axes == 1:
        forms.append(_as_images(shape, n, arrange, finish, to_members))
    else:
        memory_format = torch.channels_last if axes == 2 else torch.channels_last_3d
        forms.append(Form("channels_last", "one convolution of N*groups groups, memory_format channels_last",
                          lambda: arrange(memory_format), wide, to_members))
    return Family(lambda **own: call(shape.groups, **own), operands, forms, n=n, finish=as_case)


def _as_images(shape, n, arrange, finish, to_members):
    """Signals are images with one row: those have a memory_format channels_last."""
    def images():
        x, weight, bias, residual = arrange()
        def one_row(tensor):
            return tensor.unsqueeze(2).contiguous(memory_format=torch.channels_last)
        return one_row(x), one_row(weight), bias, None if residual is None else one_row(residual)

    def call(x, weight, bias, residual):
        y = F.conv2d(x, weight, bias, (1, shape.stride), (0, shape.padding), (1, shape.dilation), n * shape.groups)
        return finish(y, residual)

    return Form("channels_last", "one convolution of N*groups groups of images of one row, memory_format channels_last",
                images, call, lambda y: to_members(y.squeeze(2)))


def _images(case, tensors):
    """x [B, N*C, H, W], of a case with channels last as a view, and what turns torch's [.., C, H, W] into the case's layout."""
    if case["layout"] == "last":
        return tensors["x channels_last"].movedim(-1, 1), lambda y: y.movedim(-3, -1)
    return tensors["x"], lambda y: y


def _members_at_once(x, call, finish):
    """One call over the channels of all members, in either memory format."""
    def form(name, words, **memory_format):
        return Form(name, "one call over the channels of all members" + words, lambda: (x.contiguous(**memory_format),), call, finish)

    return [form("stacked", ""),
            form("channels_last", ", memory_format channels_last", memory_format=torch.channels_last)]


def pooling(case, tensors):
    n = case.n
    x, as_case = _images(case, tensors)
    is_signal = case["height"] == 1

    def window(value, of_one_row):
        return (of_one_row, value) if is_signal else (value, value)

    kernel = window(case["kernel"], 1)
    stride = window(case["stride"] or case["kernel"], 1)
    padding, dilation = window(case["padding"], 0), window(case["dilation"], 1)
    has_ceil = case["ceil"] == "yes"

    def call(x):
        if case["mode"] == "max":
            return F.max_pool2d(x, kernel, stride, padding, dilation, has_ceil)
        if case["mode"] == "average":
            return F.avg_pool2d(x, kernel, stride, padding, has_ceil, case["count_padding"] == "yes")
        return F.adaptive_avg_pool2d(x, window(case["out"], 1))

    forms = _members_at_once(x, call, lambda y: as_case(split(y, n, 1)))
    return Family(call, {"x": Operand(split(x, n, 1))}, forms, n=n, finish=as_case)


def interpolate(case, tensors):
    """Signals are images of one row here, too."""
    n = case.n
    x, as_case = _images(case, tensors)
    # The number that the library has: 0.7 in 32 bits is below 0.7, and so may be what it is multiplied by.
    scale = float(torch.tensor(case["scale"] / 100, dtype=torch.float32))
    scales = (1.0 if case["height"] == 1 else scale, scale)
    outputs = [int(extent * of_axis) for extent, of_axis in zip(x.shape[-2:], scales)]
    aligned = case["coordinates"] == "align_corners"
    by_scale = case["by"] == "scale" and not aligned
    if by_scale and 0 in outputs:
        raise Unsupported("interpolate: a scale makes no outputs here")

    def call(x):
        if by_scale:
            return F.interpolate(x, scale_factor=scales, mode="bilinear")
        return F.interpolate(x, [max(1, count) for count in outputs], mode="bilinear", align_corners=aligned)

    forms = _members_at_once(x, call, lambda y: as_case(split(y, n, 1)))
    return Family(call, {"x": Operand(split(x, n, 1))}, forms, n=n, finish=as_case)
