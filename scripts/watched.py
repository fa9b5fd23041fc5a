# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Runs wbench on a device on which it may hang."""
import os
import signal
import subprocess
import time

NOT_RUN = "not run: the device failed before"  # wbench's message for the cases after a lost device
FIRST_CALLS_S = 15  # that a device's first calls may take, without another case
POLL_S = 0.05
TO_WRITE_S = 5  # time for an interrupted process to write what it has
TO_END_S = 3  # for a killed process: a driver may hold it forever


def reached(cases):
    """Those that a lost device did not leave out."""
    return [case for case in cases if not (case.get("reason") or "").startswith(NOT_RUN)]


def stall_s_of(seconds):
    """How long a process that has these seconds may begin no further case."""
    return max(seconds / 4, FIRST_CALLS_S)


def run_watched(command, log_path, seconds, stall_s, *, begin_s=None, to_write_s=None):
    """The exit code of `command`, whose output is appended to a file; negative if it was killed. It is interrupted after this many
    seconds, or if it was silent for stall_s (before its first output: begin_s), and killed if that does not end it."""
    with open(log_path, "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    if not has_ended(process, log_path, seconds, stall_s, stall_s if begin_s is None else begin_s):
        end(process, signal.SIGINT, TO_WRITE_S if to_write_s is None else to_write_s)
        if process.returncode is None:
            end(process, signal.SIGKILL, TO_END_S)
    return -signal.SIGKILL if process.returncode is None else process.returncode


def has_ended(process, log_path, seconds, stall_s, begin_s):
    """Waits; False if there is nothing more to wait for."""
    begin = time.monotonic()
    said, stop, stalls = os.path.getsize(log_path), begin + seconds, begin + begin_s
    while process.poll() is None:
        now, size = time.monotonic(), os.path.getsize(log_path)
        if size != said:
            said, stalls = size, now + stall_s
        if now >= min(stop, stalls):
            return False
        time.sleep(POLL_S)
    return True


def end(process, by, seconds):
    process.send_signal(by)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass
