// SPDX-License-Identifier: Apache-2.0
#include "shm/image.hpp"

#include <cstring>

#include "base/crc32c.hpp"

namespace cutwater::shm {

std::uint32_t image_crc(const View& view, int image) noexcept {
  return crc32c(view.image[image] + sizeof(ImageHead), view.image_length - sizeof(ImageHead));
}

bool image_is_whole(const View& view, int image) noexcept {
  const auto& head = *reinterpret_cast<const ImageHead*>(view.image[image]);
  return head.length == view.image_length && head.crc32c == image_crc(view, image);
}

void write_empty_image(View& view, int image) noexcept {
  auto* bytes = const_cast<std::uint8_t*>(view.image[image]);
  std::memset(bytes, 0, view.image_length);
  auto& head = *reinterpret_cast<ImageHead*>(bytes);
  head.generation = 1;
  head.length = static_cast<std::uint32_t>(view.image_length);
  head.crc32c = image_crc(view, image);
}

}  // namespace cutwater::shm
