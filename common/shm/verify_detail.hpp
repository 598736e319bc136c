// SPDX-License-Identifier: Apache-2.0
// What the files of verify share. Not for anybody else.
//
// Every check returns an empty text when all is well. The Verifier looks a second time before it
// believes a finding, with `current` and the clock read anew, because the segment may be in use: a
// change that was under way the first time is complete the second time.
#pragma once
#include <algorithm>
#include <string>

#include "shm/limit/rule_reader.hpp"
#include "shm/verify.hpp"
#include "shm/view.hpp"

namespace cutwater::shm::detail {

class Verifier {
 public:
  explicit Verifier(const View& of) : view(of), c(of.current()) {}

  const View& view;
  std::uint64_t c;                 ///< `current` of this look
  VerifyReport report;

  /// Runs `check` (returning a text, empty = fine); reports when it fails twice in a row.
  template <class Check>
  void expect(const char* what, std::uint64_t index, Check check) {
    if (check().empty()) return;
    c = view.current();
    std::string text = check();
    if (text.empty()) return;
    ++report.findings_total;
    if (report.findings.size() >= kMaxFindings) return;
    std::string place = what;
    if (index != kNoIndex) place += " " + std::to_string(index);
    report.findings.push_back({std::move(place), std::move(text)});
  }
  static constexpr std::uint64_t kNoIndex = ~std::uint64_t{0};

  /// The clock, held inside the horizon: a stepped one is a shared word that may hold anything.
  std::int64_t now() const noexcept {
    return std::clamp<std::int64_t>(view.clock.now(), 0, kHorizonNs);
  }
  /// The rule of an id, nullptr when the id is out of range or unused.
  const RuleRecord* known_rule(std::uint32_t id) const noexcept {
    if (id == 0 || id >= view.rule_count) return nullptr;
    const RuleRecord& rule = view.rule(c, static_cast<std::uint16_t>(id));
    return read_once(rule.kind) == static_cast<std::uint8_t>(RuleKind::Unused) ? nullptr : &rule;
  }
};

/// True when computing N(t) and N + D with this record overflows nowhere up to the horizon.
bool numbers_fit(const View& view, const RuleRecord& rule) noexcept;
/// ... of a RuleKind::Calendar: its step and its calendar.
bool steps_fit(const RuleRecord& rule, const View& view) noexcept;
/// True when `tat` lies beyond N(t) + D of a rule whose numbers fit.
bool beyond_reach(const Verifier& verifier, const RuleRecord& rule, std::int64_t t,
                  std::int64_t tat) noexcept;

void verify_control(Verifier& verifier);   ///< `current`, the stepped clock
void verify_image(Verifier& verifier);     ///< CRC, rules, limits, names
void verify_tables(Verifier& verifier);    ///< sets, overrides, patterns, calendars
void verify_buckets(Verifier& verifier);   ///< slots and overflow words
void verify_bulkheads(Verifier& verifier);
void verify_rows(Verifier& verifier);
void verify_breakers(Verifier& verifier);  ///< places, state words, windows, probe cells, users
void verify_stats(Verifier& verifier);     ///< owners of stripes, event records

}  // namespace cutwater::shm::detail
