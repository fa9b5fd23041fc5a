# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# The parts of gpu_check that prove kernels right, and record their findings.

# What this machine has, a line each: explains what is not built or not run later.
say_what_is_here() {
  local tool library folder file found folders
  folders=$(library_folders)
  for tool in cmake ninja nvcc c++ ncu nsys compute-sanitizer cuobjdump; do
    say "found $tool: $(command -v "$tool" || echo none)"
  done
  for library in cudart cublas cublasLt cudnn z sqlite3; do
    found=()
    while read -r folder; do
      for file in "$folder/lib$library.so" "$folder/lib$library.so".*; do
        [ -e "$file" ] && found+=("$file") && break
      done
    done <<<"$folders"
    say "found lib$library: ${found[*]:-none}"
  done
  say "found torch: $(python3 -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null || echo none)"
}

# Why a configuration or a build stopped: CMake's and the compilers' own messages, else the log's end.
cause_in() {
  local words
  words=$(grep -E -A 6 'CMake Error|^FAILED: |(: |^)(fatal )?error[: ]|undefined reference' "$1" | grep -v '^--$' | cut -c 1-300 | head -n 60)
  [ -n "$words" ] && printf '%s\n' "$words" || tail -n 40 "$1"
}

# Programs built from other sources do not count: what cannot be built from these is missing.
drop_old_programs() {
  local sum
  sum=$(sum_of_sources 2>/dev/null)
  [ "$sum" = "$(cat "$build/sources.sum" 2>/dev/null || echo "$sum")" ] ||
    find "$build/bench" "$build/verify" -maxdepth 1 -type f -executable -delete 2>/dev/null
  echo "$sum" >"$build/sources.sum"
}

# Whether there is nothing left to build: all was, or failed from these very sources.
has_built() {
  [ -e "$build/sources.txt" ] || { [ -x "$build/bench/wbench" ] && [ "$(cat "$build/ended.sum" 2>/dev/null)" = "$(sum_of_sources)" ]; }
}

# A file that fails to compile affects only what depends on it. sources.txt means that all was built, ended.sum has the sources
# from which a build last ended by itself.
part_build() {
  local capability architecture code
  primitives=()  # another wbench's
  if [ ! -d carry/usr ] && [ -f "$packages_archive" ]; then unpack "$packages_archive" carry/usr; fi
  say_what_is_here
  judge_commit
  capability=$(gpu_fact compute_cap | tr -d .)
  architecture=${capability:-90}
  # The a: features special to Hopper exist only under this name.
  [ "$architecture" != 90 ] || architecture=90a
  ! take_programs "$architecture" || { say "took the programs of $programs_archive"; return 0; }
  if ! command -v cmake >/dev/null && [ -x "$build/bench/wbench" ]; then
    say "no CMake here: taking $build as it is"
    return 0
  fi
  # Another compiler's new warnings must not prevent the proofs.
  local options=(--preset test -B "$build" -DWIDE_WERROR=OFF "-DCMAKE_CUDA_ARCHITECTURES=$architecture")
  if [ -d carry/usr ]; then
    options+=("-DCMAKE_PREFIX_PATH=$root/carry/usr")
    export CPLUS_INCLUDE_PATH="$root/carry/usr/include${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}"
  fi
  rm -f "$build/sources.txt" "$build/ended.sum" "$build/programs.txt"
  drop_old_programs
  within 1 cmake "${options[@]}" >"$out/build.log" 2>&1
  code=$?
  if [ $code -eq 0 ]; then
    within 1 cmake --build "$build" -- -k 0 >>"$out/build.log" 2>&1
    code=$?
    [ $code -eq 124 ] || [ $code -eq 137 ] || cp "$build/sources.sum" "$build/ended.sum"
  fi
  if [ $code -eq 0 ]; then write_sources "$architecture"; else cause_in "$out/build.log"; fi
  return $code
}

# Tests that need no GPU and take seconds: those of the simulated one, of scripts and of wbench's output, and of command lines on
# the CPU, which run alone. Any machine runs them.
needs_no_gpu='^(simt?_|ptx_|statistics_|result_|compare_|report_|exports_|hostile_|inspect_|bad_files_|onnx_nodes_|runner_status_)'
needs_no_gpu+='|^(cli|events|exit_code|history|tune)_test$'
needs_no_gpu+='|^(mutate|verify_runs|package|scripts|check_scripts|evidence|gpu_check|gpu_check_programs|gpu_check_prove|gpu_check_sanitize|targets|peers|peers_timing|results_table|completion|counters|readme|fuzz|asynchronous_wgmma)$'

# Tests that use the device, by what they include: a pattern of their names.
uses_gpu() {
  local headers
  headers=$(echo verify/support/devices.hpp; grep -l '"verify/support/devices.hpp"' verify/*/*.hpp)
  { ls verify/*/*_cuda_test.cpp; grep -lF "$headers" verify/*/*_test.cpp; } 2>/dev/null |
    sed 's|.*/|^|; s|\.cpp$|$|' | LC_ALL=C sort -u | paste -sd '|'
}

part_tests() {
  local limit code
  limit=$(at_least 8) || return
  # The catalogue's take minutes beside others; one that hangs leaves the others half of the time.
  WIDE_REQUIRE_GPU=1 within 1 python3 scripts/run_tests.py --seconds $((limit - 5)) --timeout $((limit / 2)) \
    --first "$(uses_gpu)" --leave-out "$needs_no_gpu" "$build" >"$out/tests.log" 2>&1
  code=$?
  grep -E '^(skipped |left out |failed: |out of time: |[0-9]+ passed)|no test ran' "$out/tests.log" || tail -n 20 "$out/tests.log"
  return $code
}

writes_fixtures="golden vectors: this device makes what a real one made"

golden_s=10  # for a process: cases take milliseconds

# golden_test WORDS...: with what earlier processes of this part left.
golden_test() {
  WIDE_GOLDEN_WRITE=$out/golden WIDE_REQUIRE_GPU=1 within $(($(at_most) / golden_s + 1)) "$build/verify/golden_cuda_test" "$@" >>"$out/golden.log" 2>&1
}
unfinished_cases() { find "$out/golden" -name '*.part' -printf '%f\n' | sed 's/\.part$//' | LC_ALL=C sort | xargs; }

# A case that hangs or loses the device ends its process: another one goes on behind it. Existing fixtures stay: the tests have
# compared them. This device's new ones are stored whatever the other checks find.
part_golden() {
  local written=0 file code before=none unfinished="" others
  rm -rf "$out/golden" "$out/golden.log" && mkdir -p "$out/golden" verify/golden/fixtures
  while [ "$unfinished" != "$before" ]; do
    before=$unfinished
    golden_test "$writes_fixtures"
    code=$?
    unfinished=$(unfinished_cases)
  done
  for file in "$out"/golden/*.bin; do
    [ -e "$file" ] && [ ! -e "verify/golden/fixtures/${file##*/}" ] || continue
    cp "$file" verify/golden/fixtures/ && written=$((written + 1))
  done
  say "golden: $written new fixtures${unfinished:+, no end of $unfinished}"
  golden_test "~$writes_fixtures"
  others=$?
  [ $code -ne 0 ] || code=$others
  [ $code -eq 0 ] || tail -n 20 "$out/golden.log"
  [ -z "$unfinished" ] || code=1
  return $code
}

# Those with strategies on CUDA, once they are known. They are asked for where they are kept, in no subshell.
primitives=()
know_primitives() {
  [ ${#primitives[@]} -eq 0 ] || return 0
  mapfile -t primitives < <("$build/bench/wbench" list strategies --json - 2>/dev/null | python3 -c 'import json, sys
for op in dict.fromkeys(row["op"] for row in json.load(sys.stdin) if row["device"] == "cuda"): print(op)' 2>/dev/null)
}

# Lines "NAME-OP --op OP WORDS": those of the file, for each of their primitives.
verify_runs() {
  local name ops words op all
  all=$(printf '%s\n' "${primitives[@]}")
  while read -r name _ ops words; do
    [ "${ops%%-*}" != all ] || ops=$(grep -vxF -- "$(cut -s -d- -f2 <<<"$ops")" <<<"${all:-all}")
    for op in ${ops//,/ }; do echo "$name-$op --op $op $words"; done
  done < <(sed '/^#/d' scripts/gpu_check.d/verify_runs)
}

# verify COMMAND: verify.py's, with this wbench. Ending a program that hangs takes 4 s more.
verify() {
  local command=$1 runs=scripts/gpu_check.d/scouts limit
  [ -x "$build/bench/wbench" ] || { say "$build/bench/wbench does not exist: build first"; return 1; }
  mkdir -p "$out"
  [ "$command" = scout ] || { know_primitives && runs=$out/runs.txt && verify_runs >"$runs"; }
  local words=(python3 scripts/gpu_check.d/verify.py "$command" "$out" "$build/bench/wbench" "$runs")
  if [ "$command" = todo ] || [ "$command" = report ]; then
    "${words[@]}"
  else
    limit=$(at_least 12) || return
    within 1 "${words[@]}" $((limit - 6))
  fi
}

# What scouts found of this wbench, in this call or an earlier one: nothing later lets launches overlap where they fail.
heed_scouts() {
  [ -z "${WIDE_PROGRAMMATIC_LAUNCH:-}" ] && [ "$out/serial.txt" -nt "$build/bench/wbench" ] || return 0
  export WIDE_PROGRAMMATIC_LAUNCH=0
  say "WIDE_PROGRAMMATIC_LAUNCH=0: $(cat "$out/serial.txt")"
}

# What fails here would take the time of all that comes after it.
part_scout() {
  verify scout
}

part_verify() {
  # Results outlive this call, and evidence is made of them in another.
  [ "${WIDE_PROGRAMMATIC_LAUNCH:-1}" != 0 ] || { mkdir -p "$out" && : >"$out/serial_runs"; }
  verify run
}

part_evidence() {
  local options=(--sanitizer "$out/sanitize.txt") driver results=() what one rest
  find_keys
  verdicts_now >"$out/sanitize.txt"
  driver=$(gpu_fact driver_version)
  [ -z "$driver" ] || options+=(--driver "$driver")
  [ "${WIDE_PROGRAMMATIC_LAUNCH:-1}" != 0 ] && [ ! "$out/serial_runs" -nt "$build/bench/wbench" ] || options+=(--serial)
  while read -r what one rest; do
    case $what in
      result) results+=("$one") ;;
      missing)
        say "verify's run $one did not come to its end: no evidence for $rest"
        options+=(--without "$rest") ;;
      lost)
        say "$one fails the process that runs it: $rest"
        options+=(--lost "$one") ;;
    esac
  done < <(verify report)
  [ ${#results[@]} -gt 0 ] || { say "verify has left no result"; return 1; }
  timeout -k 2 10 python3 scripts/evidence.py write "${results[@]}" --out verify/evidence "${options[@]}"
}
