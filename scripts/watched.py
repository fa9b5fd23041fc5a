# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Runs wbench on a device on which it may hang."""
import os
import signal
import subprocess
import time

POLL_S = 0.05
TO_WRITE_S = 5  # what is interrupted has them to write what it has
TO_END_S = 3  # what is killed: a driver may hold it for good


def run_watched(command, log_path, seconds, stall_s):
    """The exit code of `command`, whose output goes to the end of a file; negative where it was killed. It is interrupted after so many
    seconds, or where it has said nothing for stall_s, and killed where that does not end it."""
    with open(log_path, "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    if not has_ended(process, log_path, seconds, stall_s):
        end(process, signal.SIGINT, TO_WRITE_S)
        if process.returncode is None:
            end(process, signal.SIGKILL, TO_END_S)
    return -signal.SIGKILL if process.returncode is None else process.returncode


def has_ended(process, log_path, seconds, stall_s):
    """Waits; False where there is nothing more to wait for."""
    stop = time.monotonic() + seconds
    said, stalls = -1, stop
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
