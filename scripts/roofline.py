# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What arithmetic expects of the other primitives on the same devices: expectation.py is linear's.

A launch and a trip to memory, and then the longest of

  memory      each operand once, at the rate of memory; of tables the rows that ids, drawn evenly, are expected to name
  arithmetic  multiplications, at the rate of what multiplies; keys that causality hides are not multiplied
  exponents   of scores, at 16 a clock and multiprocessor
  chain       of fused layers: what a quarter of a multiprocessor multiplies for a warp's rows, one layer after another; of fused
              steps: what a multiprocessor multiplies for a block's rows, and what a step waits for beside, STEP_S

each taken alone, as there. Tiles, halos and what is read again are left out: these kernels have theirs from the problem, and
the simulated GPU counts what they read. attention is its parts one after another, each so; so is an mlp layer by layer, and so are
recurrent layers, of which x's products are one launch.
"""
import dataclasses
import math

import expectation
from expectation import BYTES, Expectation, FLOPS_PER_S, LAUNCH_S, MMA_SHARE

EXPONENTS_PER_S = 16 * expectation.MULTIPROCESSORS * expectation.CLOCK_HZ  # CUDA C++ Programming Guide, throughput at 9.0
# Keys that flash_attention's short keeps, by the number of elements per head: host/attention/flash_attention_strategy.cpp.
SHORT_KEYS = ((64, 256), (128, 128), (256, 64))
STEP_S = 0.4e-6  # a barrier, the functions of a cell, and a chain of products that waits for both; a guess
RECURRENT_BYTES = 227 * 1024  # shared memory for hidden weights and what belongs to them
DECODE_ROWS = 16  # queries that share keys, in flash_attention's decode


@dataclasses.dataclass
class Sum(Expectation):
    """Launches one after another."""

    @property
    def us(self):
        return len(self.parts_us) * 1e6 * LAUNCH_S + sum(self.parts_us.values())


def of(strategy, moved, flops=0.0, flops_per_s=FLOPS_PER_S["fp32"], exponents=0.0):
    seconds = {"memory": moved / expectation.memory_bytes_per_s, "arithmetic": flops / flops_per_s, "exponents": exponents / EXPONENTS_PER_S}
    return Expectation(strategy, "", 0, 0.0, moved, flops, 0.0, {part: 1e6 * time for part, time in seconds.items() if time > 0})


def mma_rate(axes):
    """Rate of mma.sync; None if it does not support such operands."""
    if axes["dtype"] == "fp32":
        return FLOPS_PER_S["tf32"] * MMA_SHARE if axes.get("tf32") == "yes" else None
    return FLOPS_PER_S[axes["dtype"]] * MMA_SHARE


def rows(axes, *, streams=2, parameters=0):
    """x read and y written, and other operands of their size; parameters of each member's features."""
    axes = {"n": 4, "batch": 8, "seq": 128, "d": 256} | axes
    values = axes["n"] * axes["batch"] * axes["seq"] * axes["d"]
    return [of("wide", BYTES[axes["dtype"]] * (streams * values + parameters * axes["n"] * axes["d"]))]


def flat_rows(axes, **how):
    return rows({"batch": 1024, "seq": 1} | axes, **how)


def ensemble(axes):
    """Every member's x read, and one y written."""
    axes = {"n": 4} | axes
    return flat_rows(axes, streams=1 + 1 / axes["n"])


def images(axes):
    axes = {"n": 4, "batch": 8, "channels": 64, "height": 32, "width": 0} | axes
    return axes, axes["n"] * axes["batch"] * axes["channels"] * axes["height"] * (axes["width"] or axes["height"])


def batchnorm(axes):
    axes, values = images({"mode": "eval"} | axes)
    element = BYTES[axes["dtype"]]
    # gamma and beta; the statistics are fp32, and in train mode also written.
    channel = 2 * element + (16 if axes["mode"] == "train" else 8)
    return [of("wide", 2 * element * values + channel * axes["n"] * axes["channels"])]


def pooling(axes):
    axes, values = images({"kernel": 2} | axes)
    return [of("wide", BYTES[axes["dtype"]] * values * (1 + 1 / axes["kernel"] ** 2))]


def interpolate(axes):
    """Of outputs that leave no position out."""
    axes, values = images({"scale": 200} | axes)
    return [of("wide", BYTES[axes["dtype"]] * values * (1 + (axes["scale"] / 100) ** 2))]


def embedding(axes):
    """What host/embedding/embedding_spec.cpp counts in the ids that it has drawn, here as expected values."""
    axes = {"n": 4, "batch": 8, "seq": 128, "vocab": 1000, "dim": 256, "ids": "shared", "id_dtype": "int64"} | axes
    ids, row = axes["batch"] * axes["seq"], axes["dim"] * BYTES[axes["dtype"]]
    distinct = axes["vocab"] * (1 - (1 - 1 / axes["vocab"]) ** ids)
    id_bytes = ids * (8 if axes["id_dtype"] == "int64" else 4) * (1 if axes["ids"] == "shared" else axes["n"])
    return [of("indexed", axes["n"] * (distinct + ids) * row + id_bytes)]


def conv3d(axes):
    axes = {"height": 16, "depth": 8, "kernel": 3, "kernel_depth": 0, "form": "full"} | axes
    return conv(axes, axes["depth"], 1 if axes["form"] == "pointwise" else axes["kernel_depth"] or axes["kernel"])


def conv(axes, depth=1, kernel_depth=1):
    """For stride 1, padded so that y has x's size."""
    axes, x = images({"kernel": 3, "out": 0, "groups": 1, "form": "full", "layout": "first", "x_layout": "same"} | axes)
    x *= depth
    channels = axes["channels"]
    outputs = x // channels * (axes["out"] or channels)
    per_group = 1 if axes["form"] == "depthwise" else channels // axes["groups"]
    kernel = 1 if axes["form"] == "pointwise" else axes["kernel"]
    terms = per_group * kernel_depth * kernel**2
    weights = axes["n"] * (axes["out"] or channels) * (terms + 1)
    moved, flops = BYTES[axes["dtype"]] * (x + outputs + weights), 2 * outputs * terms
    found = [of("direct", moved, flops)]
    on_tensor_cores = mma_rate(axes)
    is_last = axes["layout"] == "last" and axes["x_layout"] != "first"
    out_per_group = (axes["out"] or channels) // (channels // per_group)
    if on_tensor_cores and terms >= 8 and max(per_group, out_per_group) >= 8:
        found.append(of("implicit_gemm", moved, flops, on_tensor_cores))
        if axes["groups"] == 1 and axes["form"] != "depthwise" and is_last:
            found.append(of("wgmma", moved, flops, on_tensor_cores / MMA_SHARE))
        if axes["form"] == "pointwise" and is_last:
            found.append(of("pointwise", moved, flops, on_tensor_cores))
    return found


def flash_attention(axes):
    axes = {"n": 4, "batch": 8, "seq": 128, "kv_seq": 0, "heads": 8, "kv_heads": 0, "head_dim": 32, "causal": "no"} | axes
    heads, queries, keys = axes["n"] * axes["batch"] * axes["heads"], axes["seq"], axes["kv_seq"] or axes["seq"]
    shared = (axes["kv_heads"] or axes["heads"]) / axes["heads"]
    moved = 2 * heads * axes["head_dim"] * (queries + keys * shared) * BYTES[axes["dtype"]]
    # Query i sees the first keys - queries + i + 1 of them.
    pairs = heads * (queries * keys if axes["causal"] == "no" else queries * (2 * keys - queries + 1) / 2)
    flops = 4 * pairs * axes["head_dim"]
    on_tensor_cores = mma_rate(axes)
    if on_tensor_cores is None:
        return [of("simt", moved, flops, exponents=pairs)]
    names = ["tensor_core"]
    if keys <= next((most for elements, most in SHORT_KEYS if axes["head_dim"] <= elements), 0):
        names.append("short")
    found = [of(name, moved, flops, on_tensor_cores, pairs) for name in names]
    if queries * axes["heads"] <= DECODE_ROWS * (axes["kv_heads"] or axes["heads"]):
        found.append(of("decode", moved, flops, on_tensor_cores * queries * axes["heads"] / (axes["kv_heads"] or axes["heads"]) / DECODE_ROWS, pairs))
    if axes["head_dim"] % 8 == 0 and axes.get("bias", "no") == "no":
        found.append(of("wgmma", moved, flops, FLOPS_PER_S[axes["dtype"]], pairs))
    return found


def attention(axes):
    """For self-attention: one projection to queries, keys and values, the core, one more."""
    axes = {"n": 4, "batch": 8, "seq": 128, "d_model": 256, "heads": 8} | axes
    rate = mma_rate(axes) or FLOPS_PER_S["fp32"]
    tokens, d, n, element = axes["batch"] * axes["seq"], axes["d_model"], axes["n"], BYTES[axes["dtype"]]

    def linear(outputs):
        return of("", n * element * (tokens * (d + outputs) + outputs * (d + 1)), 2 * n * tokens * d * outputs, rate)

    (core, *_) = flash_attention(axes | {"head_dim": d // axes["heads"]})
    parts = {"projection": linear(3 * d), "core": core, "output": linear(d)}
    return [Sum("fused", "", 0, 0.0, sum(one.bytes for one in parts.values()), sum(one.flops for one in parts.values()), 0.0,
                {name: one.us - 1e6 * LAUNCH_S for name, one in parts.items()})]


def mlp(axes):
    """One launch per layer; or all in one, where a warp must carry its rows from layer to layer, and those that follow."""
    axes = {"n": 4, "batch": 32, "d": 64, "in": 0, "hidden": 0, "out": 0, "layers": 2, "shared": "no"} | axes
    rate, element, n, batch = mma_rate(axes) or FLOPS_PER_S["fp32"], BYTES[axes["dtype"]], axes["n"], axes["batch"]
    hidden = [axes["hidden"] or axes["d"]] * (axes["layers"] - 1)
    widths = [axes["in"] or axes["d"], *hidden, axes["out"] or axes["d"]]
    x, y = widths[0] * batch * (1 if axes["shared"] == "yes" else n), widths[-1] * batch * n
    layers = [(i, o) for i, o in zip(widths, widths[1:])]
    weights = [n * o * (i + 1) for i, o in layers]
    each = [of("", element * (n * batch * (i + o) + weight), 2 * n * batch * i * o, rate)
            for (i, o), weight in zip(layers, weights)]
    found = [Sum("layerwise", "", 0, 0.0, sum(one.bytes for one in each), sum(one.flops for one in each), 0.0,
                 {f"layer {l}": one.us - 1e6 * LAUNCH_S for l, one in enumerate(each)})]
    if max(widths) <= 256 and len(layers) <= 16:  # kernels/fused/mlp_fused_shape.hpp
        rows, quarters = 16 if mma_rate(axes) else 8, 4 * expectation.MULTIPROCESSORS
        turns = math.ceil(n * math.ceil(batch / rows) / quarters)
        chain = turns * 2 * rows * sum(i * o for i, o in layers) / (rate / quarters)
        fused = of("fused", element * (x + y + sum(weights)), found[0].flops, rate)
        found.append(dataclasses.replace(fused, parts_us={"memory": fused.parts_us["memory"], "chain": 1e6 * chain}))
    return found


def routed_mlp(axes):
    """mlp of as many rows as a member has in the mean; their numbers are a few bytes beside them."""
    rows = [expectation.drawn_size(axes["batch"], axes["spread"], 1, "batch", member) for member in range(axes["n"])]
    return mlp(axes | {"batch": sum(rows) / len(rows)})


def recurrent(axes):
    """x's products, then two launches per step, or one for all steps, in which a block goes from step to step."""
    axes = {"n": 4, "cell": "lstm", "batch": 16, "seq": 32, "d": 64, "in": 0, "hidden": 0, "tf32": "no"} | axes
    rate, element, n, batch, steps = mma_rate(axes) or FLOPS_PER_S["fp32"], BYTES[axes["dtype"]], axes["n"], axes["batch"], axes["seq"]
    inputs, hidden, gates = axes["in"] or axes["d"], axes["hidden"] or axes["d"], 4 if axes["cell"] == "lstm" else 3
    outputs, tokens = gates * hidden, batch * steps
    x = of("", n * element * (tokens * (inputs + outputs) + outputs * (inputs + 1)), 2 * n * tokens * inputs * outputs, rate)
    product = of("", n * element * (batch * (hidden + outputs) + outputs * (hidden + 1)), 2 * n * batch * hidden * outputs, rate)
    cells = of("", n * batch * (element * (2 * outputs + hidden) + 8 * hidden))
    moved, flops = x.bytes + steps * (product.bytes + cells.bytes), x.flops + steps * product.flops
    launch_us = 1e6 * LAUNCH_S
    found = [Sum("stepwise", "", 0, 0.0, moved, flops, 0.0,
                 {"x": x.us - launch_us, "steps": (product.us + cells.us) * steps - launch_us})]
    rows = 8 if axes["dtype"] == "fp32" else 16
    if element * (outputs * (hidden + 16) + 2 * rows * (hidden + outputs)) <= RECURRENT_BYTES and hidden <= 160:
        own = FLOPS_PER_S["fp32"] if axes["dtype"] == "fp32" else rate
        turns = math.ceil(n * math.ceil(batch / rows) / expectation.MULTIPROCESSORS)
        step = turns * (2 * rows * hidden * outputs * expectation.MULTIPROCESSORS / own) + STEP_S
        one = of("", n * element * (tokens * (outputs + hidden) + outputs * hidden))
        chain_us = max(one.us - launch_us, 1e6 * steps * step)
        found.append(Sum("fused", "", 0, 0.0, x.bytes + one.bytes, flops, 0.0, {"x": x.us - launch_us, "chain": chain_us}))
    return found


OPS = {"softmax": flat_rows, "pointwise": rows, "layernorm": lambda axes: rows(axes, parameters=2), "rmsnorm": lambda axes: rows(axes, parameters=1), "ensemble": ensemble,
       "binary": lambda axes: flat_rows(axes, streams=3), "batchnorm2d": batchnorm, "pooling": pooling,
       "interpolate": interpolate, "embedding": embedding,
       "conv2d": conv, "conv3d": conv3d, "flash_attention": flash_attention, "attention": attention,
       "mlp": mlp, "routed_mlp": routed_mlp, "recurrent": recurrent}


def of_target(op, axes, tile_name=None):
    """{strategy: the expectation}, for linear by its best tile or the tile of that name; none for an unknown device."""
    if expectation.memory_bytes_per_s is None:
        return {}
    if op in ("linear", *expectation.RAGGED):
        return expectation.of_target(op, axes, tile_name)
    if op not in OPS:
        raise ValueError(f"nothing is expected of {op}, a target's primitive, expected linear, {', '.join([*expectation.RAGGED, *OPS])}")
    return {one.strategy: one for one in OPS[op]({"dtype": "fp32"} | axes)}
