# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# The part of gpu_check that fetches what a build needs without a network and without the sources' history.

max_kib=$((60 * 1024))  # of 64 MiB that have to hold the sources, too
packages_archive=carry/packages.tar.xz  # carry/usr, which part_build makes of it

# What find_package() needs, and its package. The toolkit is not ours to redistribute.
declare -A package_of=([CLI11]=libcli11-dev [nlohmann_json]=nlohmann-json3-dev [fmt]=libfmt-dev [valijson]=libvalijson-dev
                       [dlpack]=libdlpack-dev [SQLite3]=libsqlite3-dev [ZLIB]=zlib1g-dev [Catch2]=catch2 [Boost]=libboost-dev)

# All that is built, as a checksum: whether sources are those that the commit in carry/ was recorded for.
sum_of_sources() {
  find CMakeLists.txt CMakePresets.json include kernels host bench scripts verify -type f ! -path '*/__pycache__/*' \
    ! -path '*/node_modules/*' ! -path 'bench/results/*' \
    ! -path 'verify/evidence/*' ! -path 'verify/golden/fixtures/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}

# write_commit FILE: "SHA clean", or dirty, and the sources' sum.
write_commit() {
  local sha state=clean
  sha=$(git rev-parse HEAD 2>/dev/null) || { say "no commit is known here: results will name none"; return 0; }
  [ -z "$(git status --porcelain -uno)" ] || state=dirty
  mkdir -p carry && printf '%s %s\n%s\n' "$sha" $state "$(sum_of_sources)" >"$1"
  say "$1: $sha $state"
}

# For sources without their history: the recorded commit does not apply to other sources.
judge_commit() {
  [ -f carry/commit ] && ! git rev-parse HEAD >/dev/null 2>&1 || return 0
  [ "$(sed -n 2p carry/commit)" = "$(sum_of_sources)" ] && return
  say "carry/commit was written for other sources: call carry again before the next machine; results will say dirty"
  sed -i '1s/ clean$/ dirty/' carry/commit
}

# What travels: carry/, and the sources as far as git knows them or does not ignore them.
weigh_carry() {
  local carried sources
  carried=$(du -sk --apparent-size carry | cut -f 1)
  sources=$(git ls-files -zco --exclude-standard 2>/dev/null | du -ck --apparent-size --files0-from=- 2>/dev/null | tail -n 1 | cut -f 1)
  say "carry/ takes $carried KiB and the sources ${sources:-0} KiB"
  [ $((carried + ${sources:-0})) -le $max_kib ] || { say "together they are over $((max_kib >> 10)) MiB"; return 1; }
}

part_carry() {
  local packages=(libsqlite3-0 zlib1g) library
  local catch2 folder link broken
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || { say "carry needs apt-get and dpkg"; return 1; }
  for library in "${!package_of[@]}"; do
    [ "$library" = Catch2 ] || [ "$library" = Boost ] || packages+=("${package_of[$library]}")
  done
  packages+=("$(apt-cache depends libfmt-dev | sed -nE 's/^ *Depends: (libfmt[0-9]+)$/\1/p' | head -n 1)")
  packages+=("$(apt-cache depends libboost-dev | sed -nE 's/^ *Depends: (libboost[0-9.]+-dev)$/\1/p' | head -n 1)")
  # Debian 12 itself has 2.13; backports have 3.
  catch2=$(apt-cache madison catch2 | awk '$3 ~ /^[3-9]/ { print $3; exit }')
  [ -n "$catch2" ] || { say "no configured source offers Catch2 3: see scripts/setup.sh"; return 1; }
  packages+=("catch2=$catch2")
  apt-cache show "libcatch2-dev=$catch2" >/dev/null 2>&1 && packages+=("libcatch2-dev=$catch2")
  rm -rf carry
  folder=$(mktemp -d)
  (cd "$folder" && timeout 300 apt-get download -q "${packages[@]}" 2>&1 | grep -v '^W: Download is performed unsandboxed') &&
    for package in "$folder"/*.deb; do dpkg -x "$package" carry || return 1; done
  local code=$?
  rm -rf "$folder"
  [ $code -eq 0 ] || return 1
  # Libraries in one place, where the build's programs search, and no link to what another machine may lack.
  [ ! -d carry/lib ] || { cp -a carry/lib/. carry/usr/lib/ && rm -r carry/lib; } || return 1
  while read -r link; do
    ln -sf "$(basename "$(readlink "$link")")" "$link" || return 1
  done < <(find carry -type l -lname '/*')
  broken=$(find carry -xtype l)
  [ -z "$broken" ] || { say "carry/ has links to nothing: $broken"; return 1; }
  # Of Boost's 15,000 headers, only those that are read.
  c++ -std=c++20 -M -I. -isystem carry/usr/include bench/statistics/distributions.cpp | grep -o 'carry/usr/include/boost/[^ ]*' |
    tar -cf carry/boost.tar carry/usr/include/boost/version.hpp -T - && rm -r carry/usr/include/boost &&
    tar -xf carry/boost.tar && rm carry/boost.tar || return 1
  rm -rf carry/usr/share/doc carry/usr/share/man carry/usr/share/lintian carry/usr/share/doc-base
  pack_tightly carry/usr "$packages_archive" && rm -r carry/usr || return 1
  write_commit carry/commit
  say "carry/ holds ${packages[*]}"
  weigh_carry
}
