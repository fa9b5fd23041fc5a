#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a peer of wbench (README.md).

wbench starts it: wbench run --peer "python3 scripts/peers/torch_peer.py". By hand:
  torch_peer.py --check FOLDER   computes what `wbench verify --save-workspace always:FOLDER` wrote, by every
                                 strategy, and compares with what wide expects; exit code 1 if something is wrong
"""
import argparse
import contextlib
import gc
import sys

from protocol import PROTOCOL, PeerError, Unsupported, keep_memory, private_stdout, rest_threads, serve


def _parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile-mode", help="of torch.compile; else max-autotune-no-cudagraphs on CUDA, default on the CPU")
    parser.add_argument("--check", metavar="FOLDER", help="of files that wbench saved")
    parser.add_argument("--device", default="cpu", help="of --check: cpu, cuda:0")
    parser.add_argument("--strategy", help="only those whose names contain this")
    parser.add_argument("--op", help="of --check: this primitive only")
    parser.add_argument("--no-compile", action="store_true", help="leave compiled strategies out")
    return parser.parse_args()


class TorchPeer:
    def __init__(self, arguments):
        import torch  # importing it late: usage needs no torch
        self.torch = torch
        self._compile_mode = arguments.compile_mode
        self._name, self._compiles = arguments.strategy or "", not arguments.no_compile
        self.device = "cpu"
        self._close()

    def _close(self):
        self._strategies, self._samplers, self._shapes = {}, [], []
        self._operands = self._type = self._op = None

    def hello(self, request):
        torch, device = self.torch, request["device"]
        if device.startswith("cuda"):
            if not torch.cuda.is_available():
                raise Unsupported(f"torch {torch.__version__} finds no CUDA device")
            torch.cuda.set_device(device)
        elif device != "cpu":
            raise Unsupported(f"device {device}, expected cpu or cuda:NUMBER")
        self.device = device
        keep_memory()
        torch.set_num_threads(max(1, request["threads"]))
        for dtype in ("fp16", "bf16"):
            with contextlib.suppress(AssertionError, AttributeError):  # 1.13 has only the first
                setattr(torch.backends.cuda.matmul, f"allow_{dtype}_reduced_precision_reduction", False)
        torch.backends.cudnn.benchmark = True  # its fastest algorithm, found before timing
        gc.disable()  # collected between cases
        version = f"{torch.__version__}"
        if device != "cpu" and torch.backends.cudnn.is_available():
            number = torch.backends.cudnn.version()
            major = 10000 if number >= 90000 else 1000
            version += f", cuDNN {number // major}.{number % major // 100}.{number % 100}"
        return {"protocol": PROTOCOL, "name": "torch", "version": version}

    def prepare(self, request):
        import operands
        from axes import Case
        from operations import family_of
        from strategies import Maker
        torch = self.torch
        case = Case(request["op"], request["axes"])
        if case.n != request["n"]:
            raise PeerError(f"n is {request['n']}, and axis n {case.n}")
        allows_tf32 = case.get("tf32") == "yes"
        torch.set_float32_matmul_precision("high" if allows_tf32 else "highest")
        torch.backends.cudnn.allow_tf32 = allows_tf32
        self._close()
        self._op, self._shapes, self._flush_bytes = case.op, request["outputs"], request["flush_bytes"]
        mode = self._compile_mode or ("default" if self.device == "cpu" else "max-autotune-no-cudagraphs")
        with torch.inference_mode():
            tensors, _ = operands.load(request["operands"], self.device)
            family = family_of(case, tensors, [tuple(shape) for shape in request["outputs"]])
            self._dtype, self._type = operands.OF_AXIS[family.dtype or case["dtype"]]
            self._n = case.n
            self._strategies = {s.name: s for s in Maker(family, mode).strategies() if self._is_wanted(s.name)}
        return {"strategies": [{"name": s.name, "unsupported": s.unsupported} if s.unsupported
                               else {"name": s.name, "explain": s.explain} for s in self._strategies.values()]}

    def _is_wanted(self, name):
        return self._name in name and (self._compiles or not name.startswith("compile_"))

    def _strategy(self, request):
        if request["strategy"] not in self._strategies:
            raise PeerError(f"{self._op}: strategy is {request['strategy']}, expected one of {', '.join(self._strategies)}")
        return self._strategies[request["strategy"]]

    def _sampler(self, request):
        number = request["sampler"]
        if not 0 <= number < len(self._samplers):
            raise PeerError(f"sampler is {number}, expected one of the {len(self._samplers)} of this case")
        return self._samplers[number]

    def members_of(self, request):
        """The result of a strategy, as `run` writes it."""
        import operands
        strategy = self._strategy(request)
        with self.torch.inference_mode(), strategy.context():
            if "sampler" in request:
                owner, sampler = self._sampler(request)
                if owner is not strategy:
                    raise PeerError(f"sampler {request['sampler']} is {owner.name}'s, strategy is {strategy.name}")
                sampler.sample()
                result = sampler.result
            else:
                result = strategy.call()()
            self._synchronize()
            return operands.as_members(strategy.members(result), self._shapes, self._dtype)

    def run(self, request):
        import operands
        members = self.members_of(request)
        if "to" in request:
            operands.save(request["to"], members, self._type)
        return {}

    def sampler(self, request):
        from timing import copies_in, make_sampler
        strategy = self._strategy(request)
        with self.torch.inference_mode(), strategy.context():
            made = make_sampler(strategy.calls(copies_in(request)), request, self.device, self._n, self._flush_bytes)
        self._samplers.append((strategy, made))
        reply = {"sampler": len(self._samplers) - 1, "timer": made.timer, "iters_per_sample": made.iters,
                 "calls_run_per_sample": made.calls_run, "expected_sample_s": made.expected_sample_s}
        if hasattr(made, "hold_ns"):
            reply["held_ns"] = made.hold_ns
        return reply

    def sample(self, request):
        strategy, sampler = self._sampler(request)
        with self.torch.inference_mode(), strategy.context():
            return {"time_ns": sampler.sample()}

    def rest(self, _):
        self._synchronize()
        rest_threads()
        return {}

    def forget(self, _):
        self._close()
        if hasattr(self.torch, "_dynamo"):
            self.torch._dynamo.reset()
        gc.collect()
        if self.device != "cpu":
            self._synchronize()
            self.torch.cuda.empty_cache()
        return {}

    def _synchronize(self):
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def kind_of(self, error):
        """Classifies torch's exceptions: out of memory, device errors, or unsupported."""
        if isinstance(error, self.torch.cuda.OutOfMemoryError) or isinstance(error, MemoryError):
            return "oom"
        if isinstance(error, RuntimeError) and ("out of memory" in str(error) or "can't allocate memory" in str(error)):
            return "oom"
        if type(error).__name__ in ("AcceleratorError", "CudaError") or "CUDA error" in str(error):
            return "failed"
        return "unsupported" if isinstance(error, (RuntimeError, NotImplementedError, ValueError, IndexError)) else "failed"

    def is_lost(self):
        """Whether the device no longer answers: after some CUDA errors a process cannot continue."""
        try:
            self._synchronize()
        except RuntimeError:
            return True
        return False


def main():
    arguments = _parse_arguments()
    if arguments.check:
        from check import check_folder
        return check_folder(TorchPeer(arguments), arguments)
    replies = private_stdout()
    serve(TorchPeer(arguments), sys.stdin, replies)
    return 0


if __name__ == "__main__":
    sys.exit(main())
