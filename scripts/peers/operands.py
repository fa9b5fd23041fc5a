# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Tensors of files, and the positions of members in them."""
import torch

import tensor_file
from protocol import PeerError

_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
           "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
           "BOOL": torch.bool,
           # Rows of these are copied, never computed with.
           "F8_E4M3": torch.uint8, "F8_E5M2": torch.uint8}

# By the axis' word: the dtype of a tensor of it, and the file's name for that.
OF_AXIS = {"fp32": (torch.float32, "F32"), "fp16": (torch.float16, "F16"), "bf16": (torch.bfloat16, "BF16"),
           "fp8_e4m3": (torch.uint8, "F8_E4M3"), "fp8_e5m2": (torch.uint8, "F8_E5M2")}


def to_tensor(entry, device="cpu"):
    dtype = _DTYPES[entry.type_name]
    if not entry.data:
        return torch.empty(entry.shape, dtype=dtype, device=device)
    return torch.frombuffer(entry.data, dtype=dtype).reshape(entry.shape).to(device)


def to_entry(tensor, type_name):
    flat = tensor.detach().to("cpu").contiguous().reshape(-1)
    data = bytearray(flat.numel() * flat.element_size())
    if data:
        torch.frombuffer(data, dtype=torch.uint8).copy_(flat.view(torch.uint8))
    return tensor_file.Entry(type_name, tensor.shape, data)


def load(path, device):
    """({name: tensor}, metadata)"""
    entries, metadata = tensor_file.read(path)
    return {name: to_tensor(entry, device) for name, entry in entries.items()}, metadata


def save(path, members, type_name):
    """`members`: a tensor [N, rows, row_length], or a list of [rows, row_length] that differ."""
    if isinstance(members, torch.Tensor):
        entries = {"got": to_entry(members, type_name)}
    else:
        entries = {f"got.{m}": to_entry(member, type_name) for m, member in enumerate(members)}
    tensor_file.write(path, entries)


def split(tensor, n, axis=-1):
    """Splits members that lie side by side along an axis: [N, ..], contiguous."""
    axis %= tensor.dim()
    shape = tensor.shape[:axis] + (n, tensor.shape[axis] // n) + tensor.shape[axis + 1:]
    return tensor.reshape(shape).movedim(axis, 0).contiguous()


def as_members(result, shapes, dtype):
    """The result of a strategy, members first, as the tensor or list that `save` takes."""
    if len({tuple(shape) for shape in shapes}) == 1 and isinstance(result, torch.Tensor):
        expected = [len(shapes), *shapes[0]]
        if result.numel() != expected[0] * expected[1] * expected[2]:
            raise PeerError(f"the strategy gave shape {list(result.shape)}, expected what makes {expected}")
        return _checked(result, dtype).reshape(expected)
    if len(result) != len(shapes):
        raise PeerError(f"the strategy gave {len(result)} members, expected {len(shapes)}")
    members = []
    for member, shape in zip(result, shapes):
        if member.numel() != shape[0] * shape[1]:
            raise PeerError(f"the strategy gave shape {list(member.shape)}, expected what makes {list(shape)}")
        members.append(_checked(member, dtype).reshape(tuple(shape)))
    are_alike = len({tuple(shape) for shape in shapes}) == 1
    return torch.stack(members) if are_alike and members else members


def _checked(tensor, dtype):
    if tensor.dtype != dtype:
        raise PeerError(f"the strategy gave {tensor.dtype}, expected {dtype}")
    return tensor
