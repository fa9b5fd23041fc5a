# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Nsight Compute's command line, and its output."""
import csv
import glob
import os
import re
import shutil
import subprocess
from typing import NamedTuple

# Why a machine refuses, by a word of ncu's message; nothing here can fix it.
REFUSALS = {
    "ERR_NVGPUCTRPERM": "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): they are for root, in a container with "
                        "CAP_SYS_ADMIN, unless the driver is loaded with NVreg_RestrictProfilingToAdminUsers=0",
    "Profiling is not supported": "this device cannot be profiled (a virtual GPU, or one of a kind that ncu does not know)",
    "esource was unavailable": "another profiler or monitor (DCGM, say) holds the GPU's counters",
}
METRIC = re.compile(r'"?([a-z]\w*__\w+)')


class NotRun(Exception):
    """Why there are no counters on this machine."""


class NcuError(Exception):
    """What went wrong, for the user."""


class Launch(NamedTuple):
    kernel: str
    grid: list
    block: list
    capability: str  # "9.0"
    numbers: dict  # by metric, without its ".sum"; None: ncu gave no number


def find():
    """ncu from PATH, or the newest that NVIDIA's packages installed."""
    installed = sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"))
    path = shutil.which("ncu") or (installed[-1] if installed else None)
    if path is None:
        raise NotRun("Nsight Compute's ncu is neither in PATH nor in /opt/nvidia/nsight-compute")
    return path


def run(words, seconds):
    """What a call of ncu printed on both of its streams, and its exit code."""
    try:  # with this locale the decimal separator is a point
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace", timeout=seconds,
                              stdin=subprocess.DEVNULL, env=os.environ | {"LC_ALL": "C"})
    except subprocess.TimeoutExpired:
        raise NcuError(f"ncu did not end within {seconds:.0f} s") from None
    return done.stdout + "\n" + done.stderr, done.returncode


def version(path):
    match = re.search(r"Version (\S+)", run([path, "--version"], 60)[0])
    return match.group(1) if match else None


def available(path):
    """The names of all metrics of this machine's GPU: those of its counters, and those of instructions' own counts."""
    text, code = run([path, "--query-metrics"], 120)
    lines = text.splitlines() + run([path, "--query-metrics", "--query-metrics-collection", "source"], 120)[0].splitlines()
    names = {match.group(1) for match in map(METRIC.match, lines) if match}
    if code != 0 or not names:
        raise refusal_of(text) or NcuError(f"ncu --query-metrics: exit code {code}, {len(names)} metrics: {last_line(text)}")
    return names


def measure(path, metrics, command, seconds):
    """The kernels that `command` launches between cudaProfilerStart and Stop, in order."""
    text, code = run([path, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--profile-from-start", "off",
                      "--target-processes", "all", "--metrics", ",".join(name + ".sum" for name in metrics), *command], seconds)
    launches = parse(text)
    if not launches or code != 0:
        raise refusal_of(text) or NcuError(f"ncu: exit code {code}, {len(launches)} launches: {last_line(text)}")
    return launches


def parse(text):
    """The launches of a raw page: columns in any order, a line of units, and surrounding output of ncu and the program."""
    header, launches = None, []
    for row in csv.reader(line for line in text.splitlines() if line.startswith('"')):
        if "ID" in row and "Kernel Name" in row:
            header = row
        elif header and len(row) == len(header):
            cells = dict(zip(header, row))
            if cells["ID"].isdigit():  # the line of units has no ID
                launches.append(launch_of(cells))
    return launches


def launch_of(cells):
    numbers = {name.removesuffix(".sum"): number(value) for name, value in cells.items() if name.endswith(".sum")}
    return Launch(cells["Kernel Name"], extents(cells.get("Grid Size", "")), extents(cells.get("Block Size", "")),
                  cells.get("CC", ""), numbers)


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def extents(text):
    return [int(part) for part in re.findall(r"\d+", text)]


def refusal_of(text):
    return next((NotRun(why) for word, why in REFUSALS.items() if word in text), None)


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("==ERROR==")]
    return (errors or lines or ["no output"])[-1]


def base_name(kernel):
    """toy_simt of "void wide::(anonymous namespace)::toy_simt<float, 2>(wide::Params)"."""
    text = kernel.replace("(anonymous namespace)", "").replace("<unnamed>", "")
    return re.split(r"::|\s", re.split(r"[<(]", text)[0].strip())[-1]
