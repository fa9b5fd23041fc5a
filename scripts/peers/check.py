# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""--check: every strategy against what wide expects, from files that wbench saved."""
import math
import pathlib

import torch

import operands
import tensor_file
from protocol import PROTOCOL, PeerError, Unsupported, in_short

SLACK = 16  # tolerances that wbench allows a peer


def axes_of(reproduce):
    """The axes in `wbench run --op linear --n 4 ..`, without the other options."""
    words = reproduce.split()[2:]
    axes = {name[2:]: value for name, value in zip(words[::2], words[1::2])}
    for other in ("op", "device"):
        axes.pop(other, None)
    return axes


def _shapes_of(header):
    """[rows, row_length] of each member, from the outputs of one of wide's strategies."""
    if "got" in header:
        n, rows, length = header["got"].shape
        return [[rows, length]] * n
    own = {int(name[4:]): list(entry.shape) for name, entry in header.items() if name.startswith("got.")}
    return [own[m] for m in sorted(own)]


def worst_ratio(members, tensors):
    """Largest error over tolerance, by rows; infinite if only one side is NaN or values that must be equal are not."""
    worst = 0.0
    by_member = {}
    for position, (member, row) in enumerate(zip(tensors["member"].tolist(), tensors["row"].tolist())):
        by_member.setdefault(member, []).append((position, row))
    for member, pairs in by_member.items():
        positions, rows = (torch.tensor(values) for values in zip(*pairs))
        got = members[member][rows].double()
        length = got.shape[1]
        expected, tolerance = (tensors[name][positions, :length] for name in ("expected", "tolerance"))
        error = (got - expected).abs()
        alike = (got == expected) | (got.isnan() & expected.isnan())
        ratio = torch.where(alike, torch.zeros_like(error), error / tolerance)
        ratio = torch.where(ratio.isnan(), torch.full_like(ratio, math.inf), ratio)
        if ratio.numel():
            worst = max(worst, ratio.max().item())
    return worst


def _cases_in(folder, op):
    """One file per case: wide's strategies differ in their outputs, not in their inputs."""
    cases = {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        metadata = tensor_file.read_metadata(path)
        if "reproduce" in metadata and op in (None, metadata["op"]):
            cases.setdefault(metadata["reproduce"], path)
    return cases


def _check_strategy(peer, name, tensors, type_name):
    members = peer.members_of({"strategy": name})
    members = [member.cpu() for member in members]
    if type_name.startswith("F8"):
        dtype = getattr(torch, "float8_e4m3fn" if type_name == "F8_E4M3" else "float8_e5m2", None)
        if dtype is None:
            raise Unsupported(f"torch {torch.__version__} cannot read {type_name}")
        members = [member.view(dtype).float() for member in members]
    return worst_ratio(members, tensors)


def _said(peer, error):
    """(kind, words)"""
    text = in_short(error, 200)
    if isinstance(error, PeerError):
        return error.kind, f"{error.kind}: {text}"
    kind = peer.kind_of(error)
    return kind, f"{kind}: {type(error).__name__}: {text}"


def _check_case(peer, reproduce, path):
    """The number of wrong or failed strategies."""
    entries, metadata = tensor_file.read(path)
    axes, shapes = axes_of(reproduce), _shapes_of(entries)
    tensors = {name: operands.to_tensor(entries[name]) for name in ("member", "row", "expected", "tolerance")}
    print(f"{metadata['op']}  " + "  ".join(f"{name}={value}" for name, value in axes.items()))
    request = {"op": metadata["op"], "axes": axes, "n": int(axes["n"]), "operands": str(path), "outputs": shapes,
               "flush_bytes": 0}
    try:
        offered = peer.prepare(request)["strategies"]
    except Exception as error:  # affects only this case
        kind, words = _said(peer, error)
        print(f"  {'(all)':24} {'':10}  {words}")
        return int(kind != "unsupported")
    wrong = 0
    for strategy in offered:
        name = strategy["name"]
        try:
            if "unsupported" in strategy:
                raise Unsupported(strategy["unsupported"])
            ratio = _check_strategy(peer, name, tensors, peer._type)
            verdict = f"{ratio:10.3g}  {'ok' if ratio <= 1 else 'near' if ratio <= SLACK else 'WRONG'}"
            wrong += ratio > SLACK
        except Exception as error:  # affects only this strategy
            kind, words = _said(peer, error)
            verdict = f"{'':10}  {words}"
            wrong += kind != "unsupported"
        print(f"  {name:24} {verdict}", flush=True)
    peer.forget({})
    return wrong


def check_folder(peer, arguments):
    peer.hello({"protocol": PROTOCOL, "device": arguments.device, "threads": torch.get_num_threads()})
    cases = _cases_in(arguments.check, arguments.op)
    if not cases:
        print(f"{arguments.check}: no file that wbench saved, expected those of "
              "wbench verify --save-workspace always:FOLDER")
        return 1
    wrong = sum(_check_case(peer, reproduce, path) for reproduce, path in cases.items())
    print(f"{len(cases)} cases, {wrong} strategies wrong or failed")
    return int(wrong > 0)
