// SPDX-License-Identifier: Apache-2.0
#include "src/attach.hpp"

#include "shm/process_table.hpp"
#include "src/address.hpp"
#include "src/ask/left_behind.hpp"

namespace cutwater::client {
namespace {

/// Clocks of both ends may differ by this beyond the time the greeting took.
constexpr std::int64_t kClockSlackNs = 1'000'000'000;

/// The library's own look at the clock, whatever the daemon thought: its reading must lie between
/// ours, as far as one second. Not for a stepped clock, which only its creator moves.
Result<void> check_clock(const Greeting& greeting, const shm::Segment& segment) {
  const shm::FileHeader& header = segment.header(shm::FileKind::Rules);
  if (header.clock != static_cast<std::uint32_t>(shm::ClockKind::Boottime)) return {};
  const std::uint64_t ours = shm::time_namespace_of_self();
  if (ours != 0 && header.time_namespace != 0 && ours != header.time_namespace) {
    return Error{Errc::ClockMismatch,
                 "this process lives in time namespace " + std::to_string(ours) +
                     ", the memory's clock in " + std::to_string(header.time_namespace) +
                     "; start it in the daemon's time namespace"};
  }
  const std::int64_t told =
      static_cast<std::int64_t>(greeting.welcome.clock_ns) + header.epoch_ns;
  if (told < greeting.sent_ns - kClockSlackNs || told > greeting.received_ns + kClockSlackNs) {
    return Error{Errc::ClockMismatch, "the daemon's clock and this process's differ by " +
                                          std::to_string((told - greeting.sent_ns) / 1'000'000) +
                                          " ms; start both in one time namespace"};
  }
  return {};
}

Result<shm::Segment> map(Greeting& greeting) {
  const shm::SegmentFiles files{greeting.files[0].get(), greeting.files[1].get(),
                                greeting.files[2].get()};
  auto segment = shm::Segment::map(files, shm::Access::Client);
  for (auto& file : greeting.files) file.reset();      // nothing stays open but the socket
  if (!segment) return segment;
  if (auto checked = check_clock(greeting, *segment); !checked) return checked.error();
  return segment;
}

Result<Attachment> asking(Connection link, Greeting greeting, std::string why) {
  const std::string& told = greeting.welcome.why;
  if ((greeting.welcome.rights & wire::kRightUse) == 0) {
    return Error{Errc::NotPermitted, "the daemon at " + link.path() +
                                         " answers no limits to this process" +
                                         (told.empty() ? "" : ": " + told)};
  }
  Attachment out;
  out.asking.emplace(Attachment::Asking{std::move(link), std::move(greeting)});
  out.why = std::move(why);
  return out;
}

/// A connection of its own to ask in, because `why`.
Result<Attachment> ask_instead(const Settings& settings, const std::string& path, std::string why,
                               Deadline deadline, const std::string& session) {
  auto link = Connection::connect(path, deadline);
  if (!link) return link.error();
  wire::Hello hello = hello_for(settings.name, wire::Want::Ask);
  hello.features = wire::kFeatureRemember;
  hello.session = session;
  auto greeting = link->hello(std::move(hello), deadline);
  if (!greeting) return greeting.error();
  return asking(std::move(*link), std::move(*greeting), std::move(why));
}

Result<Attachment> attach_at(const Settings& settings, const Address& found, Deadline deadline,
                             std::string row_token, const std::string& session) {
  if (found.ask) return ask_instead(settings, found.path, "", deadline, session);
  auto link = Connection::connect(found.path, deadline);
  if (!link) return link.error();
  wire::Hello hello = hello_for(settings.name, wire::Want::Map);
  hello.features = wire::kFeatureRemember;
  hello.session = row_token.empty() ? session : std::move(row_token);
  auto greeting = link->hello(std::move(hello), deadline);
  if (!greeting) {
    // Descriptors that are not what was announced; every other fault shows again.
    if (greeting.error().code() != Errc::Protocol) return greeting.error();
    return ask_instead(settings, found.path, greeting.error().text(), deadline, session);
  }
  if (greeting->welcome.mode != wire::Want::Map || !greeting->files[0]) {
    std::string why = greeting->welcome.why;
    return asking(std::move(*link), std::move(*greeting), std::move(why));
  }
  auto segment = map(*greeting);
  if (!segment) {
    link->bye();
    return ask_instead(settings, found.path, segment.error().text(), deadline, session);
  }
  const wire::Welcome& welcome = greeting->welcome;
  Attachment out;
  out.memory.emplace(Attachment::Memory{
      std::move(*segment),
      {std::move(*link), {welcome.row_index, welcome.row_generation}, welcome.instance,
       welcome.session}});
  return out;
}

}  // namespace

Result<Attachment> attach(const Settings& settings, Deadline deadline, std::string row_token,
                          const std::string& session) {
  auto found = find_address(settings.address);
  if (!found) return found.error();
  auto out = attach_at(settings, *found, deadline, std::move(row_token), session);
  if (out) (void)LeftBehind::end_all(found->path, settings.name, deadline);
  return out;
}

bool offer_row(const Settings& settings, Client::Core& core, Deadline deadline) {
  const shm::RowGrant row = core.row();
  auto found = find_address(settings.address);
  if (!found || found->ask || row.index == 0) return true;
  auto link = Connection::connect(found->path, deadline);
  if (!link) return false;
  wire::Hello hello = hello_for(settings.name, wire::Want::Row);
  hello.segment.assign(reinterpret_cast<const char*>(core.view().uuid), wire::kIdSize);
  hello.session = core.row_token();
  auto greeting = link->hello(std::move(hello), deadline);
  if (!greeting) return greeting.error().code() == Errc::NotPermitted;
  const wire::Welcome& welcome = greeting->welcome;
  const bool same = welcome.mode == wire::Want::Row && welcome.row_index == row.index &&
                    welcome.row_generation == row.generation;
  if (same) {
    core.row_offered(std::make_unique<Connection>(std::move(*link)), welcome.session);
  } else {
    link->bye();
  }
  return true;
}

bool is_lasting(const Error& error) noexcept {
  return error.code() == Errc::InvalidArgument || error.code() == Errc::Unsupported;
}

}  // namespace cutwater::client
