// SPDX-License-Identifier: Apache-2.0
// Client::open(): find the daemon, be let in, map what it gives, check it, close the descriptors.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>      // program_invocation_short_name
#include <cstdlib>

#include "base/fork_page.hpp"
#include "shm/process_table.hpp"
#include "src/address.hpp"
#include "src/core.hpp"

namespace cutwater {
namespace {

/// Clocks of both ends may differ by this beyond the time the greeting took.
constexpr std::int64_t kClockSlackNs = 1'000'000'000;

/// The daemon gave less than the memory: which of the documented reasons it was, in its own words.
Error refused(const client::Connection& link, const wire::Welcome& welcome) {
  const std::string text = "the daemon at " + link.path() +
                           " does not share its memory with this process: " + welcome.why;
  if (welcome.why.find("clock") != std::string::npos ||
      welcome.why.find("time name") != std::string::npos) {
    return {Errc::ClockMismatch, text};
  }
  if (welcome.why.find("layout") != std::string::npos) return {Errc::LayoutMismatch, text};
  return {Errc::NotPermitted, text};
}

/// The library's own look at the clock, whatever the daemon thought: its reading must lie between
/// ours, as far as one second. Not for a stepped clock, which only its creator moves.
Result<void> check_clock(const client::Greeting& greeting, const shm::Segment& segment) {
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

Result<client::Greeting> greet(client::Connection& link, const ClientOptions& options,
                               client::Deadline deadline) {
  const std::string name = options.name.empty() ? program_invocation_short_name : options.name;
  auto greeting = link.hello(client::hello_for(name, wire::Want::Map), deadline);
  if (!greeting) return greeting.error();
  if (greeting->welcome.mode != wire::Want::Map || !greeting->files[0]) {
    return refused(link, greeting->welcome);
  }
  return greeting;
}

}  // namespace

Result<Client> Client::open(std::string_view address, const ClientOptions& options) {
  if (options.name.size() > wire::kMaxClientName) {
    return Error{Errc::InvalidArgument, "a client's name has at most 64 bytes, not " +
                                            std::to_string(options.name.size())};
  }
  const auto deadline = client::Deadline::in(options.timeout);
  auto found = client::find_address(address);
  if (!found) return found.error();
  auto link = client::Connection::connect(found->path, deadline);
  if (!link) return link.error();
  auto greeting = greet(*link, options, deadline);
  if (!greeting) return greeting.error();

  const shm::SegmentFiles files{greeting->files[0].get(), greeting->files[1].get(),
                                greeting->files[2].get()};
  auto segment = shm::Segment::map(files, shm::Access::Client);
  for (auto& file : greeting->files) file.reset();     // nothing stays open but the socket
  if (!segment) return segment.error();
  if (auto checked = check_clock(*greeting, *segment); !checked) return checked.error();

  const wire::Welcome& welcome = greeting->welcome;
  Core::Attached attached{std::move(*link),
                          {welcome.row_index, welcome.row_generation},
                          welcome.instance};
  return Client{std::make_unique<Core>(std::move(*segment), std::move(attached))};
}

}  // namespace cutwater
