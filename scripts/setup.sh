#!/usr/bin/env bash
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
#
# Installs what building and testing wide needs and this machine lacks. For Debian 12 and Ubuntu
# 24.04, by apt, as root or through sudo. Does nothing, at once, where nothing is missing. The CUDA
# toolkit is not installed: its licence and its size are the user's to accept.
set -euo pipefail

packages=(build-essential cmake ninja-build git python3 libcli11-dev nlohmann-json3-dev libfmt-dev
  libvalijson-dev libdlpack-dev)

is_installed() { dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }

# Debian 12 carries Catch2 2.13; the tests need 3.
has_catch2_3() {
  dpkg-query -W -f '${Version}' catch2 2>/dev/null | grep -q '^[3-9]'
}

if ! command -v dpkg-query >/dev/null; then
  echo "setup: no dpkg here: install these by hand: ${packages[*]} and Catch2 3" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
needs_catch2=true
if has_catch2_3; then needs_catch2=false; fi
if [ ${#missing[@]} -eq 0 ] && ! $needs_catch2; then exit 0; fi

codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
catch2=(catch2)
backports_line=""
if $needs_catch2 && [ "$codename" = bookworm ]; then
  catch2=(-t bookworm-backports catch2)
  if ! grep -rqs 'bookworm-backports' /etc/apt/sources.list /etc/apt/sources.list.d; then
    backports_line="deb http://deb.debian.org/debian bookworm-backports main"
  fi
fi

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  {
    echo "setup: these are missing, and installing them needs root:"
    [ -z "$backports_line" ] || echo "  echo '$backports_line' | sudo tee /etc/apt/sources.list.d/bookworm-backports.list"
    echo "  sudo apt-get update"
    [ ${#missing[@]} -eq 0 ] || echo "  sudo apt-get install --no-install-recommends ${missing[*]}"
    ! $needs_catch2 || echo "  sudo apt-get install --no-install-recommends ${catch2[*]}"
  } >&2
  exit 1
fi

export DEBIAN_FRONTEND=noninteractive
install() { "${as_root[@]}" apt-get install -y -q --no-install-recommends "$@" </dev/null >&2; }
echo "setup: installing ${missing[*]} ${needs_catch2:+catch2 3}" >&2
if [ -n "$backports_line" ]; then
  echo "$backports_line" | "${as_root[@]}" tee /etc/apt/sources.list.d/bookworm-backports.list >/dev/null
fi
"${as_root[@]}" apt-get update -q </dev/null >&2
[ ${#missing[@]} -eq 0 ] || install "${missing[@]}"
if $needs_catch2; then
  install "${catch2[@]}"
  has_catch2_3 || { echo "setup: no configured source offers Catch2 3" >&2; exit 1; }
fi
