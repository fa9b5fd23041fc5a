# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What arithmetic expects of linear's kernels on an H200, or on an H100 SXM, before a device has its say.

Every number of a kernel is read from its policy in kernels/linear/, so that none is kept twice; those of the device stand
below, each with where it comes from. A kernel's time is one launch and one trip to memory, and then the longest of

  memory      each operand once, at the rate of memory, or at bytes under way / latency where fewer are under way than that takes:
              (stages - 1) x bytes of a stage x blocks that share a multiprocessor (as many as there are: occupancy)
  L2          what all tiles read, each its rows and its outputs over all of k; outputs that a pair of blocks shares once
  arithmetic  what the busiest multiprocessor multiplies, tiles counted whole
  decoding    instructions that make factors of a quantised weight's codes, again for each tile of rows

each taken alone, as if it hid the others. decoded is two kernels: its decoding is one of its own, at the rate of memory, and
comes before the longest of the other parts. What a tile's first stage and its epilogue add is left out: so expected is what
there is to reach, and a measurement far above it (SUSPICIOUS) a question.
"""
import dataclasses
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
MULTIPROCESSORS, CLOCK_HZ = 132, 1.755e9  # data sheets of H200 and H100 SXM; the clock is H100's boost clock
LAUNCH_S = 2e-6  # one launch in a graph, and one trip to memory
# A copy measured on an H200, of 4.8e12 in its data sheet; as much of H100 SXM's 3.35e12.
MEMORY_BYTES_PER_S = {"NVIDIA H200": 4.3e12, "NVIDIA H100 80GB HBM3": 3.0e12}
MEMORY_LATENCY_S = 0.7e-6  # under load; a guess
L2_BYTES_PER_S = 5120 * CLOCK_HZ  # a clock: A100 whitepaper; Hopper's is taken to be the same
INTEGER_PER_S = 64 * MULTIPROCESSORS * CLOCK_HZ  # CUDA C++ Programming Guide, throughput of 32-bit logic at 9.0
MMA_SHARE = 0.63  # of wgmma's rate is what mma.sync reaches on Hopper: Luo et al., arXiv 2402.13499
# What libraries reach, not what data sheets say: cuBLAS on an H200 (16 bits, 769 to 798 measured), DeepGEMM #402 (tf32,
# H100) and README (fp8, H800); fp32 is 0.75 of 67.
FLOPS_PER_S = {"fp32": 50e12, "tf32": 427e12, "fp16": 790e12, "bf16": 790e12, "fp8": 1500e12}
# Instructions a weight of each format takes to decode, kernels/linear/README.md.
DECODE = {"fp8_e4m3": 2.25, "int8": 2.75, "fp6_e3m2": 3.5, "int4": 1.375, "fp4_e2m1": 2.375}
BITS = {"fp8_e4m3": 8, "int8": 8, "fp6_e3m2": 6, "int4": 4, "fp4_e2m1": 4}
BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1}
ROW_BYTES = 128  # of k per stage
SHARED_BYTES, SYSTEM_BYTES = 228 * 1024, 1024  # per multiprocessor, and a block's reserved bytes: 9.0
memory_bytes_per_s = MEMORY_BYTES_PER_S["NVIDIA H200"]  # None for a device without expectations: assume()
# Of eight loads a lane, and 128 lanes a block; 64 registers a thread let eight blocks share a multiprocessor.
GEMV_BLOCK_BYTES, GEMV_BLOCKS = 8 * 16 * 128, 8
SUSPICIOUS = 1.5


@dataclasses.dataclass
class Tile:
    name: str
    rows: int
    outputs: int
    stages: int
    blocks: int  # per multiprocessor
    rows_limit: float = math.inf  # of a member, for which the tile is meant
    sharing: int = 1  # blocks with neighbouring rows that read their outputs' weights once: each a tile of its own


@dataclasses.dataclass
class Expectation:
    strategy: str
    tile: str
    tiles: int
    waves: float
    bytes: float
    flops: float
    under_way: float  # bytes in flight, per multiprocessor
    parts_us: dict

    @property
    def limit(self):
        return max(self.parts_us, key=self.parts_us.get)

    @property
    def us(self):
        return 1e6 * LAUNCH_S + self.parts_us[self.limit]


class TwoKernels(Expectation):
    """Whose first one decodes."""

    @property
    def us(self):
        return 2e6 * LAUNCH_S + self.parts_us["decoding"] + max(us for part, us in self.parts_us.items() if part != "decoding")


def assume(device):
    """From now on, expectations are for the device of this name; none if it is unknown. Returns whether it is known."""
    global memory_bytes_per_s
    memory_bytes_per_s = MEMORY_BYTES_PER_S.get(device)
    return memory_bytes_per_s is not None


def numbers(text):
    return [int(word) for word in re.findall(r"\b\d+\b", text)]


def policies(path, pattern):
    """{tile name: numbers of its policy} from a kernel's source."""
    text = (ROOT / "kernels/linear" / path).read_text()
    found = {name.lower(): numbers(values) for name, values in re.findall(pattern, text)}
    if not found:
        raise ValueError(f"kernels/linear/{path} has no policy of the form {pattern}")
    return found


def read_tiles():
    """{strategy: tiles}, from policy_of of each kernel."""
    case = r"case \w+::(m\d+n\d+(?:x2)?):.*\n\s*return \{(.*)\};"
    mma, quantised, simt = [], [], []
    for name, (a, b, _, _, _, stages, blocks) in policies("linear_mma.cuh", case).items():
        rows, outputs = numbers(name.replace("m", "").replace("n", " "))
        blocks = min(blocks, SHARED_BYTES // (stages * (a + b) * ROW_BYTES + SYSTEM_BYTES))  # for a long k
        # If the weight is A, the shorter side is the rows of x.
        mma.append(Tile(name, rows, outputs, stages, blocks, 64 if rows < a or a == b == 16 else math.inf))
    for name, (a, b, _, _, _, stages, blocks, _) in policies("linear_weight_only.cuh", case).items():
        quantised.append(Tile(name, b, a, stages, blocks, b if b < 64 else math.inf))
    for name, (rows, outputs, _, _, stages, _, blocks) in policies("linear_simt.cuh", r"SimtPolicy k(M\d+N\d+)\{(.*)\};").items():
        # More than twice its rows belong to the larger tiles, which read shared memory less often per product.
        simt.append(Tile(name, rows, outputs, stages, blocks, 2 * rows if rows < 64 else math.inf))
    wgmma = [Tile(name, *values, 1, sharing=2 if name.endswith("x2") else 1)
             for name, values in policies("linear_wgmma.cuh", case).items()]
    small = [tile for tile in mma if tile.rows_limit == 64]
    large = [tile for tile in mma if tile.rows_limit != 64]
    # gemv has no stages: its loads are in flight together.
    gemv = [Tile("16 outputs", 4, 16, 2, GEMV_BLOCKS, 4)]
    return {"simt": simt, "gemv": gemv, "small_m": small, "tensor_core": large, "wgmma": wgmma, "tf32x3": small + large,
            "weight_only": quantised, "decoded": small + large + wgmma}


TILES = read_tiles()
RAGGED = ("ragged_linear", "routed_linear")  # whose members have rows of their own, the first also widths
RAGGED_TILES = ("m16n64", "m64n64")  # for either strategy of these
ROUTED_WGMMA_TILES = ("m128n128", "m128n256")  # stages as linear's
RAGGED_SEED = 7  # for members' sizes: draw_member_size in host/linear_values.hpp


def complete(axes):
    """The axes of a target, completed by defaults."""
    return {"n": 4, "batch": 16, "d": 256, "in": 0, "out": 0, "dtype": "fp32", "shared": "no", "tf32": "no", "weights": "packed",
            "group": 128, "rounded": "no", "spread": 0} | axes


def rate(strategy, axes):
    """FLOP/s of products with such operands; None if the strategy does not support them."""
    dtype, is_tf32 = axes["dtype"], axes["tf32"] == "yes"
    if strategy in ("simt", "gemv"):
        return None if dtype.startswith("fp8") and strategy == "gemv" else FLOPS_PER_S["fp32"]
    if strategy == "tf32x3":
        return FLOPS_PER_S["tf32"] * MMA_SHARE / 3 if dtype == "fp32" else None
    if dtype.startswith("fp8"):
        return FLOPS_PER_S["fp8"] if strategy == "wgmma" else None
    if dtype == "fp32" and not is_tf32:
        return None
    full = FLOPS_PER_S["tf32" if dtype == "fp32" else dtype]
    return full if strategy == "wgmma" else full * MMA_SHARE


def is_wgmma_built(tile, dtype):
    """is_built_for of kernels/linear/linear_wgmma_tile.hpp."""
    return tile.outputs <= 128 if dtype.startswith("fp8") else tile.name != "m128n128x2"


def random_bits(key, index):
    """host/operand_values.hpp's SplitMix64."""
    z = (key + (index + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def drawn_size(largest, spread, step, name, member):
    """A member's extent along an axis, as wbench draws it."""
    key = RAGGED_SEED
    for value in (*name.encode(), 0, member):
        key = random_bits(key, value)
    size = largest - int(largest * spread / 100 * ((random_bits(key, 0) >> 11) / 2**53))
    return min(largest, max(math.ceil(size / step), 1) * step)


def shapes_of(op, axes):
    """[(members, rows, k, outputs)], for all members."""
    rows, k, outputs = axes["batch"], axes["in"] or axes["d"], axes["out"] or axes["d"]
    if op not in RAGGED:
        return [(axes["n"], rows, k, outputs)]
    spread = axes["spread"] if op == "ragged_linear" else 0  # of widths
    return [(1, drawn_size(rows, axes["spread"], 1, "batch", member), drawn_size(k, spread, math.gcd(k, 16), "in", member),
             drawn_size(outputs, spread, math.gcd(outputs, 16), "out", member)) for member in range(axes["n"])]


def weight_bytes_of(axes):
    """Of one weight, with its share of a scale."""
    is_quantised = axes["weights"] != "packed"
    return (BITS[axes["weights"]] + 16 / int(axes["group"])) / 8 if is_quantised else BYTES[axes["dtype"]]


def expect_decoded(tile, axes):
    """The tile's kernel on packed weights, after these have been written; None where they may not be rounded."""
    if axes["weights"] == "packed" or axes["rounded"] == "no":
        return None
    kernel = next(name for name in ("wgmma", "tensor_core", "small_m") if tile in TILES[name])
    one = expect(kernel, tile, axes | {"weights": "packed"})
    if one is None:
        return None
    ((n, _, k, outputs),) = shapes_of("linear", axes)
    moved = n * k * outputs * (weight_bytes_of(axes) + BYTES[axes["dtype"]])
    parts = one.parts_us | {"decoding": 1e6 * moved / memory_bytes_per_s}
    return TwoKernels("decoded", one.tile, one.tiles, one.waves, one.bytes + moved, one.flops, one.under_way, parts)


def expect(strategy, tile, axes, op="linear"):
    """The expectation for a strategy with a tile; None if it does not run such a case."""
    if strategy == "decoded":
        return expect_decoded(tile, axes)
    shapes = shapes_of(op, axes)
    format_ = axes["weights"]
    is_quantised = format_ != "packed"
    flops_per_s = rate("small_m" if strategy == "weight_only" else strategy, axes)
    element = BYTES[axes["dtype"]]
    if flops_per_s is None or is_quantised != (strategy == "weight_only") or max(rows for _, rows, _, _ in shapes) > tile.rows_limit:
        return None
    if strategy == "wgmma" and shapes[0][2] * element % 16 != 0:  # packed rows that tensor maps do not support
        return None
    if strategy == "wgmma" and not is_wgmma_built(tile, axes["dtype"]):
        return None
    weight_bytes = weight_bytes_of(axes)
    y_bytes = max(element, 2)
    sharing = tile.sharing
    grids = [n * sharing * math.ceil(rows / (sharing * tile.rows)) * math.ceil(outputs / tile.outputs) for n, rows, _, outputs in shapes]
    tiles = sum(grids)
    x = sum((1 if axes["shared"] == "yes" else n) * rows * k * element for n, rows, k, _ in shapes)
    moved = x + sum(n * (outputs * k * weight_bytes + rows * outputs * y_bytes + outputs * y_bytes) for n, rows, k, outputs in shapes)
    flops = sum(n * rows * outputs * (2 * k + 1) for n, rows, k, outputs in shapes)

    def mean(of_shape):
        """Over tiles, each of its member's shape."""
        return sum(grid * of_shape(*shape) for grid, (_, *shape) in zip(grids, shapes)) / tiles

    def bytes_of_k(rows, outputs):
        return min(tile.rows, rows) * element + min(tile.outputs, outputs) * weight_bytes / sharing

    busy, resident = min(MULTIPROCESSORS, tiles), min(tile.blocks, math.ceil(tiles / MULTIPROCESSORS))
    if strategy == "gemv":
        stage = GEMV_BLOCK_BYTES
    else:
        stage_k = ROW_BYTES / element * (2 if is_quantised else 1)
        stage = mean(lambda rows, k, outputs: min(stage_k, k) * bytes_of_k(rows, outputs))
    under_way = resident * (tile.stages - 1) * stage
    memory_rate = min(memory_bytes_per_s, busy * under_way / MEMORY_LATENCY_S)
    read = tiles * mean(lambda rows, k, outputs: k * bytes_of_k(rows, outputs))
    # gemv multiplies only existing rows.
    work = math.ceil(tiles / MULTIPROCESSORS) * 2 * tile.outputs * mean(lambda rows, k, _: k * (rows if strategy == "gemv" else tile.rows))
    parts = {"memory": moved / memory_rate, "L2": read / L2_BYTES_PER_S, "arithmetic": work * MULTIPROCESSORS / flops_per_s}
    if is_quantised:
        decoded = sum(n * outputs * k * math.ceil(rows / tile.rows) for n, rows, k, outputs in shapes)
        parts["decoding"] = decoded * DECODE[format_] / INTEGER_PER_S
    return Expectation(strategy, tile.name, tiles, tiles / (MULTIPROCESSORS * tile.blocks), moved, flops, under_way,
                       {name: 1e6 * seconds for name, seconds in parts.items()})


def of_target(op, axes, tile_name=None):
    """{strategy: the expectation by its best tile, or by the tile of that name} for all strategies that run such a case."""
    axes = complete(axes)
    found = {}

    def add(strategy, tiles, kernel, kernel_axes):
        of_all = [expect(kernel, tile, kernel_axes, op) for tile in tiles]
        named = [one for one in of_all if one and one.tile == tile_name]
        possible = named or [one for one in of_all if one]
        if possible:
            # Among those with the same limit, the one with the least of the rest.
            best = min(possible, key=lambda one: (one.us, sum(one.parts_us.values())))
            found[strategy] = dataclasses.replace(best, strategy=strategy)

    if op in RAGGED:
        for strategy, known in (("simt", TILES["simt"]), ("tensor_core", TILES["small_m"] + TILES["tensor_core"])):
            add(strategy, [tile for tile in known if tile.name in RAGGED_TILES], strategy, axes)
        if op == "routed_linear" and axes["dtype"] in ("fp16", "bf16"):
            add("wgmma", [tile for tile in TILES["wgmma"] if tile.name in ROUTED_WGMMA_TILES], "wgmma", axes)
        return found
    for strategy, tiles in TILES.items():
        if strategy == "small_m" and axes["batch"] > 64:
            continue
        if strategy in ("tensor_core", "tf32x3") and axes["dtype"] == "fp32":
            tiles = [tile for tile in tiles if tile.name != "m128n128"]
        add(strategy, tiles, strategy, axes)
    if axes["shared"] == "yes":
        # One member with N times the outputs, by the kernel that host/linear/linear_tile_choice.cpp selects.
        outputs = axes["n"] * (axes["out"] or axes["d"])
        is_strict = axes["dtype"] == "fp32" and axes["tf32"] == "no"
        kernel = ("gemv" if axes["batch"] <= 4 else "simt" if is_strict else "small_m" if axes["batch"] <= 64 else "wgmma")
        add("shared_input", TILES[kernel], kernel,
            axes | {"n": 1, "in": axes["in"] or axes["d"], "out": outputs, "shared": "no"})
    return found
