// SPDX-License-Identifier: Apache-2.0
#include "policy.hpp"

#include "ctl/print.hpp"
#include "rows/segment_rows.hpp"
#include "src/address.hpp"

namespace cutwater::quickstart {

using client::Deadline;

Result<Link> open_link(const std::string& address) {
  auto place = client::find_address(address);
  if (!place) return place.error();
  auto connection = client::Connection::connect(place->path, Deadline::in(kPatience));
  if (!connection) return connection.error();
  auto greeting = connection->hello(client::hello_for("quickstart-conductor", wire::Want::Ask),
                                    Deadline::in(kPatience));
  if (!greeting) return greeting.error();
  return Link{std::move(*connection), std::move(greeting->welcome)};
}

Result<Policy> read_policy(Link& link, const std::string& limit) {
  wire::Read message;
  message.what = "limits";
  std::vector<std::string> known;
  for (;;) {
    auto answer = link.connection.read(message, Deadline::in(kPatience));
    if (!answer) return answer.error();
    for (const wire::Value& row : answer->rows) {
      known.push_back(ctl::text_at(row, "limit"));
      if (known.back() != limit) continue;
      return Policy{ctl::number_at(row, "rate_count", 1), ctl::number_at(row, "rate_period_ns"),
                    ctl::number_at(row, "burst")};
    }
    if (answer->cursor.empty()) return rows::unknown_limit(limit, known);
    message.cursor = answer->cursor;
  }
}

}  // namespace cutwater::quickstart
