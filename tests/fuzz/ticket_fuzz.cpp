// SPDX-License-Identifier: Apache-2.0
// Tickets: any bytes a client may bring. Read ones are written again as the same bytes, whatever
// memory they are said to be of; what they name is within the widths of their fields.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ask/ticket.hpp"
#include "wire/enter_message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cutwater;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::uint32_t life : {0U, 0x9e3779b9U}) {
    const auto ticket = server::ticket_of(bytes, life, std::int64_t{1} << 60);
    if (!ticket) continue;
    if (bytes.size() > wire::kMaxTicket) std::abort();
    if (server::to_ticket(*ticket, life) != bytes) std::abort();
    if (ticket->has_breaker && ticket->breaker.index > 0xffff) std::abort();
    if (ticket->has_place && ticket->cell >= 1U << 24) std::abort();
    if (ticket->start_ns > std::int64_t{1} << 60) std::abort();
  }
  return 0;
}
