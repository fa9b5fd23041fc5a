#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""sources.py BUILD OPTIONS PROGRAM...: what each program of verify/ is built from, a line "PROGRAM SHA256" each.

That is OPTIONS, CMake's options that change its code; all of the library and of verify/support; and from verify/ and bench/
what its own file includes, as Ninja recorded it: changes of other measuring code do not matter. Without a record, everything.
"""
import collections
import hashlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMMON = ("CMakeLists.txt", "CMakePresets.json", "scripts/cmake", "include", "kernels", "host", "verify/support")
READ_BY_COMPILERS = re.compile(r"(.*\.(c|h|cpp|hpp|cu|cuh|cmake|in)|CMake[A-Za-z]*\.(txt|json))")


def sums_in(places):
    """Of the files in a folder that compilers read."""
    files = set()
    for place in places:
        files.update(path for path in (place.rglob("*") if place.is_dir() else [place])
                     if READ_BY_COMPILERS.fullmatch(path.name) and path.is_file())
    return "\n".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.relative_to(ROOT)}" for path in sorted(files))


def included(build, programs):
    """The files of verify/ and bench/ that each program's own file includes."""
    try:
        listing = subprocess.run(["ninja", "-t", "deps"], cwd=build, capture_output=True, text=True, errors="replace").stdout
    except OSError:
        return {}
    found, program = collections.defaultdict(set), None
    for line in listing.splitlines():
        if line.startswith(" "):
            path = (build / line.strip()).resolve()
            if program and (ROOT / "verify" in path.parents or ROOT / "bench" in path.parents):
                found[program].add(path)
        elif line:
            match = re.match(r"verify/CMakeFiles/(\w+)\.dir/\w+/\1\.cpp\.o: ", line)
            program = match[1] if match and match[1] in programs else None
    return found


def main():
    build, options, *programs = sys.argv[1:]
    common = sums_in(ROOT / place for place in COMMON)
    own = included(pathlib.Path(build), programs)
    for program in programs:
        places = own.get(program) or {ROOT / "bench", *(ROOT / "verify").glob(f"*/{program}.cpp"), *(ROOT / "verify").glob("*/*.hpp")}
        made_of = f"{common}\n{sums_in(places)}\n{options} {program}"
        print(program, hashlib.sha256(made_of.encode()).hexdigest())


if __name__ == "__main__":
    main()
