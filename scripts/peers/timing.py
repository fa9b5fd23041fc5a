# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Time of one call, regime by regime. A sampler is made once, where everything warms up, and then sampled."""
import itertools
import math
import statistics
import time

import torch

from protocol import Unsupported

_WARM_UP_CALLS = 3
_WARM_UP_S = 0.3
_LARGEST_COUNT = 1 << 20


def _warm_up(call):
    """Three calls, or fewer if they are long; the last one's result."""
    end = time.perf_counter() + _WARM_UP_S
    for _ in range(_WARM_UP_CALLS):
        result = call()
        if time.perf_counter() > end:
            break
    return result


class Sampler:
    """A call prepared for timing. A sample times `iters` of them, of which sample() returns the time of one."""

    @property
    def calls_run(self):
        """The calls that a sample runs, including untimed ones: its energy is divided by it. 0: not only calls draw energy."""
        return self.iters


class CpuSampler(Sampler):
    """Calls between two readings of the host's clock."""
    timer = "host"

    def __init__(self, call, min_sample_ns):
        self._call = call
        self.result = _warm_up(call)
        self.iters = 1
        while self.iters < _LARGEST_COUNT:
            elapsed = self._take()
            if elapsed >= min_sample_ns:
                break
            self.iters = min(_LARGEST_COUNT, _scaled(self.iters, elapsed, min_sample_ns))
        self.expected_sample_s = elapsed / 1e9

    def _take(self):
        self.result = None
        begin = time.perf_counter_ns()
        for _ in range(self.iters):
            result = self._call()
        elapsed = time.perf_counter_ns() - begin
        self.result = result
        return elapsed

    def sample(self):
        return self._take() / self.iters


class EnqueueSampler(Sampler):
    """What a call costs its host on CUDA: calls between two readings of its clock, in bursts short enough that no
    queue is full; the device catches up between them, untimed."""
    timer = "host"

    def __init__(self, call, min_sample_ns, burst):
        self._call, self._burst = call, burst
        self.result = _warm_up(call)
        elapsed = statistics.median(self._take_burst() for _ in range(3))
        self._bursts = max(1, math.ceil(min_sample_ns / max(elapsed, 1)))
        self.iters = self._burst * self._bursts
        begin = time.perf_counter_ns()
        self.sample()
        self.expected_sample_s = (time.perf_counter_ns() - begin) / 1e9

    def _take_burst(self):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(self._burst):
            result = self._call()
        elapsed = time.perf_counter_ns() - begin
        self.result = result
        return elapsed

    def sample(self):
        elapsed = sum(self._take_burst() for _ in range(self._bursts))
        torch.cuda.synchronize()
        return elapsed / self.iters


def _event():
    return torch.cuda.Event(enable_timing=True)


def _scaled(count, elapsed_ns, wanted_ns):
    """A count that lasts as long as wanted; a little more, and at least one more, so that the search ends."""
    return max(count + 1, math.ceil(count * 1.1 * wanted_ns / max(elapsed_ns, 1)))


class StreamSampler(Sampler):
    """Events around calls that the host launches one after another."""
    timer = "event"

    def __init__(self, call, min_sample_ns):
        self._call = call
        self.result = _warm_up(call)
        self._begin, self._end = _event(), _event()
        self.iters = 1
        while True:
            elapsed = self._take()
            if elapsed >= min_sample_ns or self.iters >= _LARGEST_COUNT:
                break
            self.iters = min(_LARGEST_COUNT, _scaled(self.iters, elapsed, min_sample_ns))
        self.expected_sample_s = elapsed / 1e9

    def _take(self):
        torch.cuda.synchronize()
        self._begin.record()
        for _ in range(self.iters):
            result = self._call()
        self._end.record()
        self._end.synchronize()
        self.result = result
        return self._begin.elapsed_time(self._end) * 1e6

    def sample(self):
        return self._take() / self.iters


def leaves(result):
    """The tensors in a call's result."""
    if isinstance(result, torch.Tensor):
        return [result]
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, (list, tuple)) else []


def _captured(call, count):
    """A graph of `count` calls, and the last one's result."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(count):
                result = call()
    except RuntimeError as error:
        first = error.__context__ or error  # ending a failed capture fails again
        raise Unsupported(f"cannot be captured: {_first_line(first)}") from error
    return graph, result


def _poison(result):
    """Exposes an output that no replay writes."""
    for leaf in leaves(result):
        leaf.fill_(math.nan if leaf.is_floating_point() else 127)


class GraphSampler(Sampler):
    """Replays of a CUDA graph of calls, between events, each after an untimed one: that keeps the device busy while
    the host launches the timed one; on an idle device the time would include that launch."""
    timer = "graph"
    _MOST_LAUNCHES = 8192
    _REPLAYS = 2  # per _take()

    def __init__(self, call, min_sample_ns, launches):
        """`launches`: approximate number per call, which bounds a graph's size."""
        self._call = call
        self._begin, self._end = _event(), _event()
        most = self._rounded(max(1, self._MOST_LAUNCHES // launches))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            _warm_up(call)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.iters = self._rounded(1)
        for _ in range(4):
            self._capture()
            self._take()
            elapsed = statistics.median(self._take() for _ in range(3))
            if elapsed >= min_sample_ns or self.iters == most:
                break
            self.iters = min(most, self._rounded(_scaled(self.iters, elapsed, min_sample_ns)))
        self.expected_sample_s = elapsed / 1e9

    def _rounded(self, iters):
        return iters

    @property
    def calls_run(self):
        return self._REPLAYS * self.iters

    def _capture(self):
        self.result = self._graph = None  # frees its memory first
        self._graph, self.result = _captured(self._call, self.iters)

    def _take(self):
        _poison(self.result)
        torch.cuda.synchronize()
        self._graph.replay()
        self._begin.record()
        self._graph.replay()
        self._end.record()
        self._end.synchronize()
        return self._begin.elapsed_time(self._end) * 1e6

    def sample(self):
        return self._take() / self.iters


class RotatingSampler(GraphSampler):
    """A graph of calls on copies of the operands in turn, each equally often: by the time a copy is used again, the
    others have replaced it in the L2."""

    def __init__(self, calls, min_sample_ns, launches):
        self._copies = len(calls)
        turns = itertools.cycle(calls)
        super().__init__(lambda: next(turns)(), min_sample_ns, launches)

    def _rounded(self, iters):
        return math.ceil(iters / self._copies) * self._copies


class ColdSampler(Sampler):
    """One call directly after a flush of the L2, or a graph of calls on copies of the operands, each of which is taken
    once. Like wbench's own, the flush reads: lines that it had written would be written back at the call's expense. The
    stream is held until all of this is enqueued, so that the host's speed does not affect the time."""
    calls_run = 0  # the flush and the kernel that holds the stream draw more than the calls
    _TRIES = 5
    _MARGIN_NS = 50_000

    def __init__(self, calls, flush_bytes, min_sample_ns, launches):
        self._calls, self._call = calls, calls[0]
        self.iters = self._iters(min_sample_ns, launches)
        self.timer = "graph" if self.iters > 1 else "event"
        self._flush = torch.zeros(max(1, flush_bytes // 4), dtype=torch.int32, device="cuda")
        self._sum = torch.zeros((), dtype=torch.int64, device="cuda")
        torch.sum(self._flush, dim=0, out=self._sum)  # loads its kernel, which is no part of enqueueing
        self._begin, self._end = _event(), _event()
        self.result = _warm_up(self._call)
        if self.iters > 1:
            self._graph, self.result = _captured(self._turns(), self.iters)
            self._call = self._replay
        self._cycles_per_ns = _sleep_cycles_per_ns()
        self.hold_ns = self._MARGIN_NS
        enqueue = max(self._take()[1] for _ in range(_WARM_UP_CALLS))
        self.hold_ns = 2 * enqueue + self._MARGIN_NS
        begin = time.perf_counter_ns()
        self.sample()
        self.expected_sample_s = (time.perf_counter_ns() - begin) / 1e9

    def _iters(self, min_sample_ns, launches):
        """Calls that last long enough, as near as the copies allow; two at least where there are two, as of wbench's own."""
        if len(self._calls) == 1:
            return 1
        once = GraphSampler(self._turns(), min_sample_ns, launches).sample()
        return min(len(self._calls), max(2, math.ceil(min_sample_ns / max(once, 1))))

    def _turns(self):
        turns = itertools.cycle(self._calls)
        return lambda: next(turns)()

    def _replay(self):
        self._graph.replay()
        return self.result

    def _take(self):
        """(device time of the calls, host time of enqueueing)"""
        if self.iters > 1:
            _poison(self.result)
        else:
            self.result = None
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        torch.cuda._sleep(int(self.hold_ns * self._cycles_per_ns))
        torch.sum(self._flush, dim=0, out=self._sum)
        self._begin.record()
        result = self._call()
        self._end.record()
        enqueue = time.perf_counter_ns() - begin
        self._end.synchronize()
        self.result = result
        return self._begin.elapsed_time(self._end) * 1e6, enqueue

    def sample(self):
        # Enqueueing begins before the hold does: if it takes no longer than the hold, the host was ahead.
        for _ in range(self._TRIES):
            device, enqueue = self._take()
            if enqueue < self.hold_ns:
                return device / self.iters
            self.hold_ns = min(2 * enqueue + self._MARGIN_NS, 10**9)
        raise Unsupported(f"a call took {enqueue / 1e3:.0f} us to enqueue however long the stream was held: it waits "
                          "for the device, or has more launches than a queue takes")


def _sleep_cycles_per_ns():
    begin, end = _event(), _event()
    cycles, rates = 2_000_000, []
    for _ in range(3):
        torch.cuda.synchronize()
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        end.synchronize()
        rates.append(cycles / (begin.elapsed_time(end) * 1e6))
    return max(rates)


def _first_line(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def copies_in(request):
    """Of the operands, which the calls of the sampler that is asked for take in turn."""
    return request.get("copies", 1) if request["regime"] == "cold" else 1


def make_sampler(calls, request, device, n, flush_bytes):
    """`calls`: one, or one a copy of the operands where calls take them in turn."""
    call, regime, min_sample_ns = calls[0], request["regime"], request["min_sample_ns"]
    if device == "cpu":
        if regime != "cpu":
            raise Unsupported(f"regime {regime} is CUDA's, the device is the CPU")
        return CpuSampler(call, min_sample_ns)
    if regime == "cpu":
        return EnqueueSampler(call, min_sample_ns, max(1, min(20, 400 // n)))
    if regime == "stream":
        return StreamSampler(call, min_sample_ns)
    if regime == "graph":
        return GraphSampler(call, min_sample_ns, n)
    if regime == "cold":
        if flush_bytes <= 0:
            raise Unsupported("regime cold, and flush_bytes is 0")
        cache = request.get("cache", "flush")
        if cache == "rotate":
            return RotatingSampler(calls, min_sample_ns, n)
        if cache != "flush":
            raise Unsupported(f"cache {cache}, expected flush or rotate")
        return ColdSampler(calls, flush_bytes, min_sample_ns, n)
    raise Unsupported(f"regime {regime}, expected cpu, stream, graph or cold")
