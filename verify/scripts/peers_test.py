#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""peers_test.py [WBENCH]: the protocol that peers of wbench speak, with a peer that knows no framework, files of
tensors, and axes; with WBENCH and a python3 that has torch, torch against what wide expects."""
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

PEERS = pathlib.Path(__file__).resolve().parents[2] / "scripts/peers"
sys.path.insert(0, str(PEERS))
sys.dont_write_bytecode = True

import axes  # noqa: E402
import protocol  # noqa: E402
import tensor_file  # noqa: E402

WBENCH = ""

# Prints how many pages the second of two large allocations was given.
FILL_TWICE = """
import ctypes, resource
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def fill(bytes):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    memory = ctypes.c_void_p(libc.malloc(bytes))
    ctypes.memset(memory, 1, bytes)
    libc.free(memory)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
fill(64 << 20)
print(fill(64 << 20))
"""

HELLO = {"do": "hello", "protocol": "wbench.peer 1", "device": "cpu", "threads": 1}
PREPARE = {"do": "prepare", "op": "linear", "axes": {"n": 2}, "n": 2, "operands": "file", "outputs": [[1, 2], [1, 2]],
           "flush_bytes": 0}


class FakePeer:
    def __init__(self):
        self.asked = []

    def hello(self, _):
        return {"protocol": protocol.PROTOCOL, "name": "fake", "version": "1"}

    def prepare(self, request):
        self.asked.append(("prepare", request["op"]))
        return {"strategies": [{"name": "loop", "explain": "none"}]}

    def run(self, request):
        reasons = {"unsupported": protocol.Unsupported("no such call"), "oom": MemoryError("all gone"),
                   "defect": KeyError("x"), "nan": None}
        error = reasons.get(request["strategy"])
        if request["strategy"] == "nan":
            return {"time_ns": float("nan")}
        if error is not None:
            raise error
        return {}

    def sampler(self, _):
        return {"sampler": 0, "timer": "host", "iters_per_sample": 1, "expected_sample_s": 0.1}

    def sample(self, _):
        return {"time_ns": 1.5}

    def rest(self, _):
        return {}

    def forget(self, _):
        self.asked.append(("forget", ""))
        return {}

    @staticmethod
    def kind_of(error):
        return "oom" if isinstance(error, MemoryError) else None


class ProtocolTest(unittest.TestCase):
    def talk(self, *requests):
        """A reply for each request."""
        return self.talk_to(FakePeer(), *requests)

    def talk_to(self, peer, *requests):
        lines = [line if isinstance(line, str) else json.dumps(line) for line in requests]
        replies, errors = io.StringIO(), sys.stderr
        self.peer = peer
        sys.stderr = io.StringIO()
        try:
            protocol.serve(self.peer, io.StringIO("".join(line + "\n" for line in lines)), replies)
        finally:
            self.errors, sys.stderr = sys.stderr.getvalue(), errors
        answers = [json.loads(line) for line in replies.getvalue().splitlines()]
        if not getattr(peer, "is_lost", bool)():
            self.assertEqual(len(answers), len(lines))
        return answers

    def assert_refused(self, reply, text, kind="failed"):
        self.assertIn(text, reply.get("error", ""))
        self.assertEqual(reply["kind"], kind)

    def test_a_case_from_hello_to_forget(self):
        answers = self.talk(HELLO, PREPARE, {"do": "run", "strategy": "loop"},
                            {"do": "sampler", "strategy": "loop", "regime": "cpu", "min_sample_ns": 1e5},
                            {"do": "sample", "sampler": 0}, {"do": "rest"}, {"do": "forget"}, PREPARE)
        self.assertEqual([reply for reply in answers if "error" in reply], [])
        self.assertEqual(answers[4], {"time_ns": 1.5})
        self.assertEqual([do for do, _ in self.peer.asked], ["prepare", "forget", "prepare"])

    def test_large_memory_is_kept_for_the_next_call(self):
        faults = [int(subprocess.run([sys.executable, "-Bc", start + FILL_TWICE], cwd=PEERS, check=True, capture_output=True).stdout)
                  for start in ("", "import protocol; protocol.keep_memory()")]
        self.assertGreater(faults[0], 16)  # of huge pages at least
        self.assertLess(faults[1], 16)

    @unittest.skipUnless(os.path.isdir("/proc/self/task"), "no /proc: other threads cannot be seen")
    def test_rest_waits_for_threads_that_run(self):
        worker = threading.Thread(target=hashlib.sha256, args=(bytes(1 << 27),))  # without the interpreter's lock
        worker.start()
        protocol.rest_threads(60)
        worker.join(0.02)
        self.assertFalse(worker.is_alive(), "a thread was still working")
        morning = threading.Event()
        sleeper = threading.Thread(target=morning.wait, args=(60,))
        sleeper.start()
        protocol.rest_threads(60)
        self.assertTrue(sleeper.is_alive(), "a sleeping thread was waited for")
        morning.set()
        sleeper.join()

    def test_what_is_no_request_is_answered_and_the_next_is_taken(self):
        answers = self.talk("{", "[1]", {"do": "dance"}, {}, {"do": ["run"]}, HELLO)
        for reply, text in zip(answers, ("no JSON", "expected an object", "'dance'", "None", "expected one of hello")):
            self.assert_refused(reply, text)
        self.assertEqual(answers[5]["name"], "fake")

    def test_fields_that_are_missing_or_of_another_kind(self):
        for field, value in (("op", None), ("axes", []), ("n", "2"), ("n", True), ("outputs", {}), ("flush_bytes", 1.5)):
            with self.subTest(field=field, value=value):
                self.assert_refused(self.talk(HELLO, {**PREPARE, field: value})[1], f"prepare: {field} is")
        without = {key: value for key, value in HELLO.items() if key != "threads"}
        self.assert_refused(self.talk(without)[0], "hello: threads is null, expected a number")

    def test_wrong_order(self):
        run = {"do": "run", "strategy": "loop"}
        self.assert_refused(self.talk(PREPARE)[0], "prepare came first, expected hello")
        self.assert_refused(self.talk(HELLO, run)[1], "run came without a case, expected prepare")
        self.assert_refused(self.talk(HELLO, PREPARE, PREPARE)[2], "expected forget")
        self.assert_refused(self.talk(HELLO, PREPARE, {"do": "forget"}, run)[3], "expected prepare")

    def test_another_protocol(self):
        answers = self.talk({**HELLO, "protocol": "wbench.peer 2"}, PREPARE)
        self.assert_refused(answers[0], "'wbench.peer 2', expected 'wbench.peer 1'")
        self.assert_refused(answers[1], "expected hello")

    def test_kinds_of_errors(self):
        runs = [{"do": "run", "strategy": name} for name in ("unsupported", "oom", "defect", "nan", "loop")]
        answers = self.talk(HELLO, PREPARE, *runs)[2:]
        self.assert_refused(answers[0], "no such call", "unsupported")
        self.assert_refused(answers[1], "MemoryError: all gone", "oom")
        self.assert_refused(answers[2], "KeyError: 'x'")
        self.assert_refused(answers[3], "ValueError")  # NaN is no JSON
        self.assertEqual(answers[4], {})
        self.assertIn("Traceback", self.errors)

    def test_a_peer_that_is_lost_answers_and_ends(self):
        class Lost(FakePeer):
            def is_lost(self):
                return True
        runs = [{"do": "run", "strategy": name} for name in ("unsupported", "defect", "loop")]
        answers = self.talk_to(Lost(), HELLO, PREPARE, *runs)
        self.assertEqual(len(answers), 4)  # what is merely unsupported loses nothing
        self.assert_refused(answers[3], "KeyError")

    def test_long_messages_are_cut_to_what_they_say(self):
        self.assertEqual(protocol.in_short(ValueError("compiling failed:\n g++ -O3\nx.cpp:1: error: no  such file\n more")),
                         "compiling failed:; x.cpp:1: error: no such file")
        self.assertEqual(protocol.in_short(ValueError("one\n\n two")), "one two")
        self.assertEqual(protocol.in_short(ValueError("")), "no message")
        self.assertEqual(len(protocol.in_short(ValueError("x" * 1000))), 400)

    def test_only_replies_reach_standard_output(self):
        program = ("import os, sys, protocol\nreplies = protocol.private_stdout()\nprint('noise')\n"
                   "os.write(1, b'more noise')\nprotocol.serve(None, sys.stdin, replies)\n")
        result = subprocess.run([sys.executable, "-c", program], input="{\n", capture_output=True, text=True, timeout=60,
                                env=os.environ | {"PYTHONPATH": str(PEERS), "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(list(json.loads(result.stdout)), ["error", "kind"])
        self.assertIn("noise", result.stderr)
        self.assertIn("more noise", result.stderr)


class TensorFileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "tensors.safetensors"

    def put(self, header, data=b""):
        text = json.dumps(header).encode() if isinstance(header, dict) else header
        self.path.write_bytes(len(text).to_bytes(8, "little") + text + data)

    def test_what_is_written_is_read(self):
        entries = {"x": tensor_file.Entry("F16", (2, 3), bytes(range(12))),
                   "none": tensor_file.Entry("F32", (0, 4), b""),
                   "one": tensor_file.Entry("I64", (), b"12345678")}
        tensor_file.write(self.path, entries, {"op": "linear"})
        read, metadata = tensor_file.read(self.path)
        self.assertEqual(metadata, {"op": "linear"})
        self.assertEqual({name: (e.type_name, e.shape, bytes(e.data)) for name, e in read.items()},
                         {name: (e.type_name, e.shape, e.data) for name, e in entries.items()})
        self.assertEqual(tensor_file.read_metadata(self.path), {"op": "linear"})
        self.assertEqual([path.name for path in self.path.parent.iterdir()], [self.path.name])

    def assert_refused(self, text):
        with self.assertRaisesRegex(tensor_file.TensorFileError, text):
            tensor_file.read(self.path)

    def test_what_is_no_such_file(self):
        good = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
        self.path.write_bytes(b"1234")
        self.assert_refused("ends within")
        self.path.write_bytes((1 << 40).to_bytes(8, "little") + b"{}")
        self.assert_refused("header of 1099511627776 bytes")
        self.put(b"{no}")
        self.assert_refused("no JSON")
        self.put({"x": good}, b"1234")
        self.assert_refused("ends within")
        self.put({"x": {**good, "dtype": "F4"}}, b"12345678")
        self.assert_refused("x has dtype F4")
        self.put({"x": {**good, "shape": [3]}}, b"12345678")
        self.assert_refused("x has 8 bytes, expected 12")
        self.put({"x": {"dtype": "F32"}})
        self.assert_refused("x lacks")

    def test_bytes_that_are_no_such_tensor_are_not_written(self):
        with self.assertRaisesRegex(tensor_file.TensorFileError, "x: 3 bytes, expected 4"):
            tensor_file.write(self.path, {"x": tensor_file.Entry("F32", (1,), b"123")})
        self.assertFalse(self.path.exists())


class AxesTest(unittest.TestCase):
    SOFTMAX = {"n": "4", "batch": 8, "d": 16, "log": "no", "dtype": "fp32"}

    def assert_refused(self, text, **changed):
        with self.assertRaises(protocol.Unsupported) as caught:
            axes.Case("softmax", {name: value for name, value in {**self.SOFTMAX, **changed}.items() if value is not None})
        self.assertIn(text, str(caught.exception))

    def test_numbers_and_words(self):
        case = axes.Case("softmax", self.SOFTMAX)
        self.assertEqual((case.n, case["d"], case.has("log")), (4, 16, False))

    def test_what_is_not_known_is_refused(self):
        self.assert_refused("axis temperature is not known", temperature=2)
        self.assert_refused("no log=perhaps here, but no, yes", log="perhaps")
        self.assert_refused("axis d is 'many', expected a whole number", d="many")
        self.assert_refused("axis d is missing", d=None)
        with self.assertRaises(protocol.Unsupported):
            axes.Case("gru", self.SOFTMAX)

    def test_axes_are_those_of_wbench(self):
        if not WBENCH:
            self.skipTest("no wbench was named")
        listed = json.loads(subprocess.run([WBENCH, "list", "axes", "--json", "-"], capture_output=True, text=True, timeout=60,
                                           check=True).stdout)
        defaults = {}
        for axis in listed:
            defaults.setdefault(axis["op"], {})[axis["axis"]] = axis["default"]
        self.assertEqual(sorted(defaults), sorted(axes.operations()))
        for op, values in defaults.items():
            with self.subTest(op=op):
                axes.Case(op, values)  # refuses an axis that is new


def python_with_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


class TorchTest(unittest.TestCase):
    """On small cases of the CPU: wide wrote what it was given and expects."""
    OPS = {"linear": "--batch 3 --d 32", "embedding": "--batch 2 --seq 3 --vocab 7 --dim 8 --ids own --fill uniform",
           "conv1d": "--batch 2 --channels 4 --length 9",
           "conv3d": "--batch 2 --channels 4 --depth 3 --height 4 --width 5 --kernel_depth 2 --layout last --residual before",
           "flash_attention": "--batch 2 --seq 5 --heads 2 --head_dim 8 --causal yes",
           "ensemble": "--batch 3 --d 8 --mask some --function mean"}

    @classmethod
    def setUpClass(cls):
        if not WBENCH:
            raise unittest.SkipTest("no wbench was named")
        cls.python = python_with_torch()
        if cls.python is None:
            raise unittest.SkipTest("no python3 here has torch")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for op, sizes in cls.OPS.items():
            subprocess.run([WBENCH, "verify", "--device", "cpu", "--op", op, "--n", "3", *sizes.split(), "--strategy", "wide",
                            "--save-workspace", f"always:{cls.folder}"], capture_output=True, timeout=60, check=True)

    def peer(self, *arguments, **options):
        return subprocess.run([self.python, str(PEERS / "torch_peer.py"), *map(str, arguments)], capture_output=True, text=True,
                              timeout=120, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, **options)

    def test_strategies_give_what_wide_expects(self):
        result = self.peer("--check", self.folder, "--no-compile")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("6 cases, 0 strategies wrong or failed", result.stdout)
        for name in ("bmm", "offset_ids", "grouped", "stacked_heads", "loop"):
            self.assertRegex(result.stdout, rf"\n  {name} +\S+ +ok")

    def test_what_is_wrong_is_found(self):
        """One member's bias is another's: an error that reading over the table would not show."""
        path = next(self.folder.glob("linear-*"))
        entries, metadata = tensor_file.read(path)
        bias = entries["bias"].data
        size = len(bias) // 3
        bias[:size], bias[size:2 * size] = bias[size:2 * size], bias[:size]
        swapped = self.folder / "swapped"
        swapped.mkdir()
        tensor_file.write(swapped / path.name, entries, metadata)
        result = self.peer("--check", swapped, "--no-compile", "--strategy", "bmm")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"bmm +\S+ +WRONG")

    def test_a_case_is_measured(self):
        path = next(self.folder.glob("linear-*"))
        entries, metadata = tensor_file.read(path)
        words = metadata["reproduce"].split()[4:]
        values = {name[2:]: value for name, value in zip(words[::2], words[1::2]) if name != "--device"}
        got = self.folder / "got.safetensors"
        requests = [HELLO, {**PREPARE, "axes": values, "n": 3, "operands": str(path), "outputs": [[3, 32]] * 3},
                    {"do": "run", "strategy": "bmm", "to": str(got)},
                    {"do": "sampler", "strategy": "bmm", "regime": "cpu", "min_sample_ns": 1e5},
                    {"do": "sample", "sampler": 0}, {"do": "run", "strategy": "bmm", "to": str(got), "sampler": 0},
                    {"do": "sampler", "strategy": "bmm", "regime": "graph", "min_sample_ns": 1e5},
                    {"do": "run", "strategy": "tea"}, {"do": "sample", "sampler": 1}, {"do": "rest"}, {"do": "forget"},
                    {"do": "prepare", **PREPARE, "axes": {**values, "sparsity": "2:4"}, "n": 3, "operands": str(path)}]
        result = self.peer(input="".join(json.dumps(request) + "\n" for request in requests))
        replies = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(len(replies), len(requests), result.stderr)
        self.assertEqual(replies[0]["name"], "torch")
        self.assertIn("bmm", [strategy["name"] for strategy in replies[1]["strategies"]])
        self.assertEqual((replies[3]["timer"], replies[3]["sampler"]), ("host", 0))
        self.assertEqual(replies[3]["calls_run_per_sample"], replies[3]["iters_per_sample"])
        self.assertGreater(replies[4]["time_ns"], 0)
        self.assertEqual(tensor_file.read(got)[0]["got"].shape, (3, 3, 32))
        kinds = [replies[i].get("kind") for i in (6, 7, 8, 11)]
        self.assertEqual(kinds, ["unsupported", "failed", "failed", "unsupported"])
        self.assertIn("expected one of loop", replies[7]["error"])
        self.assertIn("sparsity", replies[11]["error"])


if __name__ == "__main__":
    WBENCH = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
    unittest.main()
