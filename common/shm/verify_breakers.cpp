// SPDX-License-Identifier: Apache-2.0
// verify: breakers. Places within the breaker memory, the state word, the window, probe cells and
// users. Reads only, so it looks for itself where a caller would repair and count.
#include <algorithm>
#include <string>

#include "shm/breaker/layout.hpp"
#include "shm/breaker/ring.hpp"
#include "shm/verify_detail.hpp"

namespace cutwater::shm::detail {
namespace {

constexpr std::uint64_t kSpareStateBits = std::uint64_t{0x1ff} << 23;
constexpr std::uint64_t kMaxRingCells = 1u << 17;
constexpr std::int64_t kProbeSlackNs = 1'000'000'000;

const BreakerConfig& config_of(const Verifier& v, std::uint32_t index) {
  return reinterpret_cast<const BreakerConfig*>(v.view.image[v.c & kCurrentImageBit] +
                                                v.view.image_breakers_offset)[index];
}

bool inside(const View& view, std::uint32_t line, std::uint64_t bytes) {
  return line != kNoLine && std::uint64_t{line} * kCacheLine + bytes <=
                                view.breaker_lines * std::uint64_t{kCacheLine};
}

std::uint8_t* at_line(const View& view, std::uint32_t line) {
  return view.breaker_memory + std::uint64_t{line} * kCacheLine;
}

RingView ring_at(const View& view, std::uint32_t line, std::uint64_t mask) {
  std::uint8_t* const at = at_line(view, line);
  return {reinterpret_cast<BreakerRing*>(at),
          reinterpret_cast<Word16*>(at + sizeof(BreakerRing)), mask};
}

bool is_time(const BreakerConfig& c) {
  return c.numbers.window_type == static_cast<std::uint8_t>(rule::WindowType::TimeBased);
}

std::string check_places(const View& view, const BreakerConfig& c) {
  const std::uint64_t cells = std::uint64_t{c.ring_mask} + 1;
  if ((cells & (cells - 1)) != 0 || cells > kMaxRingCells ||
      !inside(view, c.ring, ring_bytes(cells))) {
    return "its ring lies outside the breaker memory";
  }
  if (c.numbers.probes == 0 || c.numbers.probes > rule::kMaxProbes ||
      !inside(view, c.probe_cells, c.numbers.probes * sizeof(Word16))) {
    return "its probe cells lie outside the breaker memory";
  }
  if (c.users > kBreakerUsers ||
      !inside(view, c.user_records, c.users * sizeof(BreakerUser))) {
    return "its user records lie outside the breaker memory";
  }
  return "";
}

std::string check_word(const View& view, std::uint32_t index) {
  const Word16 raw = load16(&view.breakers[index].state);
  const BreakerWord word = unpack_breaker(raw);
  if (static_cast<std::uint8_t>(word.state) >= rule::kBreakerStates ||
      static_cast<std::uint8_t>(word.previous) >= rule::kBreakerStates) {
    return "is in a state that does not exist";
  }
  if ((raw.lo & kSpareStateBits) != 0) return "its reserved bits are not 0";
  if (rule::name_of(word.reason) == "unknown") return "has a reason that does not exist";
  if (word.deadline_ns < 0 || word.deadline_ns > kHorizonNs) return "ends at an impossible time";
  if (word.state == rule::BreakerState::Open && word.deadline_ns == 0) return "is open for ever";
  return "";
}

/// COUNT: the cells of the window lie in their places and each counts one outcome more.
std::string check_count_ring(const RingView& ring, std::uint32_t epoch) {
  const CountTail tail = find_count_tail(ring);
  if (!tail.found) return "its window has no newest outcome";
  if (older_epoch(epoch, tail.cell.epoch)) return "its window is of an epoch to come";
  CountCell later = tail.cell;
  const std::uint64_t most = std::min<std::uint64_t>(tail.cell.n, ring.mask);
  for (std::uint64_t i = 1; i <= most; ++i) {
    const std::uint64_t at = (tail.at - i) & kSeqMask;
    const CountCell cell = unpack_count(load16(ring.cells + (at & ring.mask)));
    if (cell.seq != at) return i >= ring.mask - kRingSpare ? "" : "its window has a hole";
    if (((later.failures - cell.failures) & kCountMask) > 1 ||
        ((later.slow - cell.slow) & kCountMask) > 1) {
      return "an outcome of its window counts more than one";
    }
    if (i < most && cell.n + 1 != later.n && later.n != kCountMask) {
      return "an outcome of its window has a wrong number";
    }
    later = cell;
  }
  return "";
}

/// TIME: slots count on from one another, and none is of the future.
std::string check_time_ring(const RingView& ring, const BreakerConfig& c, std::int64_t now) {
  const std::uint32_t limit = (slot_of(now, c.numbers.slot_ns) + 1) & kSlotMask;
  const auto behind = [&](std::uint32_t slot) { return (limit - slot) & kSlotMask; };
  bool found = false;
  std::uint32_t newest = 0;
  for (std::uint64_t i = 0; i <= ring.mask; ++i) {
    const std::uint32_t slot = unpack_time(load16(ring.cells + i)).slot;
    if ((slot & ring.mask) != i) return "a slot of its window lies in a wrong place";
    if (behind(slot) > kSlotMask / 2) return "a slot of its window is of the future";
    if (!found || behind(slot) < behind(newest)) newest = slot;
    found = true;
  }
  TimeCell later = unpack_time(load16(ring.cells + (newest & ring.mask)));
  for (std::uint32_t i = 1; i <= c.numbers.slots; ++i) {
    const std::uint32_t slot = (newest - i) & kSlotMask;
    const TimeCell cell = unpack_time(load16(ring.cells + (slot & ring.mask)));
    if (cell.slot != slot) return "";                // older than what was opened at once
    const std::uint32_t calls = later.total - cell.total;
    if (((later.failures - cell.failures) & kTimeFailMask) > calls ||
        later.slow - cell.slow > calls) {
      return "a slot of its window has more failures than calls";
    }
    later = cell;
  }
  return "";
}

std::string check_window(const Verifier& v, const BreakerConfig& c, std::uint32_t index) {
  const std::uint32_t epoch = epoch_of(load16(&v.view.breakers[index].state).lo);
  const RingView ring = ring_at(v.view, c.ring, c.ring_mask);
  return is_time(c) ? check_time_ring(ring, c, v.now()) : check_count_ring(ring, epoch);
}

std::string check_probe(const Verifier& v, const BreakerConfig& c, std::uint32_t index,
                        std::uint32_t i) {
  const auto* cells = reinterpret_cast<const Word16*>(at_line(v.view, c.probe_cells));
  const ProbeCell cell = unpack_probe(load16(cells + i));
  const std::uint32_t epoch = epoch_of(load16(&v.view.breakers[index].state).lo);
  const std::string which = "probe " + std::to_string(i) + " ";
  if (cell.state > ProbeState::Spent) return which + "is in a state that does not exist";
  if (older_epoch(epoch, cell.epoch)) return which + "is of an epoch to come";
  if (cell.row >= v.view.row_count) return which + "is held by a row that does not exist";
  if (cell.state != ProbeState::Held) return "";
  const std::int64_t most =
      v.now() + static_cast<std::int64_t>(rule::kMaxProbeTimeoutNs) + kProbeSlackNs;
  if (cell.deadline_us > static_cast<std::uint64_t>(most) / 1'000) {
    return which + "is held for longer than a probe can be";
  }
  return "";
}

std::string check_user(const Verifier& v, const BreakerConfig& c, std::uint32_t index,
                       std::uint32_t i) {
  const auto& user = reinterpret_cast<const BreakerUser*>(at_line(v.view, c.user_records))[i];
  const std::string which = "user " + std::to_string(i) + " ";
  const std::uint64_t owner = read_once(user.owner);
  const std::uint32_t epoch = epoch_of(load16(&v.view.breakers[index].state).lo);
  if (owner_row(owner) >= v.view.row_count || (owner != 0 && owner_row(owner) == 0)) {
    return which + "is a row that does not exist";
  }
  const UserView view = unpack_view(load16(&user.view));
  if (older_epoch(epoch, view.epoch) && view.epoch != 0) return which + "is of an epoch to come";
  return "";
}

}  // namespace

void verify_breakers(Verifier& v) {
  for (std::uint32_t i = 0; i < v.view.breaker_count; ++i) {
    const auto with_config = [&](auto check) {
      return [&, check]() -> std::string {
        const BreakerConfig c = config_of(v, i);
        if (read_once(c.used) == 0 || !check_places(v.view, c).empty()) return "";
        return check(c);
      };
    };
    v.expect("breaker", i, [&]() -> std::string {
      const BreakerConfig c = config_of(v, i);
      return c.used == 0 ? "" : check_places(v.view, c);
    });
    v.expect("breaker", i, with_config([&](const BreakerConfig&) {
      return check_word(v.view, i);
    }));
    v.expect("breaker", i, with_config([&](const BreakerConfig& c) {
      return check_window(v, c, i);
    }));
    for (std::uint32_t p = 0; p < rule::kMaxProbes; ++p) {
      v.expect("breaker", i, with_config([&](const BreakerConfig& c) {
        return p < c.numbers.probes ? check_probe(v, c, i, p) : std::string{};
      }));
    }
    for (std::uint32_t u = 0; u < kBreakerUsers; ++u) {
      v.expect("breaker", i, with_config([&](const BreakerConfig& c) {
        return u < c.users ? check_user(v, c, i, u) : std::string{};
      }));
    }
  }
}

}  // namespace cutwater::shm::detail
