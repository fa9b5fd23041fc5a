# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""gpu_check in a tree of its own, where a GPU is played by stubs in PATH."""
import json
import os
import re
import shutil
import tarfile

from kernel_tree import ROOT, Tree, run

# Of verify, one a primitive; where all are asked for the stubs have one.
NUM_RUNS = sum(len(ops.split(",")) for ops in re.findall(r"(?m)^\w+ --op (\S+)", (ROOT / "scripts/gpu_check.d/verify_runs").read_text()))

SCRIPTS = ("gpu_check", "evidence.py", "vendor_error.py", "lost.py", "watched.py")

# Prints what the tool of that name does.
SANITIZER = """#!/bin/sh
[ "$1" != --version ] || exec echo Version ${SANITIZER_VERSION:-1}
for word; do case $word in */verify/*) program=${word##*/} ;; esac; done
echo "$2 $program${WIDE_TEST_PRIMITIVE:+:$WIDE_TEST_PRIMITIVE}" >>$OUT_LOG
echo "$*" >>$OUT_LOG.options
[ "$2" != racecheck ] || [ -z "$RACE_EXIT" ] || exit $RACE_EXIT
[ "$2" != initcheck ] || [ -z "$READS" ] || cat $READS
[ "$2" != memcheck ] || [ -z "$LEAKS" ] || cat $LEAKS
case $2 in
  racecheck) echo "========= RACECHECK SUMMARY: 9 hazards displayed (${FINDINGS:-0} errors, ${WARNINGS:-0} warnings)" ;;
  *) echo "========= ERROR SUMMARY: ${FINDINGS:-0} errors" ;;
esac
exit ${SANITIZER_EXIT:-0}
"""


# What is in its results is in files of their names, and the events of a sweep are made of them. With words that "broken" holds it
# crashes; a result that "once.json" is, it gives once.
WBENCH = """#!/bin/bash
[ "$1" != list ] || exec cat ROOT/strategies.json
file=result.json verb=$1
[ "$1" != info ] || file=self_check.json
[ "$1" != suite ] || file=suite.json
echo "$*" >>ROOT/words
[ ! -e ROOT/broken ] || [[ $* != *$(<ROOT/broken)* ]] || exit 134
while [ "$1" != --json ]; do
  [ "$1$verb" != --eventsrun ] || python3 ROOT/events.py ROOT/$file >"$2"
  [ "$1" != --results ] || { mkdir -p "$2" && cp ROOT/entries/*.json "$2"; }
  shift
done
[ ! -e ROOT/once.json ] || { mv ROOT/once.json "$2"; exit 1; }
[ ! -e ROOT/samples ] || cp ROOT/samples "$2.samples.f64le"
cp ROOT/$file "$2"
exit ${WBENCH_EXIT:-0}
"""

# The events of a result.
EVENTS = """import json, sys
result = json.load(open(sys.argv[1]))
cases = result.pop("cases", [])
for line in [{"reason": "run-started"}, *({"reason": "case-finished", "case": case} for case in cases), {"reason": "run-finished", "result": result}]:
    print(json.dumps(line))
"""


class GpuCheckCase(Tree):
    """gpu_check in a tree of its own, with stubs for the driver's tool, the sanitizer and wbench."""

    def setUp(self):
        super().setUp()
        for path in (*(ROOT / "scripts/gpu_check.d").iterdir(), *(ROOT / "scripts" / name for name in SCRIPTS)):
            self.put(path.relative_to(ROOT), path.read_text(), 0o755)
        self.put("bin/nvidia-smi", '#!/bin/sh\ncase "$*" in -L) echo GPU 0 ;; *driver*) echo 580.1 ;; *) echo Toy GPU ;; esac\n', 0o755)
        self.put("bin/compute-sanitizer", SANITIZER, 0o755)
        check = {"before": "pass", "elements_compared": 4, "worst_error_ratio": 0.25}
        result = {"schema": {"name": "wbench.result"}, "run": {"complete": True, "exit_code": 0, "tool": {"cuda_toolkit": "13.0"}},
                  "devices": [{"device": "cuda:0", "name": "Toy GPU", "compute_capability": 90, "cuda_driver": 13000}],
                  "cases": [{"op": "toy", "status": "ok", "strategies": [{"name": "simt", "status": "ok", "verify": check},
                                                         {"name": "sequential", "status": "ok", "verify": check}]}]}
        self.put("result.json", json.dumps(result))
        self.put("events.py", EVENTS)
        self.put("self_check.json", json.dumps({"self_check": {"failed": 0, "checks": [{"name": "event_quantum"}]}}))
        self.put("build/bench/wbench", WBENCH.replace("ROOT", str(self.root)), 0o755)
        self.put_strategies(("toy", "simt"), ("toy", "simt"), ("slow", "simt", "cpu"))
        self.put("build/verify/isolation_test", "#!/bin/sh\n", 0o755)

    def put_strategies(self, *listed):
        """What wbench lists: (op, strategy), on CUDA, or (op, strategy, device)."""
        self.put("strategies.json", json.dumps([{"op": op, "strategy": strategy, "device": (*device, "cuda")[0], "kind": "hand_written"}
                                                for op, strategy, *device in listed]))

    def check(self, *parts, **env):
        env = {"OUT_LOG": str(self.root / "sanitized")} | env
        env["PATH"] = f"{self.root}/bin:{os.environ['PATH']}"
        return run(self.root / "scripts/gpu_check", "--out", self.root / "out", "--build", self.root / "build", *parts, **env)

    def still(self):
        """An environment in which time stands still for bash: its SECONDS, once unset, is a variable like others."""
        return {"BASH_ENV": str(self.put("still.sh", "unset SECONDS\nSECONDS=0\n"))}

    def forget(self):
        """What other calls found."""
        for name in ("verify/evidence", "bench/results"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        (self.root / "build/kept.tar.gz").unlink(missing_ok=True)

    def read_evidence(self):
        return json.loads((self.root / "verify/evidence/toy_simt_sm90.json").read_text())

    def in_archive(self, name):
        with tarfile.open(self.root / f"out/{name}.tar.gz") as archive:
            return {member.name for member in archive if not member.isdir()}

    def order(self, *words, **env):
        """The parts of a call, each by its first word about its end."""
        out = self.check(*words, **env).stdout
        return list(dict.fromkeys(re.findall(r"^gpu_check: ([a-z]+): (?:ok|FAILED|not run)", out, re.MULTILINE)))
