#!/usr/bin/env bash
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# build.sh PRESET [TARGET...]: configures the preset where that is still to be done and builds it.
# Quiet unless something fails; all output goes to standard error.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
build=build/$preset
log=$build/build.log

fail() {
  echo "build: $1 failed; the end of $log:" >&2
  tail -n 40 "$log" >&2
  exit 1
}

mkdir -p "$build"
# A build directory of another checkout is of no use: CMake would refuse it.
if [ -f "$build/CMakeCache.txt" ] && ! grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$build/CMakeCache.txt"; then
  rm -rf "$build"
  mkdir -p "$build"
fi
if [ ! -f "$build/build.ninja" ]; then
  echo "build: configuring $build" >&2
  cmake --preset "$preset" >"$log" 2>&1 || fail configuring
  grep -E '^-- wide:' "$log" >&2 || true
fi
if [ -t 2 ]; then
  ninja -C "$build" "$@" >&2 || exit 1
else
  ninja -C "$build" "$@" >"$log" 2>&1 || fail building
fi
