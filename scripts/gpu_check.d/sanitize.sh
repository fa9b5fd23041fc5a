# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# The part of gpu_check that runs compute-sanitizer. All of it takes longer than one call has: a verdict of one tool on
# one program is written down with what it was made of, and holds as long as that does, in later calls and on other
# machines. No verdict but a whole one: a program that was stopped, or failed, gave none.

tools=(memcheck racecheck initcheck synccheck)
# Shortest first, as the simulated GPU takes them, so that a call's end loses few. isolation_test runs every strategy of
# the catalogue; the others know their kernels' edges.
programs=(attention_test binary_test embedding_bag_test concat_test embedding_test pointwise_test rmsnorm_test dropout_test
          embedding_quantized_test softmax_test layernorm_test groupnorm_test model_ensemble_test batchnorm_test chain_test
          mlp_test pooling_test pack_test conv_implicit_gemm_cuda_test conv_test flash_attention_cuda_test
          flash_attention_wgmma_cuda_test ensemble_test flash_attention_test linear_planes_cuda_test
          linear_weight_only_cuda_test model_test ragged_linear_cuda_test linear_wgmma_cuda_test conv_wgmma_cuda_test
          linear_cuda_test isolation_test)
verdicts=verify/evidence/sanitizer.txt  # TOOL PROGRAM DEVICE KEY FINDINGS, a line each
declare -A keys=()                      # of the programs that are built,
device=""                               # on this

# write_sources OPTIONS: what each program is being built from, with what of CMake's options changes its code.
write_sources() {
  local common program
  common=$(find CMakeLists.txt CMakePresets.json scripts/cmake include kernels host bench verify/CMakeLists.txt verify/support \
    -type f -regex '.*\.\(c\|h\|cpp\|hpp\|cu\|cuh\|cmake\|in\)\|.*/?CMake[A-Za-z]*\.\(txt\|json\)' -print0 2>/dev/null |
    LC_ALL=C sort -z | xargs -0 sha256sum)
  common+=$(find verify -name '*.hpp' -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 sha256sum)
  for program in "${programs[@]}"; do
    echo "$program $(sha256sum <<<"$common $(cat "verify/$program.cpp" 2>/dev/null) $1" | cut -d ' ' -f 1)"
  done >"$build/sources.txt"
}

# Of what was built where the build wrote it down; else the program itself.
find_keys() {
  local program made checker driver
  device=$(gpu_fact name | tr ' ' '-')
  checker=$(compute-sanitizer --version 2>/dev/null | tail -n 1)
  driver=$(gpu_fact driver_version)
  keys=()
  for program in "${programs[@]}"; do
    [ -x "$build/verify/$program" ] || continue
    made=$(awk -v program="$program" '$1 == program { print $2 }' "$build/sources.txt" 2>/dev/null)
    made=${made:-$(sha256sum <"$build/verify/$program")}
    keys[$program]=$(sha256sum <<<"$made, $checker, driver ${driver%%.*}" | cut -c 1-32)
  done
}

# Lines "tool program findings" of all programs that have keys, null where there is no verdict on what they are now.
verdicts_now() {
  local program tool
  for program in "${programs[@]}"; do
    [ -n "${keys[$program]:-}" ] || continue
    for tool in "${tools[@]}"; do echo "$tool $program $device ${keys[$program]}"; done
  done | awk 'FILENAME != "-" { found[$1 " " $2 " " $3 " " $4] = $5; next }
    { print $1, $2, ($0 in found) ? found[$0] : "null" }' "$([ -f "$verdicts" ] && echo "$verdicts" || echo /dev/null)" -
}

# One tool over one program.
sanitize_one() {
  local tool=$1 program=$2 findings code limit log=$out/sanitize-$1-$2.log
  local options=(--tool "$tool" --error-exitcode 1)
  # Failing calls of the CUDA API are what some tests provoke; the library checks every one itself.
  [ "$tool" != memcheck ] || options+=(--report-api-errors no)
  limit=$(at_most)
  [ "$limit" -ge 3 ] || return
  WIDE_TEST_SMALL=1 WIDE_REQUIRE_GPU=1 timeout -k 5 "$limit" \
    compute-sanitizer "${options[@]}" "$build/verify/$program" >"$log" 2>&1
  code=$?
  findings=$(sed -nE 's/.*(ERROR|RACECHECK) SUMMARY: ([0-9]+) .*/\2/p' "$log" | tail -n 1)
  # A test that failed, or stopped half way, looked at less than it should: no findings say nothing. Nor do those of a
  # device that the tool cannot look into.
  [ "${findings:-0}" -gt 0 ] || [ $code -eq 0 ] || return
  if [ -z "$findings" ] || grep -q 'Device not supported' "$log"; then return; fi
  echo "$tool $program $device ${keys[$program]} $findings" >>"$verdicts"  # one write, in one piece
}

# What was said of other sources of these programs on this device is of no use to anybody.
drop_old_verdicts() {
  local tool program on key findings
  [ -f "$verdicts" ] || return 0
  while read -r tool program on key findings; do
    [ "$on" = "$device" ] && [ "$key" != "${keys[$program]:-}" ] || echo "$tool $program $on $key $findings"
  done <"$verdicts" | LC_ALL=C sort -u >"$out/verdicts.txt" && mv "$out/verdicts.txt" "$verdicts"
}

# How many programs at once: each keeps a core busy and the tool beside it another, and takes some GB of the device.
programs_at_once() {
  local cores memory
  cores=$(($(nproc) / 2))
  memory=$(gpu_fact memory.total | tr -cd 0-9)
  [ -z "$memory" ] || [ "$cores" -le $((memory / 8192)) ] || cores=$((memory / 8192))
  echo $((cores > 1 ? cores : 1))
}

part_sanitize() {
  local tool program log at_once findings failed=0 todo=()
  rm -f "$out"/sanitize*
  if ! command -v compute-sanitizer >/dev/null; then
    say "compute-sanitizer is not in PATH: not run"
    return 1
  fi
  if [ ! -x "$build/verify/isolation_test" ]; then
    say "$build/verify/isolation_test does not exist: build first"
    return 1
  fi
  find_keys
  mkdir -p verify/evidence
  drop_old_verdicts
  mapfile -t todo < <(verdicts_now | sed -n 's/ null$//p')
  at_once=$(programs_at_once)
  say "sanitize: $(($(verdicts_now | wc -l) - ${#todo[@]})) verdicts hold, ${#todo[@]} are to come, $at_once at once"
  for program in "${todo[@]}"; do
    read -r tool program <<<"$program"
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
    sanitize_one "$tool" "$program" &
  done
  wait
  rmdir verify/evidence 2>/dev/null  # where there is still nothing to say
  verdicts_now >"$out/sanitize.txt"
  for log in "$out"/sanitize-*.log; do
    [ -f "$log" ] || continue
    echo "== ${log##*/}"
    cat "$log"
  done | head -c 4000000 >"$out/sanitize.log"
  rm -f "$out"/sanitize-*
  for tool in "${tools[@]}"; do
    findings=$(findings_of "$tool")
    say "$tool: findings $findings"
    [ "$findings" = 0 ] || failed=1
    grep "^$tool .* [1-9][0-9]*$" "$out/sanitize.txt"
    log=$(sed -n "s/^$tool \(.*\) null$/\1/p" "$out/sanitize.txt" | xargs)
    [ -z "$log" ] || say "$tool: no verdict on $log"
  done
  return $failed
}

# findings_of TOOL: the sum over the programs of sanitize.txt; null where one of them is null, or there is none. Findings
# outweigh null.
findings_of() {
  awk -v tool="$1" '$1 == tool { ++lines; if ($3 == "null") unknown = 1; else sum += $3 }
    END { print (lines == 0 || (unknown && sum == 0)) ? "null" : sum }' "$out/sanitize.txt"
}
