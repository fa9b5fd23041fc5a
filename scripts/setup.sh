#!/usr/bin/env bash
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# Installs what building and testing wide needs and this machine lacks. For Debian 12 and Ubuntu
# 24.04, by apt, as root or through sudo; if neither is possible it prints the command. Does
# nothing, at once, if nothing is missing. The CUDA toolkit is not installed: its licence and
# its size are the user's to accept. --browser adds Chromium, which one test of report pages needs.
set -euo pipefail
case "${1:-}" in
  "" | --browser) ;;
  -h | --help) sed -n '5,/^set/s/^# //p' "$0" && exit 0 ;;
  *) echo "setup: unknown argument \"$1\", expected --browser or none" >&2 && exit 2 ;;
esac
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

libraries=(libcli11-dev nlohmann-json3-dev libfmt-dev libvalijson-dev libdlpack-dev libboost-dev libsqlite3-dev zlib1g-dev libonnx-testdata locales)
# A tool counts wherever it comes from; command:package.
tools=(c++:build-essential cmake:cmake ninja:ninja-build git:git python3:python3)
if [ "${1:-}" = --browser ]; then tools+=(chromium:chromium); fi
backports=/etc/apt/sources.list.d/bookworm-backports.list

say() { echo "setup: $*" >&2; }

if ! command -v dpkg-query >/dev/null; then
  say "no dpkg here, so this is not Debian or Ubuntu. Install by hand: ${tools[*]#*:} ${libraries[*]%-dev} and Catch2 3"
  exit 1
fi

missing=()
for tool in "${tools[@]}"; do
  command -v "${tool%%:*}" >/dev/null || missing+=("${tool#*:}")
done
# One query for all: each call reads dpkg's whole database.
installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' "${libraries[@]}" catch2 2>/dev/null || true)
for library in "${libraries[@]}"; do
  grep -q "^ii  *$library " <<<"$installed" || missing+=("$library")
done
# Debian 12 itself has Catch2 2; the tests need 3.
needs_catch2=true
if grep -qE '^ii +catch2 ([0-9]+:)?([3-9]|[1-9][0-9])' <<<"$installed"; then needs_catch2=false; fi
if [ ${#missing[@]} -eq 0 ] && ! $needs_catch2; then exit 0; fi

wanted="${missing[*]}"
if $needs_catch2; then wanted="${wanted:+$wanted }catch2 (3 or newer)"; fi
codename=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}")

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  as_root=(sudo -n)
  if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
    say "missing: $wanted. Installing needs root; type:"
    {
      echo "  sudo apt-get update"
      if [ ${#missing[@]} -gt 0 ]; then echo "  sudo apt-get install -y --no-install-recommends ${missing[*]}"; fi
      if $needs_catch2 && [ "$codename" = bookworm ]; then
        echo "  sudo apt-get install -y --no-install-recommends -t bookworm-backports catch2"
        echo "    (with the suite bookworm-backports of your mirror in /etc/apt/sources.list)"
      elif $needs_catch2; then
        echo "  sudo apt-get install -y --no-install-recommends catch2"
      fi
    } >&2
    exit 1
  fi
fi

apt() { "${as_root[@]}" env "DEBIAN_FRONTEND=$DEBIAN_FRONTEND" apt-get -q "$@" </dev/null >&2; }
install() { apt install -y --no-install-recommends "$@" || { say "apt could not install: $*"; exit 1; }; }
refresh() { apt update || say "apt-get update failed in part; going on with what is known"; }
catch2_3() { apt-cache madison catch2 | awk '$3 ~ /^([3-9]|[1-9][0-9])[.]/ { print $3; exit }'; }
# Backports come from the same mirror as this machine's Debian.
mirror() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $codename" 'Component: main' | head -n 1; }

say "installing $wanted"
refresh
if [ ${#missing[@]} -gt 0 ]; then install "${missing[@]}"; fi
if $needs_catch2; then
  version=$(catch2_3)
  if [ -z "$version" ] && [ "$codename" = bookworm ] && [ ! -e $backports ]; then
    uri=$(mirror)
    say "adding the suite bookworm-backports of $uri as $backports"
    echo "deb $uri bookworm-backports main" | "${as_root[@]}" tee $backports >/dev/null
    refresh
    version=$(catch2_3)
  fi
  if [ -z "$version" ]; then
    say "no configured source offers Catch2 3; it is in Debian 12's backports and in Ubuntu 24.04"
    exit 1
  fi
  install "catch2=$version"
fi
if command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
  say "done; a CUDA compiler is here, the build says whether it fits"
else
  say "done; no CUDA toolkit found, so the build will be for the CPU alone"
fi
