#!/usr/bin/env bash
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# build.sh PRESET [TARGET...]: configures build/PRESET if that has not been done yet, and builds it.
# Everything goes to build/PRESET/build.log; standard error gets what a person needs: what CMake found,
# one line of progress on a terminal, and the log's end if something failed.
set -euo pipefail
case "${1:-}" in -h | --help) sed -n '5,/^set/s/^# //p' "$0" && exit 0 ;; esac
cd "$(dirname "$0")/.."
preset=${1:?"usage: build.sh PRESET [TARGET...]"}
shift
build=build/$preset
log=$build/build.log

fail() {
  echo "build: $1 failed; the end of $log:" >&2
  tail -n 40 "$log" >&2
  exit 1
}

# One line that overwrites itself; nothing for the few steps that every build takes.
show_progress() {
  awk -v width="$(tput cols 2>/dev/null || echo 80)" '
    match($0, /^\[[0-9]+\/[0-9]+\]/) { split($0, step, "[][/]"); if (step[3] > 5) printf "\r\033[K%s", substr($0, 1, width - 1) }
    { fflush() } END { printf "\r\033[K" }' >&2
}

mkdir -p "$build"
# The build directory of another checkout cannot be used: CMake would refuse it.
if [ -f "$build/CMakeCache.txt" ] && ! grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$build/CMakeCache.txt"; then
  rm -rf "$build"
  mkdir -p "$build"
fi
if [ ! -f "$build/build.ninja" ] || [ CMakePresets.json -nt "$build/build.ninja" ]; then
  echo "build: configuring $build" >&2
  cmake --preset "$preset" >"$log" 2>&1 </dev/null || fail configuring
  grep -E '^-- wide:' "$log" >&2 || true
fi
# One a core; ninja's own choice is two more.
jobs=$(nproc)
if [ -t 2 ]; then
  ninja -C "$build" -j "$jobs" "$@" 2>&1 </dev/null | tee "$log" | show_progress || fail building
else
  ninja -C "$build" -j "$jobs" "$@" >"$log" 2>&1 </dev/null || fail building
fi
grep -E '^(evidence|report): ' "$log" >&2 || true
