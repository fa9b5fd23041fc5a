# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""safetensors files, read and written in plain Python: eight bytes of length, JSON, data."""
import json
import math
import os

# Bytes of an element, by the file's name of a dtype.
ELEMENT_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
                 "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_LARGEST_HEADER = 100_000_000


class TensorFileError(ValueError):
    """An invalid file."""


class Entry:
    """One tensor: the file's name of its dtype, its shape, its bytes."""

    def __init__(self, type_name, shape, data):
        self.type_name = type_name
        self.shape = tuple(shape)
        self.data = data


def _read_exactly(file, count, path):
    data = bytearray(count)
    if file.readinto(data) != count:
        raise TensorFileError(f"{path}: ends within what its header promises")
    return data


def _header(file, path):
    size = int.from_bytes(_read_exactly(file, 8, path), "little")
    if size > min(_LARGEST_HEADER, os.path.getsize(path)):
        raise TensorFileError(f"{path}: header of {size} bytes, expected less than the file has")
    try:
        header = json.loads(_read_exactly(file, size, path).decode())
    except ValueError as error:
        raise TensorFileError(f"{path}: header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise TensorFileError(f"{path}: header is no JSON object")
    return header, 8 + size


def _entry(file, path, begin, name, described):
    try:
        type_name, shape = described["dtype"], [int(size) for size in described["shape"]]
        first, last = described["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise TensorFileError(f"{path}: {name} lacks dtype, shape or data_offsets") from None
    if type_name not in ELEMENT_BYTES:
        raise TensorFileError(f"{path}: {name} has dtype {type_name}, expected one of {', '.join(ELEMENT_BYTES)}")
    expected = math.prod(shape) * ELEMENT_BYTES[type_name]
    if last - first != expected or first < 0:
        raise TensorFileError(f"{path}: {name} has {last - first} bytes, expected {expected}")
    file.seek(begin + first)
    return Entry(type_name, shape, _read_exactly(file, expected, path))


def read_metadata(path):
    """{key: text}, without the tensors."""
    with open(path, "rb") as file:
        return _header(file, path)[0].get("__metadata__", {})


def read(path):
    """({name: Entry}, {key: text} of the metadata)"""
    with open(path, "rb") as file:
        header, begin = _header(file, path)
        metadata = header.pop("__metadata__", {})
        return {name: _entry(file, path, begin, name, header[name]) for name in header}, metadata


def write(path, entries, metadata=None):
    """`entries`: {name: Entry}. The file is complete or, after an error, does not exist."""
    header, offset = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, entry in entries.items():
        expected = math.prod(entry.shape) * ELEMENT_BYTES[entry.type_name]
        if len(entry.data) != expected:
            raise TensorFileError(f"{name}: {len(entry.data)} bytes, expected {expected}")
        header[name] = {"dtype": entry.type_name, "shape": list(entry.shape),
                        "data_offsets": [offset, offset + expected]}
        offset += expected
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # aligns data to multiples of eight bytes
    unfinished = f"{path}.part"
    with open(unfinished, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for entry in entries.values():
            file.write(entry.data)
    os.replace(unfinished, path)
