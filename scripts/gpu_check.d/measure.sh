# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# The parts of gpu_check that measure, and what they store as results of this device.

is_complete() { [ "$(json_fact "$1" "['run']['complete']")" = True ]; }
json_fact() { python3 -c "import json, sys; print(json.load(open(sys.argv[1]))$2)" "$1" 2>/dev/null; }

# keep FILE NAME: stores a result of this device, in as few bytes as possible, with the samples beside it, under its name.
keep() {
  local why
  why=$(python3 - "$1" "$(place_of "$2")" $max_bytes 2>&1 <<'END'
import json, pathlib, shutil, sys
source, place = map(pathlib.Path, sys.argv[1:3])
result = json.loads(source.read_text())
beside = result.get("samples_file")
if beside:
    samples, beside["file"] = source.parent / beside["file"], place.name + ".samples.f64le"
text = json.dumps(result, separators=(",", ":")) + "\n"
if len(text) > int(sys.argv[3]):
    sys.exit("it is over 5 MB")
place.parent.mkdir(parents=True, exist_ok=True)
if beside:
    shutil.copyfile(samples, place.parent / beside["file"])
place.write_text(text)
END
  ) || { say "${1##*/} is not kept, and lies in logs.tar.gz: ${why##*$'\n'}"; return 1; }
}
place_of() { echo "bench/results/$(gpu_fact name | tr ' ' '-')/$1-$(date -u +%F).json"; }

# keep_reason FILE NAME: stores why there is no result, unless there is one of today.
keep_reason() {
  say "$2: not run: $(json_fact "$1" "['not_run']")"
  [ -e "$(place_of "$2")" ] || keep "$1" "$2" || return 1
  return $not_here
}

# sweep NAME SECONDS WORDS...: wbench over all primitives, by sweep.py, and its result: a complete sweep, else the
# completed cases, as NAME_partial, which is marked as incomplete. Ending a program that hangs takes 8 s more.
sweep() {
  local name=$1 limit=$2 code cases ops
  shift 2
  know_primitives
  ops=$(IFS=,; echo "${primitives[*]}")
  rm -f "$out/$name".{json*,events,log}
  within 1 python3 scripts/gpu_check.d/sweep.py "$out/$name.json" "$limit" "${ops:-all}" "$build/bench/wbench" "$@"
  code=$?
  [ $code -eq 0 ] || tail -n 30 "$out/$name.log"
  if is_complete "$out/$name.json"; then
    keep "$out/$name.json" "$name" || return 1
    return $code
  fi
  cases=$(json_fact "$out/$name.json" "['cases'].__len__()")
  say "$name did not come to its end: ${cases:-0} of its cases are kept"
  [ "${cases:-0}" -eq 0 ] || keep "$out/$name.json" "${name}_partial"
  return 1
}

# A failed one is stored, too: it shows what not to trust.
part_selfcheck() {
  local code
  rm -f "$out/self_check.json"
  within 1 "$build/bench/wbench" info --self-check --device cuda --json "$out/self_check.json" >"$out/self-check.log" 2>&1
  code=$?
  grep -E '^[a-z0-9_]+ .* failed |^[0-9]+ passed' "$out/self-check.log" || tail -n 20 "$out/self-check.log"
  [ "$(json_fact "$out/self_check.json" "['self_check']['checks'][0]['name']")" != "" ] ||
    { say "no check was made: nothing is kept"; return 1; }
  keep "$out/self_check.json" self_check || return 1
  return $code
}

# Regimes that bench leaves out. Everything that a result can report of clocks and energy must be there, or why not.
part_regimes() {
  local code=0 name runs=2
  local cases=(--op layernorm --n 8 --batch 8 --seq 128 --d 256 --dtype fp16 --device cuda --budget 20 --max-samples 200)
  rm -f "$out"/{regimes,rotate}.json "$out/wbench-regimes.log"
  for name in regimes rotate; do
    local regimes=(--regime "cold,graph,stream,cpu" --energy --aa)
    [ $name = regimes ] || regimes=(--regime cold --cache rotate)
    within $((runs--)) "$build/bench/wbench" run "${cases[@]}" "${regimes[@]}" --json "$out/$name.json" >>"$out/wbench-regimes.log" 2>&1 || code=$?
    is_complete "$out/$name.json" || { say "$name did not come to its end: no result is kept"; code=1; continue; }
    keep "$out/$name.json" $name || code=1
  done
  [ $code -eq 0 ] || tail -n 30 "$out/wbench-regimes.log"
  [ ! -s "$out/regimes.json" ] || python3 - "$out/regimes.json" <<'END' || code=1
import json, sys
result = json.load(open(sys.argv[1]))
made = [m for c in result["cases"] for r in c["strategies"] + c["baselines"] for m in r["measurements"]]
missing = sorted({"cold", "graph", "stream", "cpu"} - {m["regime"] for m in made})
clocks = sum(m["clocks"] is not None for m in made)
energy = sum(m["energy"] is not None and m["energy"]["valid"] for m in made)
print(f"gpu_check: {len(made)} measurements, {clocks} with clocks, {energy} with energy")
for check in result["environment_checks"]:
    print(f"gpu_check: {check['text']}")
for regime in missing:
    print(f"gpu_check: nothing was measured in regime {regime}")
sys.exit(bool(missing) or not made or (clocks == 0 and not result["environment_checks"]))
END
  return $code
}

# How clocks rise and drop under products that fill the device: every sample, from the first on.
part_droop() {
  local code
  rm -f "$out/droop.json"
  within 1 "$build/bench/wbench" run --op linear --n 1 --batch 8192 --d 8192 --dtype bf16 --device cuda --strategy cublaslt \
    --baseline none --regime stream --warmup-time 0 --verify off --throttle warn --stop count --min-time 8 --max-samples 20000 \
    --timeout 12 --samples inline --json "$out/droop.json" >"$out/wbench-droop.log" 2>&1
  code=$?
  [ $code -eq 0 ] || tail -n 20 "$out/wbench-droop.log"
  is_complete "$out/droop.json" || { say "droop did not come to its end: no result is kept"; return 1; }
  keep "$out/droop.json" droop || return 1
  python3 - "$out/droop.json" <<'END' || return 1
import json, statistics, sys
samples = json.load(open(sys.argv[1]))["cases"][0]["strategies"][0]["measurements"][0]["samples"]["time_ns"]
tenth = max(1, len(samples) // 10)
times = [statistics.median(samples[i:i + tenth]) for i in range(0, min(tenth * 10, len(samples)), tenth)]
print(f"gpu_check: {len(samples)} samples; medians of their tenths, of the first: " + " ".join(f"{time / times[0]:.3f}" for time in times))
END
  return $code
}

part_bench() {
  local limit
  limit=$(at_least 15) || return
  # Few enough samples that the result stays small enough to be committed.
  sweep quick $((limit - 11)) -p quick --device cuda --regime stream,graph --max-samples 200
}

# A complete entry is stored, whatever happened to the others. A wbench built now knows what is verified by
# now.
part_models() {
  local limit code entry kept=0 failed=0
  limit=$(at_least 3) || return
  rm -rf "$out"/end_to_end*
  if command -v cmake >/dev/null && [ ! -e "$build/programs.txt" ]; then
    within 2 cmake --build "$build" --target wbench >"$out/wbench-suite.log" 2>&1 || { cause_in "$out/wbench-suite.log"; return 1; }
    limit=$(at_most)
  fi
  # The suite within this part's time, as bench's sweep.
  python3 - bench/suites/end_to_end.json "$limit" "$out/end_to_end.suite.json" <<'END' || return 1
import json, sys
suite = json.load(open(sys.argv[1]))
suite["defaults"] |= {"regimes": ["stream", "graph"], "max_samples": 200, "budget_s": int(sys.argv[2]) * 0.6 / len(suite["entries"])}
json.dump(suite, open(sys.argv[3], "w"))
END
  within 1 "$build/bench/wbench" suite run "$out/end_to_end.suite.json" --device cuda --results "$out/end_to_end" \
    --json "$out/end_to_end.json" >"$out/wbench-suite.log" 2>&1
  code=$?
  tail -n 24 "$out/wbench-suite.log"
  for entry in "$out"/end_to_end/*.json; do
    is_complete "$entry" || continue
    keep "$entry" "end_to_end-$(basename "$entry" .json)" && kept=$((kept + 1)) || failed=1
  done
  say "models: $kept of $(json_fact bench/suites/end_to_end.json "['entries'].__len__()") came to their end"
  [ $kept -gt 0 ] && keep "$out/end_to_end.json" end_to_end || failed=1
  [ $code -ne 0 ] || code=$failed
  return $code
}

# What an earlier call has measured with the same wbench counts, and leaves its time to the rest.
part_targets() {
  local limit code
  limit=$(at_least 15) || return
  rm -f "$out/targets.json"
  within 1 python3 scripts/targets.py measure "$build/bench/wbench" --seconds $((limit - 11)) --out "$out/targets.json" \
    --raw "$out/targets" --lost "$out/lost.json" --driver "$(gpu_fact driver_version)"
  code=$?
  [ -s "$out/targets.json" ] || return 1
  keep "$out/targets.json" targets || return 1
  return $code
}

# Numbers that differ are a result, as a missed target is.
part_counters() {
  local limit code
  limit=$(at_least 3) || return
  rm -f "$out/counters.json"
  within 1 python3 scripts/counters.py measure "$build/bench/wbench" --seconds $((limit - 2)) --out "$out/counters.json" \
    --metrics "$build/ncu_metrics.json" >"$out/counters.log" 2>&1
  code=$?
  [ -s "$out/counters.json" ] || { tail -n 20 "$out/counters.log"; return 1; }
  [ $code -ne 77 ] || { keep_reason "$out/counters.json" counters; return; }
  grep -E ' (differs|not measured): |^[0-9]+ kernels: ' "$out/counters.log"
  keep "$out/counters.json" counters || return 1
  [ $code -eq 4 ] || return $code
}

# Torch's calls beside ours; few cases if there is little time. torch.compile takes minutes per case.
part_peers() {
  local limit code preset=quick
  rm -f "$out"/peers.json*
  within 1 python3 -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "torch finds no CUDA device")' 2>"$out/peers.log"
  code=$?
  [ $code -ne 124 ] || return 124
  if [ $code -ne 0 ]; then
    python3 - "$(tail -n 1 "$out/peers.log")" "$(gpu_fact name)" "$(gpu_fact driver_version)" "$out/peers.json" <<'END' || return 1
import datetime, json, sys
why, device, driver, path = sys.argv[1:]
date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
json.dump({"part": "peers", "not_run": why or "python3 does not run", "date": date, "device": device, "driver": driver}, open(path, "w"))
END
    keep_reason "$out/peers.json" peers
    return
  fi
  limit=$(at_least 15) || return
  [ "$limit" -ge 350 ] || preset=ci
  sweep peers $((limit - 11)) -p $preset --peer "python3 scripts/peers/torch_peer.py --no-compile" --device cuda \
    --regime stream,graph,cold --max-samples 200
}
