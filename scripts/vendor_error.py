# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Our largest error over the vendor's, case by case.

Results have errors over tolerances, which are the same for all strategies of a case, so that the ratio of two is that of the errors.
Ours may be twice the least accurate vendor's, and one unit in the last place (ulp) of y. In fp32 an ulp is at most 2 u |y|, and the
tolerance of a sum of `terms` products at least (8 sqrt(terms + 1) + 1) u |y|. In 16 bits a result within its tolerance is hardly
an ulp off, so that the tolerance alone judges those: their ratios are shown only. So are those of primitives that are no sums of
products, whose tolerances a few roundings exhaust.
"""
import math

VENDOR_CALLS = {"cublas_batched", "cublaslt", "cublas_grouped", "grouped", "channels_last", "cudnn"}
LIMIT = 2
DIMENSIONS = {"conv1d": 1, "conv2d": 2, "conv3d": 3}
PRODUCTS = {"linear", "ragged_linear", *DIMENSIONS}


def terms(op, axes):
    """Of the sum that an element of y is."""
    def number(axis):
        return int(axes.get(axis, 0))
    if op not in DIMENSIONS:
        return number("in") or number("d")
    channels = 1 if axes.get("form") == "depthwise" else number("channels") // max(1, number("groups"))
    return channels * number("kernel") ** DIMENSIONS[op]


def allowed(case, theirs):
    """The largest error over tolerance that passes; None where nothing is judged."""
    if case["op"] not in PRODUCTS or case["axes"].get("dtype") != "fp32":
        return None
    return LIMIT * theirs + 2 / (8 * math.sqrt(terms(case["op"], case["axes"]) + 1) + 1)


def error_of(strategy):
    """Over its tolerance; None where it was not found, or is not finite."""
    verify = strategy["verify"]
    is_checked = strategy["status"] == "ok" and verify["before"] == "pass" and verify["elements_compared"] > 0
    return verify["worst_error_ratio"] if is_checked else None


def compare(results):
    """{(op, strategy): what evidence says of it}, of strategies that ran right in a case in which a vendor's call did, too."""
    found = {}
    for case in (case for result in results for case in result["cases"]):
        errors = {strategy["name"]: error_of(strategy) for strategy in case["strategies"]}
        errors = {name: error for name, error in errors.items() if error is not None}
        theirs = max(((error, name) for name, error in errors.items() if name in VENDOR_CALLS), default=None)
        for name, ours in errors.items() if theirs else ():
            if name in VENDOR_CALLS:
                continue
            limit = allowed(case, theirs[0])
            is_exceeded = limit is not None and ours > limit
            one = {"ours": ours, "theirs": theirs[0], "vendor": theirs[1], "axes": case["axes"], "allowed": limit}
            entry = found.setdefault((case["op"], name), {"cases": 0, "judged": 0, "exceeded": 0, "worst": one})
            for count, is_one in (("cases", True), ("judged", limit is not None), ("exceeded", is_exceeded)):
                entry[count] += is_one
            entry["worst"] = max(entry["worst"], one, key=severity)
    return found


def severity(one):
    """What is judged before what is shown only; then by the share of what is allowed, or the ratio."""
    if one["allowed"] is not None:
        return 1, one["ours"] / one["allowed"]
    return 0, ratio(one)


def ratio(one):
    return one["ours"] / one["theirs"] if one["theirs"] else math.inf if one["ours"] else 1


def is_legal(entry):
    """Of an evidence file, where it may be missing."""
    counts = [entry.get(key) for key in ("cases", "judged", "exceeded")] if isinstance(entry, dict) else [None]
    worst = entry.get("worst") if isinstance(entry, dict) else None
    numbers = [worst.get(key) for key in ("ours", "theirs")] if isinstance(worst, dict) else [None]
    return (all(type(count) is int and count >= 0 for count in counts) and isinstance(worst, dict) and isinstance(worst.get("vendor"), str)
            and isinstance(worst.get("axes"), dict) and all(type(number) in (int, float) and number >= 0 for number in numbers))


def words(entry):
    """Of one strategy, for tables and messages."""
    worst = entry["worst"]
    case = " ".join(f"{axis}={value}" for axis, value in worst["axes"].items())
    return f"{ratio(worst):.2f}x `{worst['vendor']}`'s", f"{entry['exceeded']} of {entry['judged']}", case
