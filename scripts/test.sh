#!/usr/bin/env bash
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# Sets up what is missing, builds, runs the static checks and all tests, and closes with
# "N passed, N failed, N skipped", counted over test cases. Skipped is not passed.
#
#   test.sh              with CUDA if there is a toolkit
#   test.sh --no-cuda    as on a machine without one
#   test.sh --asan       the library's, under AddressSanitizer and UndefinedBehaviorSanitizer (wbench's: scripts/fuzz)
#   test.sh --sim        the GPU tests, with the simulated GPU in the program, under AddressSanitizer
#   test.sh --all        the first, and its programs on the library as --asan has it: with a toolkit and without
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  "") presets=(test) ;;
  --no-cuda) presets=(no-cuda) ;;
  --asan) presets=(sanitize) ;;
  --sim) presets=(sim) ;;
  --all) presets=(test watched) ;;
  -h | --help) sed -n 's/^#   //p' "$0" && exit 0 ;;
  *) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
esac

# Compilers, references and the simulated GPU touch gigabytes for the first time, which is quicker on huge pages, where Linux has
# them for those who ask. Sanitizers have an allocator of their own.
export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}

./scripts/setup.sh
./scripts/check_layers
./scripts/check_includes
./scripts/check_kernels
./scripts/format --check
./scripts/reports
for preset in "${presets[@]}"; do
  start=$SECONDS
  ./scripts/build.sh "$preset"
  echo "test: built $preset in $((SECONDS - start)) s"
done
exec ./scripts/run_tests.py "${presets[@]/#/build/}"
