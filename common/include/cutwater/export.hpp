// SPDX-License-Identifier: Apache-2.0
// CUTWATER_EXPORT marks what users of libcutwater.so may link
// to; everything else in it is hidden, so that the inside may change without breaking anybody.
#pragma once

#define CUTWATER_EXPORT __attribute__((visibility("default")))
