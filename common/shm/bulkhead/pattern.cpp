// SPDX-License-Identifier: Apache-2.0
// Names of bulkheads, also of those a pattern made: shm/pattern_place.hpp told where they lie.
#include <algorithm>

#include "shm/bulkhead/detail.hpp"
#include "shm/limit/rule_reader.hpp"
#include "shm/pattern_place.hpp"

namespace cutwater::shm {
namespace {

const BulkheadConfig& config_at(const View& view, std::uint64_t current,
                                std::uint32_t index) noexcept {
  return reinterpret_cast<const BulkheadConfig*>(view.image[current & kCurrentImageBit] +
                                                 view.image_bulkheads_offset)[index];
}

}  // namespace

PatternEntry bulkhead_entry(const View& view, const BulkheadConfig& config,
                            std::uint32_t index) noexcept {
  PatternEntry out;
  out.used = read_once(config.used) != 0;
  out.kind = read_once(config.kind);
  out.incarnation = read_once(config.incarnation);
  out.pattern = read_once(config.pattern);
  if (out.kind != kNamedEntry) out.place = &view.bulkheads[index].place;
  return out;
}

void bulkhead_name(const View& view, std::uint64_t current, std::uint32_t index, char* out,
                   std::size_t size) noexcept {
  const BulkheadConfig& config = config_at(view, current, index);
  if (read_once(config.kind) == kInstanceEntry) {
    return taken_name(bulkhead_entry(view, config, index), out, size);
  }
  const auto* names = reinterpret_cast<const NameRecord*>(view.image[current & kCurrentImageBit] +
                                                          view.image_bulkhead_names_offset);
  const NameRecord& name = names[index];
  const std::size_t length = std::min<std::size_t>({read_once(name.length), sizeof name.text,
                                                    size - 1});
  for (std::size_t i = 0; i < length; ++i) out[i] = read_once(name.text[i]);
  out[length] = 0;
}

std::uint32_t BulkheadSide::count() const noexcept { return view().bulkhead_count; }

PatternEntry BulkheadSide::entry(std::uint64_t current, std::uint32_t index) const noexcept {
  return bulkhead_entry(view(), config_at(view(), current, index), index);
}

void BulkheadSide::name(std::uint64_t current, std::uint32_t index, char* out,
                        std::size_t size) const noexcept {
  bulkhead_name(view(), current, index, out, size);
}

void BulkheadSide::count_beyond(StripeHandle stripe, std::uint32_t pattern) const noexcept {
  count_bulkhead(view(), stripe, pattern, BulkheadCounter::BeyondInstances);
}

std::uint64_t BulkheadSide::uses(std::uint32_t index) const noexcept {
  return bulkhead_uses(view(), index);
}

bool BulkheadSide::rests(std::uint32_t index) const noexcept {
  BulkheadParts parts;
  return read_parts(view(), index, parts) && line_is_quiet(load_line(parts)) &&
         count_places(parts) == 0;
}

BulkheadRef find_bulkhead(const View& view, std::string_view name) noexcept {
  const ResolvedName found = find_name(BulkheadSide(view), name);
  return {found.index, found.incarnation};
}

ResolvedBulkhead resolve_bulkhead(const View& view, std::string_view name,
                                  StripeHandle stripe) noexcept {
  const ResolvedName found = resolve_name(BulkheadSide(view), name, stripe);
  return {{found.index, found.incarnation}, found.shared};
}

}  // namespace cutwater::shm
