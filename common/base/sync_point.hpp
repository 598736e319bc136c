// SPDX-License-Identifier: Apache-2.0
// CUTWATER_SYNC_POINT("place"): a named stop where a test can
// hold one thread, run another, and go on, so that a race is tested by order and not by luck.
// Present only in builds with -DCUTWATER_SYNC_POINTS (the test library); in the release library it
// is nothing at all.
#pragma once

#if defined(CUTWATER_SYNC_POINTS)
namespace cutwater {
/// Called at a sync point with its name when not null. Set it before any thread runs, clear it
/// after all have ended.
extern void (*sync_point_hook)(const char* name);
inline void sync_point(const char* name) { if (sync_point_hook != nullptr) sync_point_hook(name); }
}  // namespace cutwater
#define CUTWATER_SYNC_POINT(name) ::cutwater::sync_point(name)
#else
#define CUTWATER_SYNC_POINT(name) void(0)
#endif
