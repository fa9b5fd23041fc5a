# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""top_k, routed_linear and routed_mlp: members with rows of one batch."""
import torch
import torch.nn.functional as F

from operations.linear import layers_of, member_linear, mlp_chain
from strategies import Family, Form


def routed_linear(case, tensors, shapes):
    parameters = {name: tensors[name] for name in ("weight", "bias", "scale") if name in tensors}
    return _family(case, tensors, shapes, parameters, lambda **own: member_linear(case, **own), "F.linear")


def routed_mlp(case, tensors, shapes):
    return _family(case, tensors, shapes, layers_of(case, tensors["weights"]),
                   lambda x, **layers: mlp_chain(case, F.linear, x, **layers), "F.linear a layer")


def _family(case, tensors, shapes, parameters, compute, what):
    """`parameters` of all members, by name; compute(x, **own) of one's rows, where there are residuals with them."""
    first, order = tensors["first_rows"].tolist(), tensors["order"].long()
    out = shapes[0][1]
    batch = {"x": tensors["x"].reshape(len(order), case.size("in", "d"))}
    if "residual" in tensors:
        batch["residual"] = tensors["residual"].reshape(len(order), out)
    if "gates" in tensors:
        batch["gates"] = tensors["gates"]
    routed = [order[begin:end] for begin, end in zip(first, first[1:])]
    together = [slice(begin, end) for begin, end in zip(first, first[1:])]
    of_x = routed if case["gather"] == "yes" else together
    of_y = routed if case["scatter"] == "yes" else together
    places = {"x": of_x, "residual": of_y, "gates": routed}

    def parameters_of(i):
        return {name: tensor[i].clone() for name, tensor in parameters.items()}

    def rows(batch, i):
        return {name: tensor[places[name][i]] for name, tensor in batch.items()}

    def call_of_member(gates=None, **own):
        y = compute(**own)
        return y if gates is None else (y * gates.unsqueeze(1)).to(y.dtype)

    def arrange():
        return batch, [parameters_of(i) for i in range(case.n)]

    def call(batch, members):
        y = batch["x"].new_empty(len(order), out)
        for i, own in enumerate(members):
            y[of_y[i]] = call_of_member(**own, **rows(batch, i))
        return y

    form = Form("index_loop", f"one member after another: rows by their indices, {what}, rows back; the host knows how many",
                arrange, call, lambda y: [y[of_y[i]] for i in range(case.n)])
    members = [parameters_of(i) | {name: value.clone() for name, value in rows(batch, i).items()} for i in range(case.n)]
    return Family(call_of_member, {}, [form], members=members, n=case.n, why_no_vmap="torch.func.vmap takes members of one shape")


def top_k(case, tensors):
    gate, choices = case["gate"], case["choices"]
    id_dtype = torch.int32 if case["id_dtype"] == "int32" else torch.int64

    def gates_of(scores, chosen):
        if gate == "softmax":
            return chosen.float().softmax(-1)
        if gate == "softmax_all":
            return (chosen.float() - scores.float().logsumexp(-1, keepdim=True)).exp()
        return chosen.float().sigmoid() if gate == "sigmoid" else chosen.float()

    def finish(scores, chosen, ids):
        # A list: of a tuple only the first is the result (strategies.first_output).
        return [ids.to(id_dtype)] + ([gates_of(scores, chosen)] if case["gates"] == "yes" else [])

    def by_topk(scores):
        return finish(scores, *scores.topk(choices, sorted=True))

    def by_sort(scores):
        chosen, ids = scores.sort(dim=-1, descending=True, stable=True)
        return finish(scores, chosen[:, :choices], ids[:, :choices])

    def collect(y):  # wbench compares numbers of one type
        return torch.cat([part.float() for part in y], -1).unsqueeze(0)

    forms = [Form("topk", "torch.topk, which may choose any of equal scores, then the gates", lambda: (tensors["scores"],), by_topk,
                  collect),
             Form("stable_sort", "a sort that keeps the order of equal scores, then the gates", lambda: (tensors["scores"],), by_sort,
                  collect)]
    return Family(None, {}, forms, why_no_members="members meet in one result, which no calls of single members make", n=case.n,
                  dtype="fp32")
