#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 to a running limiter: installs what is needed, builds, starts a daemon, lets several processes
# send an access log through one limit, compares the answer with an exact one, measures, and stops it all again.
#
#   deploy/quickstart.sh [LOG]      LOG in Common or Combined format; without it a realistic one is made
#   CUTWATER_BUILD_DIR              where to build (default: build)
#
# Nothing stays behind but the build folder. Exit 0 when the answer equals the exact limiter's; 1 when not, or when
# something needed is missing.
set -euo pipefail
log=${1:+$(readlink -f "$1")}
if [ $# -gt 1 ] || { [ $# -eq 1 ] && [ ! -r "$log" ]; }; then
  sed -n '3,10s/^# \{0,1\}//p' "$0"
  [ $# -gt 1 ] || echo "cannot read $1" >&2
  exit 2
fi
cd "$(dirname "$(readlink -f "$0")")/.."
export STEPS=5
. deploy/steps.sh
build=${CUTWATER_BUILD_DIR:-build}
unset CUTWATER_BUILD_DIR   # the daemon takes every CUTWATER_ variable for a setting

# A private folder on a memory file system, gone at the end; the daemon gets one instance after the other in it.
private='' daemon=''
stop_daemon() {
  [ -n "$daemon" ] || return 0
  kill -TERM "$daemon" 2>/dev/null || true
  wait "$daemon" 2>/dev/null || true
  daemon=''
}
clean_up() {
  stop_daemon
  [ -z "$private" ] || rm -rf "$private"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

make_private() {
  local place
  for place in /dev/shm "${XDG_RUNTIME_DIR:-}" /run; do
    if [ -n "$place" ] && [ -w "$place" ] && [ "$(stat -f -c %T "$place" 2>/dev/null)" = tmpfs ]; then
      private=$(mktemp -d "$place/cutwater-quickstart.XXXXXX") && return
    fi
  done
  echo "no memory file system (tmpfs) to write to; mount one: mount -t tmpfs tmpfs /dev/shm" >&2
  return 1
}

# start_daemon NAME OPTION...: an instance of its own, from the annotated configuration; returns when it answers
start_daemon() {
  local home=$private/$1 waited=0
  shift
  mkdir -m 0700 "$home"
  "$build/bin/cutwaterd" --config deploy/cutwater.yaml --set "instance.memory-directory=$home" \
    --set "listen.unix.path=$home/cutwater.sock" "$@" >"$home.log" 2>&1 </dev/null &
  daemon=$!
  address=unix:$home/cutwater.sock
  until [ -S "$home/cutwater.sock" ] && "$build/bin/cutwaterctl" --address "$address" status >/dev/null 2>&1; do
    waited=$((waited + 1))
    if ! kill -0 "$daemon" 2>/dev/null || [ "$waited" -gt 200 ]; then
      echo "cutwaterd did not start; it said:" >&2
      cat "$home.log" >&2
      return 1
    fi
    sleep 0.1
  done
}

step "packages"
deploy/install-packages.sh build
step_done ""

step "build in $build"
configure_tree "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo
build_tree "$build" cutwaterd cutwaterctl cutwater-quickstart
step_done ""

step "main job: several processes, one limit, the time of the log"
make_private
start_daemon stepped --clock=stepped
verdict=0
"$build/bin/cutwater-quickstart" --address "$address" --limit per-client --workers 4 \
  ${log:+--log "$log"} || verdict=$?
[ "$verdict" -eq 0 ] || { echo "the main job failed (exit $verdict)" >&2; exit 1; }
stop_daemon
step_done ""

step "free run: decisions a second of 1, 2 and 4 processes"
start_daemon free
"$build/bin/cutwater-quickstart" --free-run --address "$address" --limit per-client --processes 1,2,4
step_done ""

step "stop"
stop_daemon
step_done "all is stopped; $SECONDS s in all"
echo "next: README.md shows the first client program; $build/bin/cutwaterd --config deploy/cutwater.yaml runs it for you"
