// SPDX-License-Identifier: Apache-2.0
// The rule image as a whole: its checksum and its empty form. What is in it: shm/layout.hpp; how
// the next one is published: shm/publisher.hpp.
//
// The sum covers everything behind the ImageHead up to the image's length. It is of use only while
// nobody writes the image: the current one stands still between two publications.
// Process safety: image_crc reads from anybody; write_empty_image is the daemon's, on an image that
// `current` does not name (or before the ready word).
#pragma once
#include <cstdint>

#include "shm/view.hpp"

namespace cutwater::shm {

/// CRC32C of everything behind the head of image 0 or 1.
std::uint32_t image_crc(const View& view, int image) noexcept;

/// True when the head's length and checksum fit what lies behind it.
bool image_is_whole(const View& view, int image) noexcept;

/// Makes image 0 or 1 one with no limit and no rule: generation 1, all zero behind the head.
void write_empty_image(View& view, int image) noexcept;

}  // namespace cutwater::shm
