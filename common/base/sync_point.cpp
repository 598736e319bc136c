// SPDX-License-Identifier: Apache-2.0
// Only in cutwater_common_sync.
#include "base/sync_point.hpp"

namespace cutwater {

void (*sync_point_hook)(const char* name) = nullptr;

}  // namespace cutwater
