# SPDX-License-Identifier: Apache-2.0
# AddressSanitizer and UndefinedBehaviorSanitizer: cmake -C .ci/cache/asan.cmake -S . -B build/asan -G Ninja
set(CUTWATER_DEV ON CACHE BOOL "")
set(CUTWATER_SANITIZE "address,undefined" CACHE STRING "")
# -O1: a third less time to compile than with -O2.
set(CMAKE_BUILD_TYPE Sanitized CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_SANITIZED "-O1 -g1" CACHE STRING "" FORCE)
