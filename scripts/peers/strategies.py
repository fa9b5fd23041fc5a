# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Derives loop and vmap, compiled or not, from one member's function; hand-written forms are added to them.

A primitive describes itself as a Family: the function of one member in plain torch, its operands with a leading member
axis, and Forms: calls that compute all members at once.
"""
import contextlib
import functools
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import torch

from protocol import Unsupported

HAS_COMPILE = hasattr(torch, "compile")
HAS_VMAP = hasattr(torch, "func")


@dataclass
class Operand:
    """[N, ..] of all members, or one tensor that all of them share."""
    tensor: torch.Tensor
    is_shared: bool = False

    def member(self, i):
        """In memory of its own, as in a model that stands alone."""
        return self.tensor if self.is_shared else self.tensor[i].clone()


@dataclass
class Form:
    """A call for all members at once."""
    name: str
    explain: str
    arrange: Callable[[], tuple]  # done once: arranges the operands as the call needs them
    call: Callable[..., Any]
    to_members: Callable[[Any], Any] = lambda y: y  # after timing: members first
    is_compiled_too: bool = True
    backend: Optional[str] = None  # of scaled_dot_product_attention
    unsupported: str = ""
    why_not_eager: str = ""  # if it is meant to be compiled


@dataclass
class Family:
    function: Optional[Callable[..., Any]]  # of one member, its operands by name
    operands: dict  # {name: Operand}
    forms: list
    why_no_members: str = ""  # if there is no function of one member
    why_no_vmap: str = ""
    members: Optional[list] = None  # {name: tensor} of each, if they differ
    n: int = 0
    dtype: str = ""  # of results, if it is not the case's
    finish: Callable[[Any], Any] = field(default=lambda y: y)  # of a member's result, after timing

    def member_operands(self):
        if self.members is not None:
            return self.members
        return [{name: operand.member(i) for name, operand in self.operands.items()} for i in range(self.n)]


def copied(operands, _seen=None):
    """The same values, laid out alike, in memory of their own; what shares memory shares that of the copy."""
    seen = {} if _seen is None else _seen
    if isinstance(operands, torch.Tensor):
        storage = operands.untyped_storage()
        if storage.data_ptr() not in seen:
            seen[storage.data_ptr()] = storage.clone()
        return torch.empty(0, dtype=operands.dtype, device=operands.device).set_(
            seen[storage.data_ptr()], operands.storage_offset(), operands.size(), operands.stride())
    if isinstance(operands, dict):
        return {name: copied(part, seen) for name, part in operands.items()}
    return type(operands)(copied(part, seen) for part in operands) if isinstance(operands, (list, tuple)) else operands


def first_output(result):
    """For calls that store a sum besides y."""
    return result[0] if isinstance(result, tuple) else result


class Strategy:
    """A name, an explanation, and the call: `make` returns its function and the operands. Made on first use, and kept
    until the case is forgotten."""

    def __init__(self, name, explain, make, to_members, unsupported="", backend=None):
        self.name = name
        self.explain = explain
        self.unsupported = unsupported
        self._make = make
        self._to_members = to_members
        self._backend = backend
        self._call = None

    def call(self):
        if self._call is None:
            if self.unsupported:
                raise Unsupported(self.unsupported)
            function, operands = self._made = self._make()
            self._call = lambda: function(*operands)
        return self._call

    def calls(self, count):
        """The call, and the same on further copies of its operands."""
        calls = [self.call()]
        function, operands = self._made
        if count > 1 and not hasattr(torch.Tensor, "untyped_storage"):
            raise Unsupported(f"torch {torch.__version__} cannot copy operands as they lie (2.0 can)")
        return calls + [functools.partial(function, *copied(operands)) for _ in range(count - 1)]

    def context(self):
        """To be active during calls, so that choosing a backend is not part of them."""
        return sdpa_backend(self._backend) if self._backend else contextlib.nullcontext()

    def members(self, result):
        return self._to_members(result)


_BACKENDS = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH", "cudnn": "CUDNN_ATTENTION"}


def sdpa_backend_unsupported(name, device):
    if device.type == "cpu" and name in ("efficient", "cudnn"):
        return f"the backend {name} is CUDA's"
    try:
        from torch.nn.attention import SDPBackend
    except ImportError:
        return f"torch {torch.__version__} cannot choose a backend of scaled_dot_product_attention (2.3 can)"
    return "" if hasattr(SDPBackend, _BACKENDS[name]) else f"torch {torch.__version__} has no such backend"


def sdpa_backend(name):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel([getattr(SDPBackend, _BACKENDS[name])])


class Maker:
    """Makes the strategies of a family."""

    def __init__(self, family, compile_mode):
        self.family = family
        self.mode = None if compile_mode == "default" else compile_mode
        self.compile_words = f"torch.compile ({compile_mode})"
        self._member_operands = functools.cache(family.member_operands)  # compiled calls take the same

    def strategies(self):
        found = self._of_members()
        for form in self.family.forms:
            form.arrange = functools.cache(form.arrange)
            found.append(self._of_form(form, False))
            if form.is_compiled_too:
                found.append(self._of_form(form, True))
        return found

    def _compiled(self, function):
        return torch.compile(function, mode=self.mode, fullgraph=True, dynamic=False)

    def _of_members(self):
        family = self.family
        why = family.why_no_members
        no_vmap = why or family.why_no_vmap or ("" if HAS_VMAP else f"torch {torch.__version__} has no torch.func (2.0 has)")
        no_compile = "" if HAS_COMPILE else _NO_COMPILE
        def unstack(y):
            return [family.finish(first_output(one)) for one in y]
        def unmap(y):
            y = first_output(y)
            return [family.finish(y[i]) for i in range(y.shape[0])]
        loop, vmap = "a call a member, one by one, on operands of its own", "torch.func.vmap of one member's call"
        return [
            Strategy("loop", loop, self._loop, unstack, why),
            Strategy("compile_loop", f"{self.compile_words} of the loop over members as one function",
                     lambda: self._loop(self._compiled), unstack, why or no_compile),
            Strategy("vmap", vmap, self._vmap, unmap, no_vmap),
            Strategy("compile_vmap", f"{self.compile_words} of {vmap}", lambda: self._vmap(self._compiled), unmap,
                     no_vmap or no_compile)]

    def _loop(self, transform=lambda f: f):
        function, members = self.family.function, self._member_operands()
        every = transform(lambda members: [function(**member) for member in members])
        return every, (members,)

    def _vmap(self, transform=lambda f: f):
        family = self.family
        names = list(family.operands)
        axes = tuple(None if family.operands[name].is_shared else 0 for name in names)
        tensors = [family.operands[name].tensor for name in names]
        mapped = transform(torch.func.vmap(lambda *values: family.function(**dict(zip(names, values))), in_dims=axes))
        return mapped, tuple(tensors)

    def _of_form(self, form, is_compiled):
        def make():
            return self._compiled(form.call) if is_compiled else form.call, form.arrange()
        unsupported = form.unsupported or ("" if is_compiled else form.why_not_eager)
        if is_compiled and not HAS_COMPILE:
            unsupported = unsupported or _NO_COMPILE
        return Strategy(f"compile_{form.name}" if is_compiled else form.name,
                        f"{self.compile_words} of {form.explain}" if is_compiled else form.explain, make,
                        lambda y: form.to_members(first_output(y)), unsupported, form.backend)


_NO_COMPILE = f"torch {torch.__version__} has no torch.compile (2.0 has)"
