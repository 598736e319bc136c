# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What deploy/quickstart.sh, tests/run.sh and .ci/ share: numbered steps with seconds, and a build that shows how far
# it is. Source it from the root; set STEPS to the number of steps first.

# One tree's compilations serve another clone of it: paths relative to the root, in ccache's eyes.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true

step_number=0
step_started=$SECONDS

step() {  # step TEXT: begins the next step
  step_number=$((step_number + 1))
  step_started=$SECONDS
  printf '[%d/%d] %s\n' "$step_number" "${STEPS:?}" "$*"
}

step_done() {  # step_done TEXT: ends it, with its seconds
  printf '[%d/%d] done in %d s%s\n' "$step_number" "$STEPS" $((SECONDS - step_started)) "${1:+: $1}"
}

# build_tree DIR TARGET...: builds with ninja, a line of progress every few seconds; the whole output is in
# DIR/build.log, its end is shown when the build fails. Without targets: everything. KEEP_GOING=yes: what can be built
# is built although something else fails.
build_tree() {
  local dir=$1 log=$1/build.log job status shown='' line
  shift
  cmake --build "$dir" ${1:+--target "$@"} ${KEEP_GOING:+-- -k0} >"$log" 2>&1 </dev/null &
  job=$!
  while kill -0 "$job" 2>/dev/null; do
    line=$(grep -o '^\[[0-9]*/[0-9]*\]' "$log" 2>/dev/null | tail -n 1 || true)
    if [ -n "$line" ] && [ "$line" != "$shown" ] && [ $(((SECONDS - step_started) % 5)) -eq 0 ]; then
      printf '      built %s, %d s\n' "${line//[\[\]]/}" $((SECONDS - step_started))
      shown=$line
    fi
    sleep 1
  done
  status=0
  wait "$job" || status=$?
  if [ "$status" -ne 0 ]; then
    grep -nE 'FAILED|error:|undefined reference' "$log" | head -n 40 || true
    tail -n 25 "$log"
    echo "the build failed; the whole output: $log"
  fi
  return "$status"
}

# configure_tree DIR CMAKE-ARGUMENT...: configures quietly; the output is in DIR/configure.log, shown when it fails.
configure_tree() {
  local dir=$1
  shift
  mkdir -p "$dir"
  if ! cmake -S . -B "$dir" -G Ninja "$@" >"$dir/configure.log" 2>&1 </dev/null; then
    cat "$dir/configure.log"
    return 1
  fi
}
