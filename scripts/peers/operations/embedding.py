# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""embedding: rows of tables, and bags of them."""
import torch
import torch.nn.functional as F

from strategies import Family, Form, Operand


def embedding(case, tensors):
    if case["bag"] == "none":
        return _rows(case, tensors["ids"], tensors["table"])
    return _bags(case, tensors["bag ids"], tensors["offsets"], tensors["table"])


def _flat(table):
    return table.reshape(-1, table.shape[2])


def _rows(case, ids, table):
    n, vocab, is_shared = case.n, table.shape[1], case["ids"] == "shared"
    ids = ids if is_shared else ids.movedim(1, 0).contiguous()  # [N, B, T]
    firsts = torch.arange(n, device=table.device, dtype=ids.dtype) * vocab

    def lookup(ids, firsts, table):
        return F.embedding(ids + firsts, table)

    forms = [Form("offset_ids", "one F.embedding of the N tables as one, ids moved to their member's rows",
                  lambda: (ids, firsts.reshape(-1, 1, 1), _flat(table)), lookup),
             Form("stacked_index", "table[member, id] by one index", lambda: (ids, firsts.reshape(-1, 1, 1) // vocab, table),
                  lambda ids, members, table: table[members, ids])]
    return Family(lambda ids, table: F.embedding(ids, table),
                  {"ids": Operand(ids, is_shared), "table": Operand(table)}, forms, n=n)


def _bags(case, ids, offsets, table):
    n, vocab, is_shared, mode = case.n, table.shape[1], case["ids"] == "shared", case["bag"]
    firsts = torch.arange(n, device=table.device, dtype=ids.dtype)[:, None]
    length = ids.shape[-1]

    def member(ids, offsets, table):
        return F.embedding_bag(ids, table, offsets, mode=mode, include_last_offset=True)

    def wide(ids, offsets, firsts, table):
        begins = (offsets[..., :-1] + firsts * length).reshape(-1)
        return F.embedding_bag((ids + firsts * vocab).reshape(-1), table, begins, mode=mode)

    form = Form("offset_ids", "one F.embedding_bag of the N tables as one, ids and bags moved to their member's",
                lambda: (ids, offsets, firsts, _flat(table)), wide)
    return Family(member, {"ids": Operand(ids, is_shared), "offsets": Operand(offsets, is_shared), "table": Operand(table)},
                  [form], n=n)
