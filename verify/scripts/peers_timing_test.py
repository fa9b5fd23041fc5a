#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""How torch_peer.py times CUDA, on a made-up machine: a host and a device with clocks of their own, so that every
time that comes out is known before. Needs neither torch nor a GPU."""
import contextlib
import math
import pathlib
import sys
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/peers"))
sys.dont_write_bytecode = True


class Machine:
    """One stream. Times in ns."""
    LAUNCH, REPLAY, RECORD, CYCLES_PER_NS = 5_000, 15_000, 1_000, 2.0

    def __init__(self):
        self.host = self.free = 0
        self.capturing = None
        self.is_cold = False
        self.log = []  # what the stream was given, and when each of it ended

    def launch(self, duration, effect=lambda: None, name="kernel"):
        if self.capturing is not None:
            self.capturing.append((duration, effect))
            return
        self.host += self.LAUNCH
        self.free = max(self.free, self.host) + duration
        self.log.append((name, self.free))
        effect()

    def synchronize(self):
        if self.capturing is not None:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nmore")
        self.host = max(self.host, self.free)


class Event:
    def __init__(self, enable_timing):
        self.at = None

    def record(self):
        machine.host += machine.RECORD
        self.at = max(machine.free, machine.host)
        machine.log.append(("event", self.at))

    def synchronize(self):
        machine.host = max(machine.host, self.at)

    def elapsed_time(self, end):
        return (end.at - self.at) / 1e6


class Tensor:
    """A result, or what a flush reads."""

    def __init__(self, num_bytes=0):
        self.num_bytes, self.value = num_bytes, 0.0

    def is_floating_point(self):
        return True

    def fill_(self, value):
        def effect():
            self.value = value
        machine.launch(0, effect, "fill")


def read_all(tensor, dim, out):
    def effect():
        machine.is_cold = True
    machine.launch(tensor.num_bytes // 1000, effect, "flush")


class CudaGraph:
    def __init__(self):
        self.nodes = []

    def replay(self):
        machine.host += machine.REPLAY
        machine.free = max(machine.free, machine.host)
        for duration, effect in self.nodes:
            machine.free += duration
            effect()


@contextlib.contextmanager
def capture(graph):
    machine.capturing = graph.nodes
    try:
        yield
    except RuntimeError:
        raise RuntimeError("CUDA error: operation failed due to a previous error during capture")
    finally:
        machine.capturing = None


def made_up_torch():
    torch = types.ModuleType("torch")
    stream = types.SimpleNamespace(wait_stream=lambda other: None)
    torch.Tensor, torch.int32, torch.int64, torch.__version__ = Tensor, "int32", "int64", "1.13"
    torch.inference_mode = contextlib.nullcontext
    torch.zeros = lambda count, dtype, device: Tensor(4 * count if count else 0)
    torch.sum = read_all
    torch.cuda = types.SimpleNamespace(
        Event=Event, CUDAGraph=CudaGraph, graph=capture, Stream=lambda: stream, current_stream=lambda: stream,
        stream=lambda s: contextlib.nullcontext(), synchronize=lambda: machine.synchronize(),
        _sleep=lambda cycles: machine.launch(cycles / machine.CYCLES_PER_NS, name="hold"))
    return torch


machine = Machine()
sys.modules["torch"] = made_up_torch()

import protocol  # noqa: E402
import strategies  # noqa: E402
import timing  # noqa: E402
import torch_peer  # noqa: E402

timing.time = types.SimpleNamespace(perf_counter_ns=lambda: machine.host, perf_counter=lambda: machine.host / 1e9)


class TimingTest(unittest.TestCase):
    FLUSH = 100_000_000
    LEAST_NS = 200_000

    def setUp(self):
        machine.__init__()

    def sampler(self, regime, call, n=2, **request):
        calls = call if isinstance(call, list) else [call]
        return timing.make_sampler(calls, {"regime": regime, "min_sample_ns": self.LEAST_NS, **request}, "cuda:0", n, self.FLUSH)

    @staticmethod
    def kernels(duration, count=2, cold_duration=None):
        """A call of some launches, whose result is 1."""
        def call():
            result = Tensor()
            is_cold, machine.is_cold = machine.is_cold and machine.capturing is None, False
            for _ in range(count):
                def effect():
                    result.value = 1.0
                machine.launch(cold_duration if is_cold else duration, effect)
            return result
        return call

    def test_stream_has_the_slower_of_host_and_device(self):
        for duration, expected in ((100, 2 * Machine.LAUNCH), (50_000, 100_000)):
            sampler = self.sampler("stream", self.kernels(duration))
            self.assertGreaterEqual(sampler.iters * expected, self.LEAST_NS)
            self.assertAlmostEqual(sampler.sample() / expected, 1, delta=0.15)  # the first launch is seen once
            self.assertEqual((sampler.timer, sampler.result.value), ("event", 1.0))

    def test_graph_hides_the_host_and_lasts_long_enough(self):
        sampler = self.sampler("graph", self.kernels(700))
        self.assertAlmostEqual(sampler.sample(), 1400, delta=1)  # nor is a replay's launch seen, as in wbench's own
        self.assertGreaterEqual(sampler.sample() * sampler.iters, self.LEAST_NS)
        self.assertEqual((sampler.timer, sampler.result.value), ("graph", 1.0))

    def test_a_sample_lasts_as_long_as_it_is_told_to(self):
        for least in (50_000, 1_000_000):
            for regime in ("stream", "graph"):
                sampler = self.sampler(regime, self.kernels(6_000), min_sample_ns=least)
                self.assertAlmostEqual(sampler.iters * 12_000 / least, 1, delta=0.35, msg=regime)

    def test_what_a_sample_runs_is_what_it_says(self):
        ran = []
        for regime in ("cpu", "stream", "graph"):
            def call():
                machine.launch(50_000, lambda: ran.append(regime))
                return Tensor()
            sampler = self.sampler(regime, call)
            before = len(ran)
            sampler.sample()
            self.assertEqual(len(ran) - before, sampler.calls_run, regime)
        self.assertEqual(sampler.calls_run, 2 * sampler.iters)
        self.assertEqual(self.sampler("cold", self.kernels(300, cold_duration=900)).calls_run, 0)  # the flush draws more

    def test_the_reply_says_what_a_sample_runs(self):
        peer = torch_peer.TorchPeer(types.SimpleNamespace(compile_mode=None, strategy=None, no_compile=True))
        call = self.kernels(50_000, cold_duration=90_000)
        peer.device, peer._n, peer._flush_bytes = "cuda:0", 2, self.FLUSH
        peer._strategies = {"loop": types.SimpleNamespace(context=contextlib.nullcontext, calls=lambda count: [call] * count)}
        for regime, times in (("cpu", 1), ("stream", 1), ("graph", 2), ("cold", 0)):
            reply = peer.sampler({"strategy": "loop", "regime": regime, "min_sample_ns": self.LEAST_NS})
            self.assertEqual(reply["calls_run_per_sample"], times * reply["iters_per_sample"], regime)

    def test_graph_has_a_bounded_number_of_launches(self):
        sampler = self.sampler("graph", self.kernels(0.5, count=512), n=512)
        self.assertEqual(sampler.iters, 8192 // 512)

    def test_an_output_that_no_replay_writes_is_nan(self):
        kept = Tensor()
        kept.value = 1.0
        def call():
            machine.launch(50_000)
            return [kept]
        sampler = self.sampler("graph", call)
        sampler.sample()
        self.assertTrue(math.isnan(sampler.result[0].value))

    def test_what_cannot_be_captured_is_unsupported(self):
        def call():
            machine.launch(1000)
            machine.synchronize()
        with self.assertRaisesRegex(protocol.Unsupported, "not permitted when stream is capturing$"):
            self.sampler("graph", call)

    def test_cold_is_the_device_alone_behind_a_flush(self):
        for count in (1, 30):  # 30 launches are longer on the host than on the device
            sampler = self.sampler("cold", self.kernels(300, count, cold_duration=900))
            self.assertAlmostEqual(sampler.sample(), 900 * count, delta=1)
            self.assertEqual((sampler.iters, sampler.result.value), (1, 1.0))
            self.assertGreater(sampler.hold_ns, count * Machine.LAUNCH)

    def test_a_cold_call_begins_as_the_flush_ends(self):
        for count in (1, 30):
            sampler = self.sampler("cold", self.kernels(300, count, cold_duration=900))
            machine.log.clear()
            sampler.sample()
            names, ends = zip(*machine.log)
            self.assertEqual(names, ("hold", "flush", "event") + ("kernel",) * count + ("event",))  # as wbench's own
            flushed, begun, first = ends[1:4]
            self.assertEqual((begun, first), (flushed, flushed + 900))

    def test_a_call_that_becomes_slower_to_enqueue_is_taken_again(self):
        count = [2]
        def call():
            return self.kernels(300, count[0], cold_duration=900)()
        sampler = self.sampler("cold", call)
        count[0] = 60
        self.assertAlmostEqual(sampler.sample(), 900 * 60, delta=1)

    def test_a_call_that_waits_for_the_device_is_never_cold(self):
        def call():
            machine.launch(300)
            machine.synchronize()
        with self.assertRaisesRegex(protocol.Unsupported, "waits for the device"):
            self.sampler("cold", call)

    @staticmethod
    def calls_on_copies(count, duration, taken):
        """Calls that add the number of their copy to `taken`."""
        def call_on(copy):
            def call():
                result = Tensor()
                def effect():
                    taken.append(copy)
                    result.value = 1.0
                machine.launch(duration, effect)
                return result
            return call
        return [call_on(copy) for copy in range(count)]

    def test_short_cold_calls_follow_a_flush_each_on_a_copy_of_its_own(self):
        taken = []
        for copies, duration, iters in ((300, 900, 223), (5, 900, 5), (7, 500_000, 2)):
            sampler = self.sampler("cold", self.calls_on_copies(copies, duration, taken), cache="flush", copies=copies)
            self.assertEqual((sampler.timer, sampler.iters, sampler.calls_run), ("graph", iters, 0))
            taken.clear()
            machine.log.clear()
            sampler.result.value = 0.0
            self.assertAlmostEqual(sampler.sample(), duration, delta=1)
            self.assertEqual(taken, list(range(iters)))
            names, ends = zip(*machine.log)
            self.assertEqual(names, ("fill", "hold", "flush", "event", "event"))
            self.assertEqual(ends[3], ends[2])  # the graph begins as the flush ends
            self.assertEqual(sampler.result.value, 1.0)

    def test_a_cold_graph_that_does_not_write_its_output_leaves_nan(self):
        kept = Tensor()
        def call():
            machine.launch(900)
            return kept
        sampler = self.sampler("cold", [call] * 3)
        sampler.sample()
        self.assertTrue(math.isnan(sampler.result.value))

    def test_a_rotating_sample_takes_every_copy_equally_often(self):
        taken = []
        for copies, launches in ((7, 1), (300, 50)):  # the latter are more launches than other graphs have
            calls = self.calls_on_copies(copies, 900, taken)
            sampler = self.sampler("cold", calls, launches, cache="rotate", copies=copies)
            self.assertEqual((sampler.timer, sampler.iters % copies), ("graph", 0))
            taken.clear()
            self.assertAlmostEqual(sampler.sample(), 900, delta=1)
            self.assertEqual({taken.count(copy) for copy in range(copies)}, {sampler.calls_run // copies})
            self.assertTrue(all(after == (before + 1) % copies for before, after in zip(taken, taken[1:])))
            self.assertEqual(sampler.result.value, 1.0)

    def test_only_cold_calls_have_copies(self):
        self.assertEqual([timing.copies_in({"regime": regime, "copies": 7}) for regime in ("cold", "graph")], [7, 1])
        self.assertEqual(timing.copies_in({"regime": "cold"}), 1)

    def test_cpu_is_what_enqueueing_costs(self):
        sampler = self.sampler("cpu", self.kernels(1_000_000))
        self.assertEqual(sampler.sample(), 2 * Machine.LAUNCH)
        self.assertGreaterEqual(sampler.iters * 2 * Machine.LAUNCH, self.LEAST_NS)

    def test_regimes_that_are_not_there(self):
        call = self.kernels(1000)
        for regime, words, request in (("rotate", "regime rotate", {}), ("cold", "cache warm", {"cache": "warm"})):
            with self.assertRaisesRegex(protocol.Unsupported, words):
                self.sampler(regime, call, **request)
        with self.assertRaisesRegex(protocol.Unsupported, "the device is the CPU"):
            timing.make_sampler([call], {"regime": "graph", "min_sample_ns": 1}, "cpu", 2, 0)
        with self.assertRaisesRegex(protocol.Unsupported, "flush_bytes is 0"):
            timing.make_sampler([call], {"regime": "cold", "min_sample_ns": 1}, "cuda", 2, 0)


class Storage:
    def data_ptr(self):
        return id(self)

    def clone(self):
        return Storage()


class Placed(Tensor):
    """A tensor that is nothing but where it lies."""
    dtype, device = "float32", "cuda:0"

    def __init__(self, storage=None, offset=0, size=(), stride=()):
        super().__init__()
        self.set_(storage, offset, size, stride)

    def set_(self, storage, offset, size, stride):
        self.storage, self.place = storage, (offset, size, stride)
        return self

    def untyped_storage(self):
        return self.storage

    def storage_offset(self):
        return self.place[0]

    def size(self):
        return self.place[1]

    def stride(self):
        return self.place[2]


class CopiesTest(unittest.TestCase):
    def calls(self, operands, count, tensor=Placed):
        """The operands of each call, as it was made with them."""
        with unittest.mock.patch.multiple(strategies.torch, create=True, Tensor=tensor,
                                          empty=lambda count, dtype, device: Placed()):
            made = strategies.Strategy("loop", "", lambda: (lambda *given: given, operands), None)
            return [call() for call in made.calls(count)]

    def test_each_call_has_operands_of_its_own_laid_out_alike(self):
        whole = Storage()
        x, w = Placed(whole, 0, (2, 3), (8, 1)), Placed(whole, 3, (2, 3), (8, 1))  # two members side by side
        first, *others = self.calls(({"x": x}, [w], None, 7), 3)
        self.assertEqual((first[0]["x"], first[1][0]), (x, w))
        storages = {id(whole)}
        for given, (w_copy,), none, number in others:
            self.assertEqual((given["x"].place, w_copy.place, none, number), (x.place, w.place, None, 7))
            self.assertIs(given["x"].storage, w_copy.storage)  # what shares memory shares it again
            storages.add(id(w_copy.storage))
        self.assertEqual(len(storages), 3)

    def test_a_torch_that_cannot_say_where_tensors_lie_does_not_rotate(self):
        self.assertEqual(len(self.calls((Tensor(),), 1, Tensor)), 1)
        with self.assertRaisesRegex(protocol.Unsupported, "torch 1.13 cannot copy operands as they lie"):
            self.calls((Tensor(),), 2, Tensor)


if __name__ == "__main__":
    unittest.main()
