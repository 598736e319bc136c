# SPDX-License-Identifier: Apache-2.0
# libFuzzer with ASan and UBSan, clang only: cmake -C .ci/cache/fuzz.cmake -S . -B build/fuzz -G Ninja
set(CUTWATER_DEV ON CACHE BOOL "")
set(CUTWATER_FUZZ ON CACHE BOOL "")
set(CUTWATER_SANITIZE "address,undefined" CACHE STRING "")
set(CMAKE_CXX_COMPILER clang++ CACHE STRING "")
# -O1: a third less time to compile than with -O2.
set(CMAKE_BUILD_TYPE Sanitized CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_SANITIZED "-O1 -g1" CACHE STRING "" FORCE)
