# SPDX-License-Identifier: Apache-2.0
# Negative controls: a build in which each process leaves out the guard that $GUARD_LEFT_OUT says.
set(CUTWATER_DEV ON CACHE BOOL "")
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "")
set(CUTWATER_GUARD_REMOVED BY_ENVIRONMENT CACHE STRING "")
