// SPDX-License-Identifier: Apache-2.0
#include "source_book.hpp"

namespace cutwater::server {

SourceBook::Source& SourceBook::source(std::uint32_t uid, std::uint64_t now_ns) {
  auto found = sources_.find(uid);
  if (found == sources_.end()) {
    if (sources_.size() >= kMaxSources) forget_quiet(now_ns);
    if (sources_.size() >= kMaxSources) {
      // So many uids at once: the one without connections that was quiet the longest makes room.
      auto oldest = sources_.end();
      for (auto it = sources_.begin(); it != sources_.end(); ++it) {
        if (it->second.connections != 0) continue;
        if (oldest == sources_.end() || it->second.seen_ns < oldest->second.seen_ns) oldest = it;
      }
      // With more connections than kMaxSources of as many uids there is none; then it grows.
      if (oldest != sources_.end()) sources_.erase(oldest);
    }
    found = sources_.emplace(uid, Source{}).first;
  }
  found->second.seen_ns = now_ns;
  return found->second;
}

SourceBook::Verdict SourceBook::opened(std::uint32_t uid, std::uint64_t now_ns) {
  Source& from = source(uid, now_ns);
  if (from.failed >= kMaxFailedHellos && now_ns - from.failed_since_ns < kMinuteNs &&
      may_be_silenced(uid)) {
    return Verdict::Silent;
  }
  if (connections_ >= bounds_.connections) return Verdict::TooManyInAll;
  if (from.connections >= bounds_.connections_per_source) return Verdict::TooManyOfSource;
  ++from.connections;
  ++connections_;
  return Verdict::Welcome;
}

void SourceBook::closed(std::uint32_t uid) noexcept {
  const auto found = sources_.find(uid);
  if (found == sources_.end() || found->second.connections == 0) return;
  --found->second.connections;
  --connections_;
}

bool SourceBook::hello_failed(std::uint32_t uid, std::uint64_t now_ns) {
  Source& from = source(uid, now_ns);
  if (from.failed == 0 || now_ns - from.failed_since_ns >= kMinuteNs) {
    from.failed = 0;
    from.failed_since_ns = now_ns;
  }
  return ++from.failed == kMaxFailedHellos && may_be_silenced(uid);
}

SourceBook::Say SourceBook::may_log(std::uint32_t uid, std::uint64_t now_ns) {
  Source& from = source(uid, now_ns);
  if (from.logged && now_ns - from.logged_ns < kMinuteNs) {
    ++from.unsaid;
    return {};
  }
  const Say say{true, from.unsaid};
  from.logged = true;
  from.logged_ns = now_ns;
  from.unsaid = 0;
  return say;
}

void SourceBook::forget_quiet(std::uint64_t now_ns) {
  std::erase_if(sources_, [&](const auto& entry) {
    return entry.second.connections == 0 && now_ns - entry.second.seen_ns >= kMinuteNs;
  });
}

}  // namespace cutwater::server
