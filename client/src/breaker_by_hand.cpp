// SPDX-License-Identifier: Apache-2.0
// Breaker::transition_to(): made here in memory, by the daemon where there is one to look after it.
#include "rule/breaker_settings.hpp"
#include "shm/breaker/transition.hpp"
#include "src/address.hpp"
#include "src/breaker_record.hpp"
#include "src/connection.hpp"
#include "src/daemon_link.hpp"
#include "src/no_memory.hpp"
#include "wire/breaker_verbs.hpp"
#include "wire/message.hpp"

namespace cutwater {
namespace {

Errc errc_of(std::uint16_t code) noexcept {
  switch (code) {
    case wire::kSteerNotPermitted: return Errc::NotPermitted;
    case wire::kSteerNoSuchName: return Errc::UnknownName;
    case wire::kSteerNoRoom: return Errc::Busy;
    default: return Errc::InvalidArgument;
  }
}

/// As the command line does it: the rights are those of this process's user.
Result<std::string> let_daemon_do(const client::Settings& settings, const wire::Steer& asked) {
  const auto deadline = client::Deadline::in(settings.timeout);
  const auto found = client::find_address(settings.address);
  if (!found) return found.error();
  auto link = client::Connection::connect(found->path, deadline);
  if (!link) return link.error();
  const auto greeting =
      link->hello(client::hello_for(settings.name, wire::Want::Ask), deadline);
  if (!greeting) return greeting.error();
  const auto answer = link->steer(asked, deadline);
  if (!answer) return answer.error();
  link->bye();
  if (answer->code != wire::kSteerDone) return Error{errc_of(answer->code), answer->text};
  return answer->text;
}

Result<std::string> move(const detail::BreakerRecord& record, const shm::TransitionAsk& ask) {
  if (auto checked = shm::check_transition(ask); !checked) return checked.error();
  const client::DaemonLink* const link = record.link;
  if (link == nullptr) {
    // The only memory there is; its rules may have lost the name.
    const detail::BreakerPlace* const place = record.spots.load(std::memory_order_acquire);
    const shm::View& view = *place->view;
    return shm::transition_breaker(view, record.name_view, ask, place->caller().row);
  }
  if (link->settings().off) {
    return Error{Errc::Unsupported,
                 "CUTWATER_ENABLED=false: this process asks no daemon and moves no breaker; unset "
                 "it, or use `cutwaterctl breaker`"};
  }
  wire::Steer asked;
  asked.verb = wire::kVerbBreakerTransition;
  asked.name = std::string(record.name_view);
  asked.arguments.set("to", std::string(rule::name_of(ask.to)));
  asked.for_ns = static_cast<std::uint64_t>(ask.wait_ns.value_or(0));
  return let_daemon_do(link->settings(), asked);
}

}  // namespace

Result<std::string> Breaker::transition_to(BreakerStatus to, std::optional<Nanos> wait) noexcept {
  shm::TransitionAsk ask{static_cast<rule::BreakerState>(to), {}};
  if (wait) ask.wait_ns = wait->count();
  return detail::or_no_memory([&] { return move(*record_, ask); });
}

}  // namespace cutwater
