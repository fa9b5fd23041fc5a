# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# The parts of gpu_check that prove kernels right, and write down what they found.

tools=(memcheck racecheck initcheck synccheck)
# isolation_test runs every strategy of the catalogue; the others know their kernels' edges.
programs=(isolation_test linear_cuda_test linear_planes_cuda_test linear_wgmma_cuda_test linear_weight_only_cuda_test
          ragged_linear_cuda_test embedding_test embedding_bag_test
          embedding_quantized_test layernorm_test rmsnorm_test chain_test batchnorm_test groupnorm_test
          conv_test conv_implicit_gemm_cuda_test flash_attention_test flash_attention_cuda_test attention_test mlp_test
          pointwise_test softmax_test binary_test dropout_test ensemble_test pooling_test concat_test pack_test
          model_test model_ensemble_test)

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
  [ $code -eq 0 ] || cause_in "$out/build.log"
  return $code
}

# Tests that need no GPU and take seconds: those of the simulated one, of scripts and of what wbench writes. Any
# machine runs them.
needs_no_gpu='^(simt?_|ptx_|statistics_|result_|compare_|report_|exports_|hostile_|inspect_|bad_files_|onnx_nodes_|runner_status_)'
needs_no_gpu+='|^(mutate|package|scripts|evidence|targets|peers|peers_timing|results_table|completion|counters|readme|fuzz)$'

part_tests() {
  local limit code
  limit=$(at_most)
  [ "$limit" -ge 8 ] || return 124
  WIDE_REQUIRE_GPU=1 within 1 python3 scripts/run_tests.py --seconds $((limit - 5)) --leave-out "$needs_no_gpu" "$build" \
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

# One tool over all programs: lines "tool program findings", null where it gave no verdict.
sanitize_with() {
  local tool=$1 program log findings code limit
  local options=(--tool "$tool" --error-exitcode 1)
  # Failing calls of the CUDA API are what some tests provoke; the library checks every one itself.
  [ "$tool" != memcheck ] || options+=(--report-api-errors no)
  for program in "${programs[@]}"; do
    [ -x "$build/verify/$program" ] || continue
    log=$out/sanitize-$tool-$program.log
    limit=$(at_most)
    code=124
    : >"$log"
    if [ "$limit" -ge 3 ]; then
      WIDE_TEST_SMALL=1 WIDE_REQUIRE_GPU=1 timeout -k 5 "$limit" \
        compute-sanitizer "${options[@]}" "$build/verify/$program" >"$log" 2>&1
      code=$?
    fi
    findings=$(sed -nE 's/.*(ERROR|RACECHECK) SUMMARY: ([0-9]+) .*/\2/p' "$log" | tail -n 1)
    # A test that failed, or stopped half way, looked at less than it should: no findings say nothing.
    if [ $code -ne 0 ] && [ "${findings:-0}" -eq 0 ]; then findings=null; fi
    echo "$tool $program ${findings:-null}"
  done
}

part_sanitize() {
  local tool failed=0
  rm -f "$out"/sanitize*
  if ! command -v compute-sanitizer >/dev/null; then
    say "compute-sanitizer is not in PATH: not run"
    return 1
  fi
  if [ ! -x "$build/verify/isolation_test" ]; then
    say "$build/verify/isolation_test does not exist: build first"
    return 1
  fi
  # Side by side: the tools keep one core of the host busy each, and the GPU little.
  for tool in "${tools[@]}"; do sanitize_with "$tool" >"$out/sanitize-$tool.txt" & done
  wait
  for tool in "${tools[@]}"; do cat "$out/sanitize-$tool.txt"; done >"$out/sanitize.txt"
  for log in "$out"/sanitize-*.log; do
    echo "== ${log##*/}"
    cat "$log"
  done | head -c 4000000 >"$out/sanitize.log"
  rm -f "$out"/sanitize-*
  for tool in "${tools[@]}"; do
    say "$tool: findings $(findings_of "$tool")"
    [ "$(findings_of "$tool")" = 0 ] || failed=1
  done
  grep -v ' 0$' "$out/sanitize.txt"
  return $failed
}

# The sum over programs; null where one of them is null, or none ran. Findings outweigh null.
findings_of() {
  [ -f "$out/sanitize.txt" ] || { echo null; return; }
  awk -v tool="$1" '$1 == tool { ++lines; if ($3 == "null") unknown = 1; else sum += $3 }
    END { print (lines == 0 || (unknown && sum == 0)) ? "null" : sum }' "$out/sanitize.txt"
}

part_verify() {
  local code=0 name runs=3
  rm -f "$out"/verify-*.json "$out/wbench-verify.log"
  for name in ci dtypes weights; do
    local cases=(--op all)
    case $name in
      dtypes) cases=(--op all -a dtype=fp16,bf16) ;;
      weights) cases=(--op linear -a dtype=fp16,bf16 -a weights=fp8_e4m3,int8,fp6_e3m2,int4,fp4_e2m1) ;;
    esac
    within $((runs--)) "$build/bench/wbench" verify -p ci --device cuda "${cases[@]}" \
      --json "$out/verify-$name.json" >>"$out/wbench-verify.log" 2>&1 || code=$?
  done
  [ $code -eq 0 ] || tail -n 30 "$out/wbench-verify.log"
  return $code
}

part_evidence() {
  local tool options=() driver
  for tool in "${tools[@]}"; do options+=("--$tool" "$(findings_of "$tool")"); done
  driver=$(gpu_fact driver_version)
  [ -z "$driver" ] || options+=(--driver "$driver")
  # All, or none: a strategy that is right in fp32 only is not verified.
  timeout -k 2 10 python3 scripts/evidence.py write "$out"/verify-{ci,dtypes,weights}.json \
    --out verify/evidence "${options[@]}"
}
