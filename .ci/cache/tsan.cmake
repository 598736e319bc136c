# SPDX-License-Identifier: Apache-2.0
# ThreadSanitizer, threads over one mapping: cmake -C .ci/cache/tsan.cmake -S . -B build/tsan -G Ninja
set(CUTWATER_DEV ON CACHE BOOL "")
set(CUTWATER_SANITIZE "thread" CACHE STRING "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
# Asio has stand-alone fences, which this sanitizer does not know; ours has none (.ci/lint).
set(CMAKE_CXX_FLAGS "-Wno-tsan" CACHE STRING "" FORCE)
