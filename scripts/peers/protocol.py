# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""The loop of a peer of wbench: a JSON object per line in, one out (README.md). Independent of frameworks.

A peer is an object with a method for each `do`: hello, prepare, run, sampler, sample, rest, forget. Each takes
the request and returns the reply. `kind_of(error)` classifies an exception of the framework: a kind, or
None; `is_lost()` returns whether this process has become useless. Both are optional.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import sys
import threading
import time
import traceback

PROTOCOL = "wbench.peer 1"
KINDS = ("unsupported", "oom", "failed")

_NUMBER = (int, float)
# Required fields of a request. Optional ones are up to the peer.
_FIELDS = {
    "hello": {"protocol": str, "device": str, "threads": int},
    "prepare": {"op": str, "axes": dict, "n": int, "operands": str, "outputs": list, "flush_bytes": int},
    "run": {"strategy": str},
    "sampler": {"strategy": str, "regime": str, "min_sample_ns": _NUMBER},
    "sample": {"sampler": int},
    "rest": {},
    "forget": {},
}


class PeerError(Exception):
    """The contents of a reply's `error` and `kind`."""

    def __init__(self, message, kind="failed"):
        super().__init__(message)
        self.kind = kind


class Unsupported(PeerError):
    """What this framework, version or device lacks, or cannot express."""

    def __init__(self, message):
        super().__init__(message, "unsupported")


def keep_memory():
    """What a call frees serves the next one, as in an engine's arena. glibc would return large outputs to the kernel, and
    the clearing of new pages, which can take longer than the call, would be taken for the framework's work."""
    mmap_max, trim_threshold = -4, -1
    with contextlib.suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(mmap_max, 0)
        libc.mallopt(trim_threshold, -1)


def rest_threads(limit_s=1.0):
    """Waits until no other thread of this process runs: those of a parallel region spin on for a while. Their CPU
    time would not show that: it is counted in ticks of about 4 ms."""
    end = time.monotonic() + limit_s
    while _other_threads_run() and time.monotonic() < end:
        time.sleep(0.0005)


def _other_threads_run():
    own = threading.get_native_id()
    for task in pathlib.Path("/proc/self/task").glob("*"):  # empty if there is no such folder
        try:
            fields = (task / "stat").read_text()
        except OSError:  # it has ended
            continue
        if int(task.name) != own and fields[fields.rindex(")") + 2] == "R":
            return True
    return False


class Session:
    """The allowed order of requests: hello first, then case after case."""

    def __init__(self, peer):
        self.peer = peer
        self.is_greeted = False
        self.has_case = False

    def answer(self, line):
        request = _parse(line)
        do = request["do"]
        if do == "hello":
            self._check_protocol(request["protocol"])
        elif not self.is_greeted:
            raise PeerError(f"{do} came first, expected hello")
        if do == "prepare" and self.has_case:
            raise PeerError("prepare came while a case is open, expected forget")
        if do in ("run", "sampler", "sample") and not self.has_case:
            raise PeerError(f"{do} came without a case, expected prepare")
        if do == "forget":
            self.has_case = False
        reply = getattr(self.peer, do)(request)
        if do == "hello":
            self.is_greeted = True
        if do == "prepare":
            self.has_case = True
        return reply

    @staticmethod
    def _check_protocol(protocol):
        if protocol != PROTOCOL:
            raise PeerError(f"protocol is {protocol!r}, expected {PROTOCOL!r}")


def _parse(line):
    try:
        request = json.loads(line)
    except ValueError as error:
        raise PeerError(f"request is no JSON: {error}") from None
    if not isinstance(request, dict):
        raise PeerError(f"request is {line.strip()[:80]}, expected an object")
    do = request.get("do")
    if not isinstance(do, str) or do not in _FIELDS:
        raise PeerError(f"do is {do!r}, expected one of {', '.join(_FIELDS)}")
    for field, kind in _FIELDS[do].items():
        value = request.get(field)
        if not isinstance(value, kind) or isinstance(value, bool):
            expected = "a number" if kind in (int, _NUMBER) else f"a JSON {kind.__name__}"
            raise PeerError(f"{do}: {field} is {json.dumps(value)[:80]}, expected {expected}")
    return request


def _error_reply(peer, error):
    if isinstance(error, PeerError):
        kind = error.kind
    else:
        kind = getattr(peer, "kind_of", lambda _: None)(error) or "failed"
        if kind == "failed":  # a defect, or the device's: shown to the user
            traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    text = in_short(error)
    if not isinstance(error, PeerError):
        text = f"{type(error).__name__}: {text}"
    return {"error": text, "kind": kind}


def in_short(error, limit=400):
    """One line: the beginning of compilers' messages, and what they call an error."""
    lines = [" ".join(line.split()) for line in str(error).strip().splitlines()]
    found = [line for line in lines[1:] if "error:" in line]
    text = "; ".join(([lines[0]] if lines else []) + found[:1]) if found else " ".join(filter(None, lines))
    return text[:limit] or "no message"


def private_stdout():
    """Reserves standard output for replies; everything else, also from C and child processes, goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return replies


def serve(peer, requests, replies):
    """Runs until `requests` ends or the peer is lost. Every line is answered by one line, whatever it contains."""
    session = Session(peer)
    for line in requests:
        if not line.strip():
            continue
        is_lost = False
        try:
            reply = json.dumps(session.answer(line), allow_nan=False)
        except Exception as error:  # all of them belong into a reply
            reply = json.dumps(_error_reply(peer, error))
            is_lost = not isinstance(error, PeerError) and getattr(peer, "is_lost", lambda: False)()
        replies.write(reply + "\n")
        replies.flush()
        if is_lost:  # wbench starts another
            return
