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
  [ "$(id -u)" -eq 0 ] || run=(sudo)
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

install() {
  apt install -y -q --no-install-recommends "$@" && return
  echo "packages: reading the package lists anew" >&2
  apt update -q && apt install -y -q --no-install-recommends "$@"
}

[ $# -gt 0 ] || { echo "usage: $0 GROUP... (build, test, optional)" >&2; exit 2; }
command -v dpkg-query >/dev/null || {
  echo "packages: this is no Debian; install the equivalents of $list by hand" >&2
  exit 0
}
mapfile -t names < <(missing "$@")
[ ${#names[@]} -eq 0 ] && exit 0

echo "packages: installing ${names[*]}"
if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
  echo "packages: neither root nor sudo, so nothing could be installed" >&2
else
  install "${names[@]}" >&2 || echo "packages: apt-get failed" >&2
fi

needed=()
for group in build test; do
  case " $* " in *" $group "*) mapfile -t -O "${#needed[@]}" needed < <(missing "$group") ;; esac
done
mapfile -t absent < <(missing optional)
case " $* " in *" optional "*) [ ${#absent[@]} -eq 0 ] || echo "packages: going on without ${absent[*]}" ;; esac
if [ ${#needed[@]} -gt 0 ]; then
  echo "packages: still missing: ${needed[*]}" >&2
  echo "packages: as root, run: apt-get install ${needed[*]}" >&2
  exit 1
fi
