# SPDX-License-Identifier: Apache-2.0
# ThreadSanitizer, threads over one mapping: cmake -C .ci/cache/tsan.cmake -S . -B build/tsan -G Ninja
set(CUTWATER_DEV ON CACHE BOOL "")
set(CUTWATER_SANITIZE "thread" CACHE STRING "")
# -O1: a third less time to compile than with -O2.
set(CMAKE_BUILD_TYPE Sanitized CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_SANITIZED "-O1 -g1" CACHE STRING "" FORCE)
# Asio has stand-alone fences, which this sanitizer does not know; ours has none (.ci/lint).
set(CMAKE_CXX_FLAGS "-Wno-tsan" CACHE STRING "" FORCE)
