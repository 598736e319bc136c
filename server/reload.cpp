// SPDX-License-Identifier: Apache-2.0
#include "reload.hpp"

#include <fmt/format.h>

#include "config/diff.hpp"
#include "debt_count.hpp"
#include "log_writer.hpp"
#include "rows/config_report.hpp"
#include "shm/limit/bucket.hpp"

namespace cutwater::server {

namespace {

constexpr const char* kEnding = "nothing was reloaded, the running configuration stays";

std::uint64_t loop_now() {
  return static_cast<std::uint64_t>(
      std::chrono::steady_clock::now().time_since_epoch().count());
}

bool differs(const config::Log& a, const config::Log& b) {
  return a.level != b.level || a.format != b.format || a.file != b.file;
}

/// A log file that cannot be opened refuses the reload as a whole.
std::string try_log_file(const config::LoadOutcome& outcome) {
  if (!outcome.config || outcome.config->log.file.empty()) return {};
  auto opened = open_log_file(outcome.config->log.file);
  return opened ? std::string() : opened.error().text();
}

/// The short text of an event: `4:5 limits.api.brust: unknown key`, cut there. What a path names
/// below `keys` is a caller's and stays out.
std::string event_text(std::string_view first_error, const std::string& file) {
  std::string_view rest = first_error;
  if (!file.empty() && rest.starts_with(file + ":")) rest.remove_prefix(file.size() + 1);
  std::string out(rest.substr(0, rest.find(".keys.")));
  if (const auto colon = out.find(": "); colon != std::string::npos) out.erase(colon, 1);
  return out;
}

}  // namespace

std::string refusal_text(const std::vector<config::Finding>& errors) {
  std::string out;
  for (const config::Finding& finding : errors) out += finding.line() + "\n";
  out += fmt::format("{} error{}; {}", errors.size(), errors.size() == 1 ? "" : "s", kEnding);
  return out;
}

Reloader::Reloader(asio::io_context& loop, Memory& memory, Running& running, Log& log)
    : loop_(loop), memory_(memory), running_(running), log_(log) {}

Reloader::~Reloader() {
  if (thread_.joinable()) thread_.join();
}

void Reloader::request(Origin origin, Done done) {
  if (jobs_.size() >= kMaxWaiting) {
    done({false, fmt::format("{} changes are waiting already; {}", jobs_.size(), kEnding)});
    return;
  }
  jobs_.push_back({origin, std::move(done), {}, {}, std::nullopt, 0});
  if (jobs_.size() == 1) begin();
}

void Reloader::republish(std::function<Limits()> limits, Republished done) {
  if (jobs_.size() >= kMaxWaiting) {
    return done(Error(Errc::Busy, fmt::format("{} changes are waiting already; nothing was changed,"
                                              " ask again", jobs_.size())));
  }
  jobs_.push_back({Origin::Asked, {}, std::move(limits), std::move(done), std::nullopt, 0});
  if (jobs_.size() == 1) begin();
}

void Reloader::begin() {
  if (jobs_.front().limits) {
    jobs_.front().since_ns = loop_now();
    return try_publish(loop_now());
  }
  loading_ = true;
  if (thread_.joinable()) thread_.join();   // it has posted its outcome: it is about to end
  thread_ = std::thread([this, source = running_.source] {
    config::LoadOutcome outcome = source.load();
    std::string log_fault = try_log_file(outcome);
    asio::post(loop_, [this, outcome = std::move(outcome), fault = std::move(log_fault)]() mutable {
      loaded(std::move(outcome), std::move(fault));
    });
  });
}

void Reloader::loaded(config::LoadOutcome outcome, std::string log_fault) {
  loading_ = false;
  if (!outcome.config) return finish({false, outcome.report(kEnding)});
  const auto errors = config::reload_errors(running_.config, *outcome.config, running_.reserved);
  if (!errors.empty()) return finish({false, refusal_text(errors)});
  if (!log_fault.empty()) return finish({false, log_fault + "\n1 error; " + kEnding});
  const Origin origin = jobs_.front().origin;
  if (origin == Origin::Dry) {
    const auto unfit = rows::fit_errors(*outcome.config, running_.reserved);
    if (!unfit.empty()) return finish({false, refusal_text(unfit)});
    return finish({true, what_would_change(*outcome.config)});
  }
  // After a refusal the good file that is back is taken over again, so that everybody is told.
  if (origin == Origin::Watched && running_.refusal.empty() &&
      outcome.config->hash == running_.config.hash) {
    return finish({true, "the file says what runs already"});
  }
  jobs_.front().next = std::move(*outcome.config);
  jobs_.front().since_ns = loop_now();
  try_publish(loop_now());
}

/// The words of a dry reload: what would change, and how many keys in debt that touches.
std::string Reloader::what_would_change(const config::Config& next) const {
  const shm::View& view = memory_.view();
  const auto debts = count_debts(view);
  const auto keys_in_debt = [&](std::string_view name) -> std::optional<std::uint64_t> {
    const shm::LimitRef limit = shm::find_limit(view, name);
    if (!debts || limit.index == shm::kNoLimit) return std::nullopt;
    return (*debts)[limit.index];
  };
  const config::Diff found = config::diff(running_.config, next, running_.reserved, keys_in_debt);
  return "the configuration is good; nothing was changed (dry)\n" + found.text();
}

void Reloader::tick(std::uint64_t now_ns) {
  const bool ready = !jobs_.empty() && !loading_ && (jobs_.front().next || jobs_.front().limits);
  if (ready) try_publish(now_ns);
}

void Reloader::try_publish(std::uint64_t now_ns) {
  Job& job = jobs_.front();
  const bool manual = static_cast<bool>(job.limits);
  const Limits limits = manual      ? job.limits()
                        : effective_ ? effective_(job.next->limits)
                                     : job.next->limits;
  if (!manual) {
    memory_.publisher().set_breakers(job.next->breakers);
    memory_.publisher().set_bulkheads(job.next->bulkheads);
  }
  auto report = memory_.publisher().publish(limits, manual ? running_.config.hash : job.next->hash);
  // What was not published is wanted no longer: neither by manual acts nor by the next try.
  if (!report && !manual) {
    memory_.publisher().set_breakers(memory_.publisher().breakers());
    memory_.publisher().set_bulkheads(memory_.publisher().bulkheads());
  }
  if (report) return manual ? republished({}) : finish({true, accept(*report)});
  const bool later = report.error().code() == Errc::Busy && now_ns - job.since_ns < kPatienceNs;
  if (later) return;
  if (manual) return republished(report.error());
  finish({false, report.error().text() + "; " + kEnding});
}

void Reloader::republished(const Result<void>& result) {
  const Republished done = std::move(jobs_.front().republished);
  jobs_.pop_front();
  if (result && published_) published_();
  if (!jobs_.empty()) begin();
  done(result);
}

namespace {

/// "; breakers: 1 added, 0 changed, 0 removed, 3 unchanged"; empty where there are and were none.
template <class Settings>
std::string counted(std::string_view what, const std::vector<Settings>& before,
                    const std::vector<Settings>& after) {
  if (before.empty() && after.empty()) return {};
  std::map<std::string_view, const Settings*> gone;
  for (const Settings& one : before) gone.emplace(one.name, &one);
  std::size_t added = 0, changed = 0, unchanged = 0;
  for (const Settings& one : after) {
    const auto found = gone.find(one.name);
    if (found == gone.end()) ++added;
    else ++(*found->second == one ? unchanged : changed);
    if (found != gone.end()) gone.erase(found);
  }
  return fmt::format("; {}: {} added, {} changed, {} removed, {} unchanged", what, added, changed,
                     gone.size(), unchanged);
}

}  // namespace

/// The rules are published: from here on the new configuration is the running one.
std::string Reloader::accept(const shm::PublishReport& report) {
  config::Config& next = *jobs_.front().next;
  if (differs(next.log, running_.config.log)) {
    if (auto changed = log_.change(next.log); !changed) log_.error("{}", changed.error().text());
  }
  const std::string others = counted("breakers", running_.config.breakers, next.breakers) +
                             counted("bulkheads", running_.config.bulkheads, next.bulkheads);
  running_.config = std::move(next);
  ++running_.reloads;
  if (published_) published_();
  return fmt::format("reloaded: {} limits added, {} changed, {} removed, {} unchanged{}; "
                     "generation {}, config {:016x}{}",
                     report.added, report.changed, report.removed, report.unchanged, others,
                     report.generation, running_.config.hash,
                     report.effective_ns != 0 ? "; changed limits apply within 100 ms" : "");
}

void Reloader::finish(Verdict verdict) {
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  const bool unchanged = job.origin == Origin::Watched && verdict.ok && !job.next;
  if (job.origin != Origin::Dry && !unchanged) {
    running_.refusal = verdict.ok ? "" : verdict.text.substr(0, verdict.text.find('\n'));
    memory_.note(verdict.ok ? shm::EventKind::ConfigReloaded : shm::EventKind::ConfigRefused, 0,
                 verdict.ok ? fmt::format("config {:016x}", running_.config.hash)
                            : event_text(running_.refusal, running_.source.file));
    if (!verdict.ok) ++running_.reloads_refused;
  }
  if (verdict.ok) {
    // What a dry one would change is for who asked: many lines, and nothing happened.
    const std::string_view text = verdict.text;
    const bool dry = job.origin == Origin::Dry;
    if (!unchanged) log_.info("{}", dry ? text.substr(0, text.find('\n')) : text);
  } else {
    const char* refused = job.origin == Origin::Dry ? "dry reload refused" : "reload refused";
    for (std::size_t at = 0; at < verdict.text.size();) {
      const std::size_t end = std::min(verdict.text.find('\n', at), verdict.text.size());
      log_.warn("{}: {}", refused, std::string_view(verdict.text).substr(at, end - at));
      at = end + 1;
    }
  }
  if (!jobs_.empty()) begin();
  if (job.done) job.done(verdict);
}

}  // namespace cutwater::server
