# SPDX-License-Identifier: Apache-2.0
# AddressSanitizer and UndefinedBehaviorSanitizer: cmake -C .ci/cache/asan.cmake -S . -B build/asan -G Ninja
set(CUTWATER_DEV ON CACHE BOOL "")
set(CUTWATER_SANITIZE "address,undefined" CACHE STRING "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
