# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# The part of gpu_check that runs compute-sanitizer. All of it takes longer than one call: a verdict of one tool on
# one program is recorded with a key of its sources, and holds as long as they do, in later calls and on other
# machines. Only complete verdicts count: a program that was stopped, or failed, has none.

tools=(memcheck racecheck initcheck synccheck)
# isolation_test runs every strategy of the catalogue, a primitive at a time, each with its own verdict as
# isolation_test:PRIMITIVE. These come first, since no kernel has evidence without them; then the programs for kernels' edge
# cases, shortest first, by their time on the simulated GPU, so that the end of a call loses few.
programs=(attention_test binary_test embedding_bag_test concat_test embedding_test routing_cuda_test top_k_test
          mixture_cuda_test routing_test pointwise_test rmsnorm_test dropout_test embedding_quantized_test
          softmax_test layernorm_test groupnorm_test groupnorm_last_test model_ensemble_test batchnorm_test batchnorm_columns_test chain_test recurrent_test
          mlp_test routed_mlp_cuda_test pooling_test interpolate_test interpolate_last_test pack_test conv_implicit_gemm_cuda_test conv_test
          flash_attention_cuda_test flash_attention_wgmma_cuda_test ensemble_test flash_attention_test
          linear_planes_cuda_test linear_weight_only_cuda_test linear_decoded_cuda_test routed_linear_weight_only_cuda_test
          routed_linear_wgmma_cuda_test model_test
          ragged_linear_cuda_test routed_linear_cuda_test linear_wgmma_cuda_test conv_wgmma_cuda_test linear_cuda_test)
shares=()                               # of isolation_test; these and the programs are the units
verdicts=verify/evidence/sanitizer.txt  # TOOL UNIT DEVICE KEY FINDINGS NOTED SCOPE, a line each
declare -A keys=()                      # of the units that are built,
device=""                               # on this
at_least_s=15                           # for a program, before it counts as endless

# write_sources OPTIONS: what each program is built from, by sources.py.
write_sources() {
  python3 scripts/gpu_check.d/sources.py "$build" "$1" isolation_test "${programs[@]}" >"$build/sources.part" &&
    mv "$build/sources.part" "$build/sources.txt"
}

# Which kernels a tool judges. Vendors' kernels are reported as racy and unsynchronised by tools that do not follow all their
# uses of tensor memory accelerators and barriers, and what happens in shared memory and at barriers is a kernel's own:
# no argument of ours can cause it. So racecheck and synccheck check only ours. Addresses are arguments of ours wherever they
# are used: memcheck checks all kernels. So does initcheck, since the writes of excluded kernels would be unknown; but what
# others' kernels read is noted and not counted, because a library may read values that it then does not use. What a
# library keeps until the process ends is not counted as a leak either, but noted.
declare -A scope=([memcheck]=all [racecheck]=wide::kernels [initcheck]=all,_finds_in_wide::kernels [synccheck]=wide::kernels)
# By mangled names ("Specifying Filters", https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/): a misspelt filter
# would be ignored, and all kernels checked.
ours=4wide7kernels
found=97  # exit code of a program that ended well under a tool with findings; no Catch2 program has it
max_reports=10000  # of uninitialised reads, by kernel, and of leaks, by owner: further ones count as ours
# Options of each tool, even if they are the default of some versions. Some tests provoke failing calls of the CUDA
# API; the library checks every one itself. 512 bytes after each allocation are unused: a neighbour's would be in bounds.
checks="--check-device-heap yes --check-bulk-copy yes --check-exit-code yes --check-warpgroup-mma yes"
declare -A asked=([memcheck]="$checks --report-api-errors no --leak-check full --padding 512 --track-stream-ordered-races all --print-limit $max_reports"
                  [racecheck]="$checks --kernel-name kns=$ours"
                  [initcheck]="$checks --print-limit $max_reports --show-backtrace no"
                  [synccheck]="$checks --kernel-name kns=$ours")

# The units, with the sources each was built from, if the build recorded them; else the program itself.
find_keys() {
  local unit program made checker driver
  know_primitives
  shares=("${primitives[@]/#/isolation_test:}")
  [ ${#shares[@]} -gt 0 ] || say "wbench lists no primitives: no kernel can have evidence"
  device=$(gpu_fact name | tr ' ' '-')
  checker=$(compute-sanitizer --version 2>/dev/null | tail -n 1)
  driver=$(gpu_fact driver_version)
  keys=()
  for unit in "${shares[@]}" "${programs[@]}"; do
    program=${unit%:*}
    [ -x "$build/verify/$program" ] || continue
    made=$(awk -v program="$program" '$1 == program { print $2 }' "$build/sources.txt" 2>/dev/null)
    made=${made:-$(sha256sum <"$build/verify/$program")}
    keys[$unit]=$(sha256sum <<<"$made, $checker, driver ${driver%%.*}, ${scope[*]}, ${asked[*]}" | cut -c 1-32)
  done
}

# Lines "tool unit device key" of those of the units that have keys, tool by tool: a unit that hangs does so under every
# tool, and must not hold all that run at once.
under_tools() {
  local unit tool
  for tool in "${tools[@]}"; do
    for unit; do [ -z "${keys[$unit]:-}" ] || echo "$tool $unit $device ${keys[$unit]}"; done
  done
}

# Lines "tool unit findings noted scope" of all units that have keys, "tool unit null" if there is no verdict on their
# current sources.
verdicts_now() {
  { under_tools "${shares[@]}"; under_tools "${programs[@]}"; } |
    awk 'FILENAME != "-" { found[$1 " " $2 " " $3 " " $4] = $5 " " $6 " " $7; next }
    { print $1, $2, ($0 in found) ? found[$0] : "null" }' "$([ -f "$verdicts" ] && echo "$verdicts" || echo /dev/null)" -
}

# How often the unit, in its current state, did not end within its time. Such units come last, with all the time that is left;
# the least often stopped first.
times_cut() { if [ -e "$build/cut.txt" ]; then grep -cxF "$1 ${keys[$1]}" "$build/cut.txt"; else echo 0; fi; }

# Time limit of a unit: a third of what is left, so that several that hang leave the others most of it.
seconds_for() {
  local limit share
  limit=$(at_most)
  share=$((limit / 3 > at_least_s ? limit / 3 : at_least_s))
  [ $share -gt "$limit" ] || [ "$(times_cut "$1")" -gt 0 ] || limit=$share
  echo "$limit"
}

# Findings in a log: "FINDINGS NOTED", nothing without a summary. Only errors are findings. Warnings of racecheck
# are hazards "that may be intentionally created by the programmer" (its manual, "Racecheck Severity Levels"): noted.
findings_in() {
  case $1 in
    racecheck) sed -nE 's/.*RACECHECK SUMMARY: [0-9]+ .*\(([0-9]+) errors?, ([0-9]+) warnings?\).*/\1 \2/p' "$2" | tail -n 1 ;;
    initcheck)
      awk '/^=+ +Uninitialized __[a-z]+__ memory read/ { is_read = 1; next }
        is_read { others += /^=+ +at / && !/wide::kernels/; is_read = 0 }
        /ERROR SUMMARY: [0-9]+ / { sub(/.*ERROR SUMMARY: /, ""); sum = $1 }
        END { if (sum != "") print sum - others, others + 0 }' "$2" ;;
    memcheck)  # an allocation with a vendor's library in its backtrace is that library's
      awk '/^=+ +Leaked / { is_leak = 1; ++ours; next }
        is_leak && /libcu(blas|dnn)/ { is_leak = 0; --ours; ++others }
        /^=+ *$/ { is_leak = 0 }
        /ERROR SUMMARY: [0-9]+ / { sub(/.*ERROR SUMMARY: /, ""); sum = $1 }
        END { if (sum != "") print (sum - others > ours ? sum - others : ours + 0), others + 0 }' "$2" ;;
    *) sed -nE 's/.*ERROR SUMMARY: ([0-9]+) .*/\1 0/p' "$2" | tail -n 1 ;;
  esac
}

# One tool over one unit.
sanitize_one() {
  local tool=$1 unit=$2 findings code limit log=$out/sanitize-$1-${2/:/-}.log
  local command=("$build/verify/${unit%:*}")
  [ "$unit" = "${unit%:*}" ] || command+=("[gpu]")
  limit=$(seconds_for "$unit")
  [ "$limit" -ge 3 ] || return
  [ "$unit" = "${unit%:*}" ] || export WIDE_TEST_PRIMITIVE=${unit#*:}  # this runs in a subshell
  # shellcheck disable=SC2086
  WIDE_TEST_SMALL=1 WIDE_REQUIRE_GPU=1 timeout -k 5 "$limit" \
    compute-sanitizer --tool "$tool" --error-exitcode $found ${asked[$tool]} "${command[@]}" >"$log" 2>&1
  code=$?
  if [ $code -eq 124 ] || [ $code -eq 137 ]; then
    [ "$limit" -lt $at_least_s ] || echo "$unit ${keys[$unit]}" >>"$build/cut.txt"
    say "sanitize: $tool over $unit came to no end within $limit s"
    return
  fi
  findings=$(findings_in "$tool" "$log")
  # A test that failed, or stopped half way, checked less than it should: no findings mean nothing. Nor do those of a
  # device that the tool does not support.
  [ -n "$findings" ] && ! grep -q 'Device not supported' "$log" || return
  [ "${findings% *}" -gt 0 ] || [ $code -eq 0 ] || { [ $code -eq $found ] && [ "${findings#* }" -gt 0 ]; } || return
  echo "$tool $unit $device ${keys[$unit]} $findings ${scope[$tool]}" >>"$verdicts"  # one write, so that it is atomic
}

# Verdicts on other sources of these programs on this device are obsolete.
drop_old_verdicts() {
  local tool unit on key rest
  [ -f "$verdicts" ] || return 0
  while read -r tool unit on key rest; do
    [ "$on" = "$device" ] && [ "$key" != "${keys[$unit]:-}" ] || echo "$tool $unit $on $key $rest"
  done <"$verdicts" | LC_ALL=C sort -u >"$out/verdicts.txt" && mv "$out/verdicts.txt" "$verdicts"
}

# wait_for_fewer_than N: running programs. Packs their results meanwhile, as this call may be ended without warning.
wait_for_fewer_than() {
  local running
  while running=($(jobs -rp)) && [ ${#running[@]} -ge "$1" ]; do
    wait -n
    [ $((SECONDS - packed)) -lt $pack_every_s ] || { pack_all; packed=$SECONDS; }
  done
}

# As much of the logs as can be taken away: first findings, then units without a verdict, and both in full.
merged_logs() {
  local rank log
  awk '{ print ($3 == "null" ? 1 : $3 == 0 ? 0 : 2), "sanitize-" $1 "-" $2 ".log" }' "$out/sanitize.txt" | tr : - | LC_ALL=C sort -k 1,1r -s |
    while read -r rank log; do
      [ -f "$out/$log" ] || continue
      echo "== $log"
      head -c $((rank ? 1000000 : 200000)) "$out/$log"
    done | head -c 8000000
}

# How many programs at once: each keeps a core busy and the tool another, and uses some GB of the device.
programs_at_once() {
  local cores memory
  cores=$(($(nproc) / 2))
  memory=$(gpu_fact memory.total | tr -cd 0-9)
  [ -z "$memory" ] || [ "$cores" -le $((memory / 8192)) ] || cores=$((memory / 8192))
  echo $((cores > 1 ? cores : 1))
}

part_sanitize() {
  local tool unit at_once todo=() doubtful=() packed=$SECONDS
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
  for unit in "${todo[@]}"; do
    read -r tool unit <<<"$unit"
    wait_for_fewer_than "$at_once"
    if [ "$(times_cut "$unit")" -gt 0 ]; then doubtful+=("$tool $unit"); else sanitize_one "$tool" "$unit" & fi
  done
  mapfile -t doubtful < <(for unit in "${doubtful[@]}"; do echo "$(times_cut "${unit#* }") $unit"; done |
    LC_ALL=C sort -s -n -k 1,1)
  for unit in "${doubtful[@]}"; do
    read -r _ tool unit <<<"$unit"
    wait_for_fewer_than "$at_once"
    sanitize_one "$tool" "$unit" &
  done
  wait_for_fewer_than 1
  rmdir verify/evidence 2>/dev/null  # if there is still nothing to report
  verdicts_now >"$out/sanitize.txt"
  merged_logs >"$out/sanitize.log"
  rm -f "$out"/sanitize-*
  say_findings
}

# Of each tool the sum over the units of sanitize.txt, what was found and noted in which, and those without a verdict. The sum is
# null if one of them has none, or there are none; findings outweigh that. Exit code 1 if a sum is not 0.
say_findings() {
  awk -v tools="${tools[*]}" '
    { ++lines[$1] }
    $3 == "null" { missing[$1] = missing[$1] " " $2; next }
    { sum[$1] += $3 }
    $3 + $4 > 0 { found[$1] = found[$1] $0 "\n" }
    END {
      n = split(tools, tool, " ")
      for (i = 1; i <= n; ++i) {
        t = tool[i]
        findings = sum[t] > 0 || (lines[t] && missing[t] == "") ? sum[t] + 0 : "null"
        print "gpu_check: " t ": findings " findings
        printf "%s", found[t]
        if (missing[t] != "") print "gpu_check: " t ": no verdict on" missing[t]
        if (findings != "0") failed = 1
      }
      exit failed
    }' "$out/sanitize.txt"
}
