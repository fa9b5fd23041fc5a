#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# A peer of wbench without any framework, for peer_test.cpp: hardswish of fp32 that tells times of its
# own making. --be WHAT makes it a bad one; --log FILE gets what it is asked for.
import argparse
import json
import os
import shutil
import struct
import sys

TIMES_NS = {"right": 200000.0, "quick": 1000.0, "wrong": 10.0, "late": 150000.0, "near": 300000.0}


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        body = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", entry
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", body[begin:end]))
    return tensors


def write_got(path, values, dtype="F32"):
    data = struct.pack(f"<{len(values)}f", *values)
    header = json.dumps({"got": {"dtype": dtype, "shape": [len(values)], "data_offsets": [0, len(data)]}}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data)


class FakePeer:
    def __init__(self, bad):
        self.bad = bad
        self.samples = 0

    def hello(self, request):
        name = "two words" if self.bad == "misnamed" else "fake"
        protocol = "wbench.peer 2" if self.bad == "newer" else request["protocol"]
        return {"protocol": protocol, "name": name, "version": "1.0"}

    def prepare(self, request):
        if self.bad == "dies":
            os._exit(3)
        if self.bad == "refuses":
            return {"error": f"{request['op']} is not known", "kind": "unsupported"}
        if os.path.exists("e.jsonl"):  # what a run that is killed now leaves
            shutil.copy("e.jsonl", "begun.jsonl")
        self.members = request["n"]
        self.shape, self.x = read_safetensors(request["operands"])["x"]
        self.outputs = request["outputs"]
        names = ["right"] if self.bad else list(TIMES_NS)
        if self.bad == "mumbles":
            names = ["right", "quick"]
        offers = [{"name": name, "explain": f"hardswish, {name}"} for name in names]
        offers.append({"name": "compile", "unsupported": "there is no compiler"})
        return {"strategies": offers + ([offers[0]] if self.bad == "repeats" else [])}

    def values(self, strategy):
        """Of x [rows, N*D] the members one after another, each [rows, D]."""
        rows, width = self.outputs[0]
        wide = width * self.members
        off = 1.0 if strategy == "wrong" or (strategy == "late" and self.samples > 0) else 0.0
        factor = 1 + 2.4e-6 if strategy == "near" else 1.0  # 8 tolerances
        of_members = (self.x[r * wide + m * width + d] for m in range(self.members) for r in range(rows) for d in range(width))
        return [x * min(max(x + 3, 0), 6) / 6 * factor + off for x in of_members]

    def run(self, request):
        values = self.values(request["strategy"])
        forgets = self.bad == "forgets" and self.samples > 0
        if "to" in request and not forgets:
            write_got(request["to"], values[:-1] if self.bad == "short" else values, "F16" if self.bad == "half" else "F32")
        return {}

    def sampler(self, request):
        if request["regime"] != "cpu" and not self.bad.startswith("counts") and self.bad != "alone":
            return {"error": f"no regime {request['regime']}", "kind": "unsupported"}
        self.strategies = getattr(self, "strategies", []) + [request["strategy"]]
        timer = "sundial" if self.bad == "sundial" else "host"
        reply = {"sampler": len(self.strategies) - 1, "timer": timer, "iters_per_sample": 1 if self.bad == "alone" else 7, "expected_sample_s": 1e-4}
        if self.bad.startswith("counts "):
            reply["calls_run_per_sample"] = int(self.bad.split()[1])
        return reply

    def sample(self, request):
        if self.bad == "dies late":
            os._exit(4)
        if self.bad == "mumbles":
            return float("nan")
        self.samples += 1
        strategy = self.strategies[request["sampler"]]
        said = {"negative": -1, "eternal": 1e300}.get(self.bad)
        return {"time_ns": said or TIMES_NS[strategy] + self.samples % 3}

    def rest(self, _):
        return {}

    def forget(self, _):
        return {}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--be", default="")
    options.add_argument("--log", default="")
    arguments = options.parse_args()
    bad = arguments.be
    if bad == "dies once":
        marker = arguments.log + ".died"
        if not os.path.exists(marker):
            open(marker, "w").close()
            bad = "dies"
    peer = FakePeer(bad)
    for line in sys.stdin:
        request = json.loads(line)
        if arguments.log:
            with open(arguments.log, "a") as log:
                log.write(" ".join([request["do"], *(str(request[k]) for k in ("regime", "min_sample_ns", "cache", "copies") if k in request)]) + "\n")
        if bad == "babbles":
            print("hello to you, too", flush=True)
            continue
        if bad == "hangs":
            continue
        print(json.dumps(getattr(peer, request["do"])(request)), flush=True)


main()
