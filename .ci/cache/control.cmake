# SPDX-License-Identifier: Apache-2.0
# Negative controls: a build that leaves one guard out. .ci/controls adds -DCUTWATER_GUARD_REMOVED=NAME.
set(CUTWATER_DEV ON CACHE BOOL "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
