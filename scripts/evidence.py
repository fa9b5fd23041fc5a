#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""evidence.py hash|hashes|table|write|status: what real devices have proved about hand-written kernels.

Whether a strategy is verified is derived, never written down: a file in verify/evidence/ counts as
long as its hash fits the kernel's current sources. The hash is over tokens, so that a
comment or a line break does not invalidate it, and over everything the kernel includes, so that a
change in a shared header does.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

sys.dont_write_bytecode = True
import vendor_error  # noqa: E402

SCHEMA = "wide.evidence 1"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
NOTHING_RAN = 6  # wbench's exit code of a run that is for none of this device's strategies
NAME = re.compile(r"[a-z][a-z0-9_]*")
INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">]')
# Primitives that run kernels of another name.
KERNELS_OF = {"batchnorm1d": "batchnorm", "batchnorm2d": "batchnorm",
              "instancenorm1d": "groupnorm", "instancenorm2d": "groupnorm", "conv1d": "conv", "conv2d": "conv",
              "conv3d": "conv"}
# Primitives whose strategies run other primitives' kernels, whichever suit; and single such strategies.
PARTS_OF = {"attention": ("linear", "flash_attention"), ("embedding", "gather"): ("embedding",), ("mlp", "layerwise"): ("linear",),
            ("routed_mlp", "layerwise"): ("routed_linear",), ("routed_mlp", "fused"): ("mlp",),
            ("recurrent", "stepwise"): ("linear",), ("recurrent", "fused"): ("linear",),
            ("conv1d", "pointwise"): ("linear",), ("conv2d", "pointwise"): ("linear",), ("conv3d", "pointwise"): ("linear",),
            # No file has their name, or another one's kernel does what theirs cannot: adds up shares, takes misaligned operands.
            ("linear", "tf32x3"): ("linear",), ("linear", "shared_input"): ("linear",), ("linear", "decoded"): ("linear",), ("linear", "small_m"): ("linear",),
            ("linear", "wgmma"): ("linear",), ("routed_linear", "wgmma"): ("routed_linear",), ("conv1d", "wgmma"): ("conv",), ("conv2d", "wgmma"): ("conv",),
            ("conv3d", "wgmma"): ("conv",),
            ("flash_attention", "wgmma"): ("flash_attention",)}
# What C++ reads as one piece. Literals first, so that "//" inside one is no comment; numbers before
# characters, because 1'000 opens none.
TOKEN = re.compile(r"""
    (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<literal>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<character>'(?:\\.|[^'\\\n])+')
  | (?P<word>\w+)
  | (?P<blank>(?:\s|\\\n)+)
  | (?P<other>.)""", re.VERBOSE | re.DOTALL)


class EvidenceError(Exception):
    """A message for the user."""


def normalized(text):
    """`text` without comments, with blanks only where C++ needs them."""
    out = []
    blank = ""
    in_directive = False
    for match in TOKEN.finditer(text):
        kind, token = match.lastgroup, match.group()
        if kind in ("comment", "blank"):
            # The end of a line ends a directive, and has a meaning only there.
            ends_line = kind == "blank" and "\n" in token.replace("\\\n", "")
            blank = "\n" if ends_line or blank == "\n" else " "
            continue
        starts_line = not out or blank == "\n"
        is_directive = starts_line and token == "#" and kind == "other"
        previous = out[-1] if out else ""
        if out and blank == "\n" and (in_directive or is_directive):
            out.append("\n")
            in_directive = False
        elif blank and previous and is_glued(previous[-1], token[0], in_directive):
            out.append(" ")
        in_directive = in_directive or is_directive
        out.append(token)
        blank = ""
    return "".join(out)


def is_glued(left, right, in_directive):
    """Whether leaving out the blank between two characters could change the program."""
    def is_word(c):
        return c.isalnum() or c in "_\"'"
    if is_word(left) and is_word(right) or left in "+-&|" and left == right:
        return True
    # "#define F (x)" is not "#define F(x)".
    return in_directive and is_word(left) and right == "("


def kernels_of(root, op, strategy):
    """For strategy "", those of all the primitive's strategies, including the others' that they run."""
    if not strategy:
        ops = {op, *(name for name, of in KERNELS_OF.items() if of == op)}
        parts = {KERNELS_OF.get(op, op), *(part for key, of in PARTS_OF.items() if (key if isinstance(key, str) else key[0]) in ops for part in of)}
        return sorted(path for part in parts for path in root.glob(f"kernels/*/{part}_*.cu"))
    parts = PARTS_OF.get((op, strategy), PARTS_OF.get(op))
    if parts:
        return sorted(path for part in parts for path in root.glob(f"kernels/*/{part}_*.cu"))
    return sorted(root.glob(f"kernels/*/{KERNELS_OF.get(op, op)}_{strategy}*.cu"))


def sources_of(root, op, strategy):
    """The kernel's files and all of ours that they include, as sorted paths below root."""
    pending = kernels_of(root, op, strategy)
    if not pending:
        raise EvidenceError(f"no kernels/*/{op}_{strategy}*.cu in {root}")
    found = set()
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.add(path)
        # Read as text: an include inside a comment can only add a source, never hide one.
        for target in INCLUDE.findall(path.read_text()):
            for folder in (path.parent, root / "include", root):
                if (folder / target).is_file():
                    pending.append(pathlib.Path(os.path.normpath(folder / target)))
                    break
    return sorted(path.relative_to(root).as_posix() for path in found)


def source_hash(root, op, strategy):
    digest = hashlib.sha256()
    for name in sources_of(root, op, strategy):
        digest.update(f"{name}\0{normalized((root / name).read_text())}\0".encode())
    return digest.hexdigest()


def write_if_changed(output, text):
    """Keeps the time of a file with the same content, so that nothing is recompiled for it."""
    if not output.exists() or output.read_text() != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)


def make_hashes(root, output):
    """Writes one line of C++ per primitive that has CUDA kernels: the hash that identifies them in a tuning cache."""
    lines = []
    ops = [spec.name.removesuffix("_spec.cpp") for spec in root.glob("host/*/*_spec.cpp")]
    for op in sorted({*ops, *KERNELS_OF}):
        try:
            lines.append(f'{{"{op}", "{source_hash(root, op, "")}"}},\n')
        except EvidenceError:
            continue
    write_if_changed(output, "".join(lines))


def read_evidence(path):
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise EvidenceError(f"{path.name}: no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise EvidenceError(f"{path.name}: its schema is no \"{SCHEMA}\"")
    for key, kind in (("op", str), ("strategy", str), ("source_hash", str), ("compute_capability", int),
                      ("cases_passed", int), ("cases_failed", int), ("sanitizer", dict)):
        value = document.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise EvidenceError(f"{path.name}: {key} is {value!r}, expected {kind.__name__}")
    for key in ("op", "strategy"):
        if not NAME.fullmatch(document[key]):
            raise EvidenceError(f"{path.name}: {key} is {document[key]!r}, expected a name")
    if "vendor_error" in document and not vendor_error.is_legal(document["vendor_error"]):
        raise EvidenceError(f"{path.name}: vendor_error is {document['vendor_error']!r}, expected what vendor_error.py finds")
    return document


def state_of(root, evidence):
    """"verified", or why not: "failed", "incomplete", "serial" (launches did not overlap, as a program's do) or "stale"."""
    worst = evidence.get("worst_error_ratio")
    counts = [evidence["sanitizer"].get(tool) for tool in TOOLS]
    is_number = isinstance(worst, (int, float)) and not isinstance(worst, bool)
    is_inaccurate = evidence.get("vendor_error", {}).get("exceeded", 0) > 0
    if evidence["cases_failed"] != 0 or is_number and not worst <= 1 or any(counts) or is_inaccurate:
        return "failed"
    if evidence["cases_passed"] <= 0 or not is_number or any(type(n) is not int for n in counts):
        return "incomplete"
    if evidence.get("programmatic_launch") is False:
        return "serial"
    return "verified" if current_hash(root, evidence) == evidence["source_hash"] else "stale"


def current_hash(root, evidence):
    """Null if the kernel is gone."""
    try:
        return source_hash(root, evidence["op"], evidence["strategy"])
    except EvidenceError:
        return None


def make_table(root, folder, output):
    """Writes the table; invalid evidence causes a message, never a failed build."""
    lines, refused = set(), set()
    for path in sorted(folder.glob("*.json")):
        try:
            evidence = read_evidence(path)
        except EvidenceError as error:
            print(f"evidence: {error}; it does not count", file=sys.stderr)
            continue
        state = state_of(root, evidence)
        line = f'{{"{evidence["op"]}", "{evidence["strategy"]}", {evidence["compute_capability"]}}},\n'
        if state == "verified":
            lines.add(line)
        else:
            # Another board of the same kind may have passed; one failure of these very sources outweighs it.
            if state == "failed" and evidence["source_hash"] == current_hash(root, evidence):
                refused.add(line)
            print(f"evidence: {evidence['op']}/{evidence['strategy']} on sm_{evidence['compute_capability']} "
                  f"is {state} ({path.name})", file=sys.stderr)
    write_if_changed(output, "".join(sorted(lines - refused)))


def read_result(path):
    try:
        result = json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as error:
        raise EvidenceError(f"{path}: no JSON: {error}") from None
    if not isinstance(result, dict) or result.get("schema", {}).get("name") != "wbench.result":
        raise EvidenceError(f"{path}: no result of wbench")
    if not result["run"]["complete"]:
        raise EvidenceError(f"{path}: the run did not come to its end")
    if not result["devices"] or not result["devices"][0]["device"].startswith("cuda"):
        raise EvidenceError(f"{path}: not from a CUDA device")
    if result["devices"][0]["name"].startswith("simulated "):
        raise EvidenceError(f"{path}: what the simulated GPU makes is no evidence of a device")
    return result


def unreached(result):
    """The primitives of cases that a lost device left without results: in the case that lost it all fails, whoever is to blame, and
    then the run goes on to its end, running nothing."""
    def has_nothing(case):
        return all(one["status"] in ("failed", "skipped") for one in case["strategies"] + case.get("baselines", []))
    return {case["op"] for case in result["cases"] if case["status"] not in ("ok", "skipped") and has_nothing(case)}


def read_json(path):
    """None if there is none."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def read_whole(path, wbench):
    """A result that this wbench came to the end of, without losing its device; else None."""
    try:
        result = read_json(path)
        is_its_own = result is not None and path.stat().st_mtime_ns > wbench.stat().st_mtime_ns
        return result if is_its_own and result["run"]["complete"] and not unreached(result) else None
    except (OSError, KeyError, TypeError):
        return None


def tally(results):
    """{(op, strategy): [passed, failed, worst]} over every case that a strategy took part in."""
    counts = {}
    for result in results:
        for case in result["cases"]:
            for strategy in case["strategies"]:
                verify = strategy["verify"]
                was_checked = verify["elements_compared"] > 0
                # Nothing to compare (a case of size 0) is neither passed nor failed.
                if strategy["status"] == "skipped" or strategy["status"] == "ok" and not was_checked:
                    continue
                entry = counts.setdefault((case["op"], strategy["name"]), [0, 0, 0])
                good = strategy["status"] == "ok" and verify["before"] == "pass"
                entry[0 if good else 1] += 1
                # Null is "not finite", the worst there is.
                if verify["worst_error_ratio"] is None or entry[2] is None:
                    entry[2] = None
                else:
                    entry[2] = max(entry[2], verify["worst_error_ratio"])
    return counts


class Verdict(NamedTuple):
    """What one tool of compute-sanitizer reported about one program."""
    tool: str
    program: str
    findings: int | None  # None: no verdict
    noted: int  # not findings: warnings, and others' kernels
    scope: str  # the kernels that were judged


def read_verdicts(path):
    """Lines "tool program findings noted scope", or "tool program null"."""
    verdicts = []
    for line in path.read_text().splitlines() if path else []:
        tool, program, findings, *rest = line.split()
        if findings == "null":
            verdicts.append(Verdict(tool, program, None, 0, ""))
        else:
            verdicts.append(Verdict(tool, program, int(findings), int(rest[0]), rest[1]))
    return verdicts


def kernels_named(op, strategy=None):
    """What the kernels of a strategy, or of all of an op's, are named after."""
    parts = [its for key, its in PARTS_OF.items() if key in (op, (op, strategy)) or strategy is None and key[0] == op]
    return {KERNELS_OF.get(op, op)}.union(*parts)


def is_about(program, op, kernels):
    """Whether this is the op's share of a program (isolation_test:OP), or a program named after one of the kernels."""
    name, _, share = program.partition(":")
    return share == op if share else any(name.startswith(kernel + "_") for kernel in kernels)


def findings_of(verdicts, op, strategy):
    """None if a program about the strategy's kernels is without a verdict, or the op's share is missing; findings outweigh
    that. A finding may be due to any kernel that runs there, so it counts against all of these; in a program about
    no particular op, against every strategy."""
    ops = {verdict.program.partition(":")[2] for verdict in verdicts} - {""}
    kernels = kernels_named(op, strategy)

    def may_blame(program):
        subjects = [one for one in ops if is_about(program, one, {KERNELS_OF.get(one, one)})]
        return not subjects or any(kernels & kernels_named(one) for one in subjects)
    own = [verdict.findings for verdict in verdicts if is_about(verdict.program, op, kernels)]
    total = sum(verdict.findings or 0 for verdict in verdicts if may_blame(verdict.program))
    return total if total or op in ops and None not in own else None


def sanitizer_facts(verdicts, op, strategy):
    by_tool = {tool: [verdict for verdict in verdicts if verdict.tool == tool] for tool in TOOLS}
    return {"sanitizer": {tool: findings_of(its, op, strategy) for tool, its in by_tool.items()},
            "sanitizer_noted": {tool: sum(verdict.noted for verdict in its if is_about(verdict.program, op, kernels_named(op, strategy)))
                                for tool, its in by_tool.items()},
            "sanitizer_scope": {tool: " ".join(sorted({verdict.scope for verdict in its} - {""})) for tool, its in by_tool.items()}}


def write_evidence(root, arguments):
    verdicts = read_verdicts(arguments.sanitizer)
    without = {name for names in arguments.without for name in names.split(",")}
    if "all" in without:
        raise EvidenceError("a run of all primitives is missing")
    results = [read_result(path) for path in arguments.results]
    first = results[0]
    device = first["devices"][0]
    for path, result in zip(arguments.results, results):
        if result["devices"][0]["name"] != device["name"]:
            raise EvidenceError(f"{path}: device is {result['devices'][0]['name']}, expected {device['name']}")
    for op in sorted(set().union(*map(unreached, results)) - without):
        print(f"evidence: {op}: no strategy came to some of its cases, so it has none")
        without.add(op)
    written = 0
    counts, compared = tally(results), vendor_error.compare(results)
    for op, strategy in (name.split("/") for name in arguments.lost):
        counts.setdefault((op, strategy), [0, 0, 0])[1] += 1
    for (op, strategy), (passed, failed, worst) in sorted(counts.items()):
        name = f"{op}/{strategy}"
        # A hand-written strategy is one with a kernel of its name; the others have nothing to prove.
        if not kernels_of(root, op, strategy) or name not in arguments.lost and {op, name} & without:
            continue
        evidence = {
            "schema": SCHEMA, "op": op, "strategy": strategy,
            "source_hash": source_hash(root, op, strategy), "sources": sources_of(root, op, strategy),
            "device": device["name"], "compute_capability": device["compute_capability"],
            "driver": arguments.driver or cuda_version(device["cuda_driver"]),
            "toolkit": first["run"]["tool"]["cuda_toolkit"], "date": arguments.date, "programmatic_launch": not arguments.serial,
            "cases_passed": passed, "cases_failed": failed, "worst_error_ratio": worst,
            **({"vendor_error": compared[op, strategy]} if (op, strategy) in compared else {}),
            **sanitizer_facts(verdicts, op, strategy)}
        arguments.out.mkdir(parents=True, exist_ok=True)
        path = arguments.out / f"{op}_{strategy}_sm{device['compute_capability']}.json"
        path.write_text(json.dumps(evidence, indent=2) + "\n")
        written += 1
        print(f"evidence: {path.name}: {passed} cases passed, {failed} failed: {state_of(root, evidence)}")
        if evidence.get("vendor_error", {}).get("exceeded"):
            error, exceeded, case = vendor_error.words(evidence["vendor_error"])
            print(f"evidence: {path.name}: less accurate than a vendor's call in {exceeded} cases: its error is {error} in {case}")
    if written == 0:
        raise EvidenceError("the results hold no case of a hand-written strategy")


def read_strategies(source):
    """The output of `wbench list strategies --json -`; `source` is wbench or a file with that."""
    if source.suffix != ".json" and os.access(source, os.X_OK):
        text = subprocess.run([source, "list", "strategies", "--json", "-"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    else:
        text = source.read_text()
    return json.loads(text)


def cuda_version(number):
    return f"{number // 1000}.{number % 1000 // 10}"


def print_status(source):
    """The README's table; primitives with the same cells share a row."""
    rows = read_strategies(source)
    none = all(row["verified"] == "unverified" for row in rows if row["device"] == "cuda" and row["kind"] == "hand_written")
    how = "none of them verified yet" if none else "by what they are verified on"
    print(f"| primitive | kernels of ours on CUDA, {how} | vendors' calls |\n|---|---|---|")
    ours, vendors = {}, {}
    for row in rows:
        of_op = ours.setdefault(row["op"], {})
        if row["device"] == "cuda" and row["kind"] == "hand_written":
            of_op.setdefault(row["verified"], []).append(f"`{row['strategy']}`")
        elif row["device"] == "cuda" and row["kind"] == "vendor":
            vendors.setdefault(row["op"], []).append(f"`{row['strategy']}`")
    ops = {}
    for op, states in ours.items():
        kernels = "; ".join(", ".join(names) if none else f"{state}: {', '.join(names)}" for state, names in states.items())
        ops.setdefault((kernels, ", ".join(vendors.get(op, []))), []).append(op)
    for (kernels, calls), alike in ops.items():
        print(f"| {', '.join(alike)} | {kernels} | {calls} |")


def print_errors(root):
    """Of the evidence in the tree; nothing without any."""
    rows = []
    for path in sorted((root / "verify/evidence").glob("*.json")):
        try:
            evidence = read_evidence(path)
        except EvidenceError as error:
            print(f"evidence: {error}; it does not count", file=sys.stderr)
            continue
        if "vendor_error" in evidence:
            error, exceeded, case = vendor_error.words(evidence["vendor_error"])
            kernel = f"{evidence['op']} `{evidence['strategy']}` on sm_{evidence['compute_capability']}"
            rows.append(f"| {kernel} | {error} | {exceeded}{', **failed**' if evidence['vendor_error']['exceeded'] else ''} | {case} |")
    if rows:
        print("\n| kernel | its worst error | above twice that and an ulp | in |\n|---|---|---|---|", *rows, sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="of the sources")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("hash", help="of a strategy's kernel and all it includes")
    command.add_argument("op")
    command.add_argument("strategy")
    command = commands.add_parser("table", help="the verified strategies as lines of C++")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("output", type=pathlib.Path)
    command = commands.add_parser("hashes", help="of all CUDA kernels of each primitive as lines of C++")
    command.add_argument("output", type=pathlib.Path)
    command = commands.add_parser("write", help="evidence from results of wbench verify --json")
    command.add_argument("results", nargs="+")
    command.add_argument("--out", type=pathlib.Path, required=True, help="folder")
    command.add_argument("--without", action="append", default=[], metavar="OP[/STRATEGY],..", help="of which a run is missing, or all")
    command.add_argument("--lost", action="append", default=[], metavar="OP/STRATEGY", help="that left no result, since it fails its process")
    command.add_argument("--driver", help="as nvidia-smi names it; default: the CUDA version it supports")
    command.add_argument("--serial", action="store_true", help="the runs were made with WIDE_PROGRAMMATIC_LAUNCH=0")
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    command.add_argument("--date", default=today)
    command.add_argument("--sanitizer", type=pathlib.Path, help="lines of gpu_check's part sanitize; left out: not run")
    command = commands.add_parser("status", help="Markdown tables of all strategies, and of kernels' errors over those of vendors' calls")
    command.add_argument("source", type=pathlib.Path, help="wbench, or a file of `wbench list strategies --json -`")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    try:
        if arguments.command == "hash":
            print(source_hash(root, arguments.op, arguments.strategy))
        elif arguments.command == "hashes":
            make_hashes(root, arguments.output)
        elif arguments.command == "table":
            make_table(root, arguments.folder, arguments.output)
        elif arguments.command == "write":
            write_evidence(root, arguments)
        else:
            print_status(arguments.source)
            print_errors(root)
    except (EvidenceError, OSError, subprocess.CalledProcessError, KeyError, ValueError, TypeError) as error:
        print(f"evidence: {error!r}" if isinstance(error, KeyError) else f"evidence: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
