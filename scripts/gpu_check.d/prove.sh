# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# The parts of gpu_check that prove kernels right, and write down what they found.

# What this machine has, a line each: what was not built or not run later is explained by what is missing here.
say_what_is_here() {
  local tool library wheels
  for tool in cmake ninja nvcc c++ ncu nsys compute-sanitizer cuobjdump; do
    say "found $tool: $(command -v "$tool" || echo none)"
  done
  wheels=$(python3 -c 'import glob, importlib.util as u
print(*(f for p in u.find_spec("nvidia").submodule_search_locations for f in glob.glob(p + "/*/lib")))' 2>/dev/null)
  for library in cudart cublas cublasLt cudnn z sqlite3; do
    # shellcheck disable=SC2086
    say "found lib$library:" "$(for folder in carry/usr/lib/*-linux-gnu /usr/local/cuda/lib64 /usr/lib64 /usr/lib/*-linux-gnu $wheels; do
      ls "$folder/lib$library.so" "$folder/lib$library.so".* 2>/dev/null | head -n 1 || true
    done | xargs | grep . || echo none)"
  done
  say "found torch: $(python3 -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || echo none)"
}

# Why a configuration or a build stopped: CMake's and the compilers' own words, else the log's end.
cause_in() {
  local words
  words=$(grep -E -A 6 'CMake Error|^FAILED: |(: |^)(fatal )?error[: ]|undefined reference' "$1" | grep -v '^--$' | cut -c 1-300 | head -n 60)
  [ -n "$words" ] && printf '%s\n' "$words" || tail -n 40 "$1"
}

part_build() {
  local capability architecture
  say_what_is_here
  judge_commit
  if ! command -v cmake >/dev/null && [ -x "$build/bench/wbench" ]; then
    say "no CMake here: taking $build as it is"
    return 0
  fi
  capability=$(gpu_fact compute_cap | tr -d .)
  architecture=${capability:-90}
  # The a: what is special to Hopper has no other name.
  [ "$architecture" != 90 ] || architecture=90a
  # Another compiler's new warnings are no reason to prove nothing.
  local options=(--preset test -B "$build" -DWIDE_WERROR=OFF "-DCMAKE_CUDA_ARCHITECTURES=$architecture")
  if [ -d carry/usr ]; then
    options+=("-DCMAKE_PREFIX_PATH=$root/carry/usr")
    export CPLUS_INCLUDE_PATH="$root/carry/usr/include${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}"
  fi
  { within 1 cmake "${options[@]}" && within 1 cmake --build "$build"; } >"$out/build.log" 2>&1
  local code=$?
  if [ $code -eq 0 ]; then write_sources "$architecture"; else cause_in "$out/build.log"; fi
  return $code
}

# Tests that need no GPU and take seconds: those of the simulated one, of scripts and of what wbench writes. Any
# machine runs them.
needs_no_gpu='^(simt?_|ptx_|statistics_|result_|compare_|report_|exports_|hostile_|inspect_|bad_files_|onnx_nodes_|runner_status_)'
needs_no_gpu+='|^(mutate|verify_runs|package|scripts|evidence|gpu_check|gpu_check_sanitize|targets|peers|peers_timing|results_table|completion|counters|readme|fuzz)$'

part_tests() {
  local limit code
  limit=$(at_most)
  [ "$limit" -ge 8 ] || return 124
  WIDE_REQUIRE_GPU=1 within 1 python3 scripts/run_tests.py --seconds $((limit - 5)) --alone-first --leave-out "$needs_no_gpu" "$build" \
    >"$out/tests.log" 2>&1
  code=$?
  grep -E '^(skipped |left out |failed: |out of time: |[0-9]+ passed)|no test ran' "$out/tests.log" || tail -n 20 "$out/tests.log"
  return $code
}

# What is there stays: the tests have compared it.
part_golden() {
  local written=0 file
  rm -rf "$out/golden" && mkdir -p "$out/golden" verify/golden/fixtures
  WIDE_GOLDEN_WRITE=$out/golden WIDE_REQUIRE_GPU=1 within 1 "$build/verify/golden_cuda_test" >"$out/golden.log" 2>&1
  local code=$?
  [ $code -eq 0 ] || { tail -n 20 "$out/golden.log"; return $code; }
  for file in "$out"/golden/*.bin; do
    [ -e "verify/golden/fixtures/${file##*/}" ] && continue
    cp "$file" verify/golden/fixtures/ && written=$((written + 1))
  done
  say "golden: $written new fixtures"
}

# Lines "NAME WORDS" of verify_runs.
verify_runs() { sed '/^#/d' scripts/gpu_check.d/verify_runs; }

part_verify() {
  local code=0 name words runs
  runs=$(verify_runs | wc -l)
  rm -f "$out"/verify-*.json "$out/wbench-verify.log"
  while read -r name words; do
    # shellcheck disable=SC2086
    within $((runs--)) "$build/bench/wbench" verify -p ci --device cuda $words \
      --json "$out/verify-$name.json" >>"$out/wbench-verify.log" 2>&1 </dev/null || code=$?
  done < <(verify_runs)
  [ $code -eq 0 ] || tail -n 30 "$out/wbench-verify.log"
  return $code
}

part_evidence() {
  local options=(--sanitizer "$out/sanitize.txt") driver results=() name words ops
  find_keys
  verdicts_now >"$out/sanitize.txt"
  driver=$(gpu_fact driver_version)
  [ -z "$driver" ] || options+=(--driver "$driver")
  # All runs of a primitive, or none: a strategy that is right in some only is not verified.
  while read -r name words; do
    if is_complete "$out/verify-$name.json"; then
      results+=("$out/verify-$name.json")
    else
      ops=$(sed -nE 's/^--op ([^ ]+).*/\1/p' <<<"$words")
      say "verify's run $name did not come to its end: no evidence for $ops"
      options+=(--without "$ops")
    fi
  done < <(verify_runs)
  timeout -k 2 10 python3 scripts/evidence.py write "${results[@]}" --out verify/evidence "${options[@]}"
}
