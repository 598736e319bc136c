#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is needed, builds everything, runs the tests.
#
#   tests/run.sh [--cache FILE] [--labels REGEX] [--without REGEX] [--only REGEX]
#
#   --cache FILE     initial CMake settings (.ci/cache/asan.cmake, ...); then only the tests that will run are built
#   --labels REGEX   which labels to run (default: all but none)
#   --without REGEX  tests to leave out by name
#   --only REGEX     of the others, those with such a name
#   CUTWATER_BUILD_DIR  where to build (default: build)
#
# The last line is `N passed, N failed, N skipped`, counted in test cases. Exit 0 when at least one passed and none
# failed. Works as root and as a user; a test that needs a privilege this user lacks is skipped, counted and named.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
export STEPS=4
. deploy/steps.sh

build=${CUTWATER_BUILD_DIR:-build} cache='' labels='unit|fuzz|model|stress|crash|integration' without='' only=''
while [ $# -gt 0 ]; do
  case $1 in
    --cache) cache=$2 ;;
    --labels) labels=$2 ;;
    --without) without=$2 ;;
    --only) only=$2 ;;
    *) sed -n '3,14s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift 2
done

# The programs of the tests that will run; all of them when one of these is no program but, say, a script.
selected() {
  local name names
  mapfile -t names < <(ctest --test-dir "$build" -N -L "^($labels)\$" ${without:+-E "$without"} ${only:+-R "$only"} |
    sed -n 's/^ *Test *#[0-9]*: //p')
  for name in "${names[@]}"; do
    grep -q "^build $name: phony" "$build/build.ninja" || { echo cutwater_tests; return; }
  done
  printf '%s\n' "${names[@]}"
}

give_up() { echo "$*"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }

step "packages"
deploy/install-packages.sh build test || give_up "packages are missing"
step_done ""

step "configure and build in $build"
targets=()
if [ -n "$cache" ]; then
  configure_tree "$build" -C "$cache" || give_up "the configuration failed"
  mapfile -t targets < <(selected)
else
  configure_tree "$build" -DCUTWATER_DEV=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo || give_up "the configuration failed"
fi
build_tree "$build" "${targets[@]}" || give_up "the build failed"
step_done ""

step "run the tests: $labels${without:+, without $without}"
results=$build/results
rm -rf "$results"
mkdir -p "$results"
results=$(readlink -f "$results")
# Every gtest executable writes NAME.xml there; one that dies leaves none and is counted by what ctest says.
status=0
GTEST_OUTPUT="xml:$results/" CTEST_OUTPUT_ON_FAILURE=1 \
  ctest --test-dir "$build" -L "^($labels)\$" ${without:+-E "$without"} ${only:+-R "$only"} -j2 --no-tests=error --timeout 300 \
  --output-junit "$results/ctest.junit" </dev/null || status=$?
step_done ""

step "summary"
# cases FILE...: `passed failed skipped` of gtest's XML files
cases() {
  awk '
    /<testsuites / { match($0, /tests="[0-9]+"/); all += substr($0, RSTART + 7, RLENGTH - 8)
                     match($0, /failures="[0-9]+"/); failed += substr($0, RSTART + 10, RLENGTH - 11)
                     match($0, /disabled="[0-9]+"/); disabled += substr($0, RSTART + 10, RLENGTH - 11) }
    /<testcase .*result="skipped"/ { skipped++ }
    END { printf "%d %d %d\n", all - failed - skipped - disabled, failed, skipped + disabled }' "$@" /dev/null
}
# The executables ctest calls failed whose own file tells of no failed case: they crashed, hung or never started.
died() {
  local name file files failed
  awk -F'"' '/<testcase / { name = $2 } /<failure/ { print name }' "$results/ctest.junit" | while read -r name; do
    files=()
    for file in "$results/$name.xml" "$results/$name"_[0-9]*.xml; do [ ! -f "$file" ] || files+=("$file"); done
    read -r _ failed _ < <(cases "${files[@]}")
    [ "$failed" -gt 0 ] || printf '%s\n' "$name"
  done
}
shopt -s nullglob
read -r passed failed skipped < <(cases "$results"/*.xml)
[ -f "$results/ctest.junit" ] || give_up "ctest did not finish"
for name in $(died); do
  failed=$((failed + 1))
  echo "FAILED $name as a whole (crash, time-out or not started); alone: $build/tests/$name"
done
awk -v build="$build" '
  FNR == 1 { program = FILENAME; sub(/.*\//, "", program); sub(/(_[0-9]+)?\.xml$/, "", program) }
  /<testcase / { match($0, /name="[^"]*"/); name = substr($0, RSTART + 6, RLENGTH - 7)
                 match($0, /classname="[^"]*"/); suite = substr($0, RSTART + 11, RLENGTH - 12); told = 0 }
  /<failure/ && !told { told = 1
    printf "FAILED %s.%s; alone: %s/tests/%s --gtest_filter=%s.%s\n", suite, name, build, program, suite, name }
  /<skipped/ { why = $0; sub(/.*message="/, "", why); sub(/".*/, "", why); sub(/.*&#x0A;/, "", why)
    printf "not run: %s.%s: %s\n", suite, name, why }' "$results"/*.xml /dev/null
[ "$skipped" -eq 0 ] || echo "$skipped cases were not run for lack of a privilege; run as root to run them all"
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
step_done "$SECONDS s in all"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
