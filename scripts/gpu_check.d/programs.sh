# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# Programs that were built where there was no GPU, and are taken along to one: a build there would take a third of a short loan.

programs_archive=carry/programs.tar.xz  # programs.txt in it: root, build directory, cmake, sum of sources, a line each
programs_commit=carry/programs.commit   # what they were built of, as carry/commit

# Before anything else, and without a GPU, too: whether a build will take a third of the loan.
say_what_is_carried() {
  local here made="an unknown commit" sum=""
  here=$(git rev-parse HEAD 2>/dev/null) || here=$(cut -s -d ' ' -f 1 carry/commit 2>/dev/null)
  [ ! -f $programs_commit ] || { read -r made _ && read -r sum; } <$programs_commit
  if [ ! -f $programs_archive ]; then
    say "no programs are carried, so a build comes first: call carry programs before the next machine"
  elif [ "$sum" != "$(sum_of_sources)" ]; then
    say "the carried programs are of ${made}, and of other sources than ${here:-these}, so a build comes first: call programs again"
  elif [ "$made" != "$here" ]; then
    say "the carried programs are of $made, with the same sources as ${here:-these}: results will name that commit"
  fi
}

# What parts call: wbench, and the tests that part_tests or part_sanitize runs, with the libraries and files that they read.
programs_to_take() {
  local program
  (
    cd "$build" || exit
    echo bench/wbench
    find verify -maxdepth 1 -type f -executable | while read -r program; do
      grep -qE "$needs_no_gpu" <<<"${program##*/}" || echo "$program"
    done
    find verify/*/ -name '*.so' -o -name 'libcudart.so.*'
    [ ! -d verify/onnx ] || echo verify/onnx
    find . -name CTestTestfile.cmake
  )
}

# pack_tightly FOLDER ARCHIVE: the largest files beside one another, since several hold the same kernels.
pack_tightly() {
  (
    set -o pipefail
    cd "$1" && find . ! -type d -printf '%s %p\n' | LC_ALL=C sort -k 1,1rn -k 2 | cut -d ' ' -f 2- |
      tar --owner=0 --group=0 -cf - -T - | xz --lzma2=preset=6,dict=192MiB
  ) >"$2" || { rm -f "$2"; return 1; }
}

# unpack ARCHIVE FOLDER: by Python, since not every machine has xz.
unpack() {
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$1" "$2" 2>/dev/null ||
    { say "$1 cannot be unpacked"; return 1; }
}

# For Hopper, with all that is needed there beside it. Programs look for libraries in $build/libraries, which take_programs fills.
part_programs() {
  local folder code
  command -v cmake >/dev/null && command -v nvcc >/dev/null || { say "programs needs cmake and nvcc"; return 1; }
  [ -f "$packages_archive" ] || { say "there is no $packages_archive: call carry first"; return 1; }
  mkdir -p "$out" && rm -f "$build/sources.txt" "$programs_archive" $programs_commit
  cmake --preset test -B "$build" -DWIDE_WERROR=OFF -DCMAKE_CUDA_ARCHITECTURES=90a "-DCMAKE_BUILD_RPATH=$build/libraries" \
    >"$out/build.log" 2>&1 && cmake --build "$build" >>"$out/build.log" 2>&1 || { cause_in "$out/build.log"; return 1; }
  write_sources 90a || return 1
  folder=$(mktemp -d)
  printf '%s\n' "$root" "$build" "$(command -v cmake)" "$(sum_of_sources)" >"$build/programs.txt"
  programs_to_take | tar -C "$build" -cf - -T - programs.txt sources.txt | tar -C "$folder" -xf - &&
    find "$folder" -type f -executable -exec strip {} + &&
    pack_tightly "$folder" "$programs_archive"
  code=$?
  rm -rf "$folder" "$build/programs.txt"
  [ $code -eq 0 ] || return 1
  write_commit $programs_commit
  weigh_carry
}

# Folders that may hold a library, the first that has it counts.
library_folders() {
  local wheels
  wheels=$(python3 -c 'import glob, importlib.util as u
print(*(f for p in u.find_spec("nvidia").submodule_search_locations for f in glob.glob(p + "/*/lib")))' 2>/dev/null)
  # shellcheck disable=SC2086
  printf '%s\n' "$root"/carry/usr/lib/*-linux-gnu /usr/local/cuda/lib64 /usr/lib64 /usr/lib/*-linux-gnu $wheels
}

# Links in $build/libraries to all that the programs load, and beside it what that opens by name.
link_libraries() {
  local folder file
  rm -rf "$build/libraries" && mkdir "$build/libraries"
  while read -r folder; do
    for file in "$folder"/lib{cudart,cublas*,cudnn*,nvrtc*,nvJitLink,fmt,sqlite3,z}.so.*; do
      [ ! -e "$file" ] || [ -e "$build/libraries/${file##*/}" ] || ln -s "$file" "$build/libraries"
    done
  done < <(library_folders)
}

# Takes the programs of exactly these sources, if they start here; else says why not.
take_programs() {
  local made_root made_build made_cmake sum said
  [ -f "$programs_archive" ] && [ "$1" = 90a ] || return 1
  rm -rf "$build/taken" && mkdir "$build/taken"
  unpack "$programs_archive" "$build/taken" || return 1
  { read -r made_root && read -r made_build && read -r made_cmake && read -r sum; } <"$build/taken/programs.txt" || return 1
  if [ "$sum" != "$(sum_of_sources)" ]; then
    say "$programs_archive is of other sources: call programs again before the next machine"
    return 1
  fi
  # The programs know where they were made by absolute paths.
  [ -e "$made_root" ] || { mkdir -p "${made_root%/*}" && ln -s "$root" "$made_root"; }
  if [ ! "$made_build" -ef "$build" ]; then
    say "$programs_archive was made in $made_build, which is not $build here"
    return 1
  fi
  find "$build/taken" -name CTestTestfile.cmake -exec sed -i "s|\"$made_cmake\"|\"$(command -v cmake || echo cmake)\"|" {} +
  cp -a "$build/taken/." "$build" && rm -rf "$build/taken"
  echo "$sum" >"$build/sources.sum"
  link_libraries
  said=$("$build/bench/wbench" list strategies --json - 2>&1 >/dev/null) && return
  say "$programs_archive has a wbench that does not start here: $said"
  rm -rf "$build/bench" "$build/verify" "$build/sources.txt" "$build/programs.txt"
  return 1
}
