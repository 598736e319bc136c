#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of the named groups (see deploy/packages.txt) that are not there yet.
#
#   deploy/install-packages.sh build [test] [optional]
#
# Looks first and asks apt only for what is missing, so with everything in place it needs neither network nor rights.
# Exit 0: all of build and test are there (a missing optional one is only said). Exit 1: something needed is missing
# and could not be installed; the names are printed.
set -euo pipefail
list=$(dirname "$(readlink -f "$0")")/packages.txt

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing() {  # missing GROUP...: the names that are not installed
  local name group _
  while read -r name group _; do
    case " $* " in
      *" $group "*) installed "$name" || printf '%s\n' "$name" ;;
    esac
  done < <(sed 's/#.*//; /^[[:space:]]*$/d' "$list")
}

apt() {
  local run=()
  [ "$(id -u)" -eq 0 ] || run=(sudo ${CI:+-n})
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 "$@" </dev/null >&2
}

lists_are_new=''
install() {  # install NAME...: with the lists as they are, else with new ones
  apt install -y -q --no-install-recommends "$@" && return
  [ -z "$lists_are_new" ] || return
  lists_are_new=yes
  echo "packages: reading the package lists anew" >&2
  apt update -q && apt install -y -q --no-install-recommends "$@"
}

[ $# -gt 0 ] || { echo "usage: $0 GROUP... (build, test, optional)" >&2; exit 2; }
command -v dpkg-query >/dev/null || {
  echo "packages: this is no Debian; install the equivalents of $list by hand" >&2
  exit 0
}
needed=() optional=()
for group in "$@"; do
  case $group in
    optional) mapfile -t optional < <(missing optional) ;;
    *) mapfile -t -O "${#needed[@]}" needed < <(missing "$group") ;;
  esac
done
[ $((${#needed[@]} + ${#optional[@]})) -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
  echo "packages: neither root nor sudo, so nothing can be installed" >&2
else
  [ ${#needed[@]} -eq 0 ] || { echo "packages: installing ${needed[*]}"; install "${needed[@]}" || true; }
  # One optional package that this system does not know must not keep the others away.
  for name in "${optional[@]}"; do
    echo "packages: installing $name"
    install "$name" || true
  done
fi

mapfile -t optional < <(for name in "${optional[@]}"; do installed "$name" || echo "$name"; done)
[ ${#optional[@]} -eq 0 ] || echo "packages: going on without ${optional[*]}"
mapfile -t needed < <(for name in "${needed[@]}"; do installed "$name" || echo "$name"; done)
if [ ${#needed[@]} -gt 0 ]; then
  echo "packages: still missing: ${needed[*]}" >&2
  echo "packages: as root, run: apt-get install ${needed[*]}" >&2
  exit 1
fi
