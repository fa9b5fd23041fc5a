# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""The strategies that hang, crash or lose the device, for the parts of gpu_check that come after the one that found out."""
import json
import threading


class Lost:
    """A file of {"OP/STRATEGY": {"why": .., "suspicion": ..}}, which holds for one wbench: a later one starts anew. The suspicion is a
    run that would confirm it; none if it is certain."""

    def __init__(self, path, wbench):
        self.path, self.lock = path, threading.Lock()
        is_its_own = path.exists() and path.stat().st_mtime_ns > wbench.stat().st_mtime_ns
        self.found = json.loads(path.read_text()) if is_its_own else {}

    def add(self, op, strategy, why, suspicion=None):
        self.write(f"{op}/{strategy}", {"why": why, "suspicion": suspicion})

    def acquit(self, op, strategy):
        self.write(f"{op}/{strategy}", None)

    def write(self, name, entry):
        with self.lock:
            self.found = {key: value for key, value in self.found.items() if key != name} | ({name: entry} if entry else {})
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.found, indent=1) + "\n")
            part.replace(self.path)

    def of(self, op):
        """Its lost strategies, whether certain or not."""
        return [name.partition("/")[2] for name in self.found if name.partition("/")[0] == op]

    def is_certain(self, op, strategy):
        return f"{op}/{strategy}" in self.found and not self.suspicions(op, strategy)

    def suspicions(self, op, strategy):
        """None or one."""
        suspicion = self.found.get(f"{op}/{strategy}", {}).get("suspicion")
        return [suspicion] if suspicion else []

    def skip(self, op):
        """Words for wbench, so that it leaves them out."""
        return ["--skip", ",".join(self.of(op))] if self.of(op) else []
