// SPDX-License-Identifier: Apache-2.0
#include "unit/client/ask_daemon.hpp"

#include <list>

namespace cutwater::test {

namespace {

template <class Message>
std::string payload_of(const Message& message) {
  auto bytes = wire::encode(message);
  EXPECT_TRUE(bytes) << bytes.error().text();
  return bytes ? *bytes : std::string{};
}

wire::MessageType answer_of(wire::MessageType request) {
  return static_cast<wire::MessageType>(static_cast<std::uint8_t>(request) | wire::kFromDaemon);
}

}  // namespace

AskDaemon::AskDaemon() {
  char name[] = "/tmp/cutwater-ask-XXXXXX";
  EXPECT_NE(mkdtemp(name), nullptr);
  folder_ = name;
  welcome.features = wire::kFeatureRemember;
  welcome.credit_items = 1024;
  start();
}

AskDaemon::~AskDaemon() {
  stop();
  std::filesystem::remove_all(folder_);
}

void AskDaemon::start() {
  unlink(path().c_str());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  std::strcpy(place.sun_path, path().c_str());
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  EXPECT_EQ(listen(listener_, 4096), 0);
  EXPECT_EQ(pipe(wakeup_), 0);
  ending_ = false;
  ++runs_;
  thread_ = std::thread([this] { serve(); });
}

void AskDaemon::stop() {
  if (!thread_.joinable()) return;
  ending_ = true;
  EXPECT_EQ(::write(wakeup_[1], "x", 1), 1);
  thread_.join();
  close(listener_);
  close(wakeup_[0]);
  close(wakeup_[1]);
  unlink(path().c_str());
  const std::lock_guard lock(mutex_);
  sessions_.clear();
}

void AskDaemon::serve() {
  std::list<Link> links;
  while (!ending_) {
    std::vector<pollfd> watched{{listener_, POLLIN, 0}, {wakeup_[0], POLLIN, 0}};
    for (Link& link : links) {
      watched.push_back({link.fd, static_cast<short>(link.out.empty() ? POLLIN : POLLIN | POLLOUT),
                         0});
    }
    poll(watched.data(), watched.size(), -1);
    std::size_t i = 2;
    for (auto link = links.begin(); link != links.end(); ++i) {
      if ((watched[i].revents & ~POLLOUT) != 0) take(*link);
      if (link->open) write(*link);
      if (link->open) { ++link; continue; }
      close(link->fd);
      link = links.erase(link);
    }
    if (watched[0].revents != 0) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) links.emplace_back().fd = fd;
    }
  }
  for (Link& link : links) close(link.fd);
}

void AskDaemon::take(Link& link) {
  char buffer[64 << 10];
  ssize_t length = recv(link.fd, buffer, sizeof buffer, 0);
  if (length < 0 && errno == EAGAIN) return;
  if (length <= 0) { link.open = false; return; }
  if (const long left = cut_in; left >= 0) {
    if (left <= length) {
      length = left;
      cut_in = -1;
      link.open = false;
    } else {
      cut_in = left - length;
    }
  }
  std::string_view bytes(buffer, static_cast<std::size_t>(length));
  for (;;) {
    auto frame = link.reader.next(bytes);
    if (!frame) { ++faults; link.open = false; return; }
    if (!*frame) return;
    on_frame(link, **frame);
  }
}

void AskDaemon::on_frame(Link& link, const wire::Frame& frame) {
  const wire::FrameHeader& header = frame.header;
  if (header.type == wire::MessageType::Hello) return on_hello(link, frame);
  if (header.type == wire::MessageType::Bye) { link.open = false; return; }
  ++requests;
  if (header.type == wire::MessageType::Ping) {
    const auto ping = wire::decode<wire::Ping>(frame.payload);
    return send(link, {.type = wire::MessageType::Pong, .request = header.request},
                payload_of(wire::Pong{ping->value, 77}));
  }
  if (busy > 0) {
    --busy;
    return send(link, {.type = wire::MessageType::Busy, .request = header.request},
                payload_of(wire::Busy{1'000'000}));
  }
  std::string answer;
  {
    const std::lock_guard lock(mutex_);
    Session& session = sessions_[link.token];
    const bool repeat = (header.flags & wire::kFlagRepeat) != 0;
    if (repeat) ++repeats;
    if (!repeat && header.request <= session.last) ++faults;
    session.last = std::max(session.last, header.request);
    const auto known = session.answers.find(header.request);
    if (known != session.answers.end()) {
      if (!repeat) ++faults;
      answer = known->second;
    } else {
      answer = session.answers[header.request] = execute(session, frame);
    }
  }
  if ((header.flags & wire::kFlagQuiet) != 0) {
    ++quiet;
    return;
  }
  if (silent) return;
  send(link, {.type = answer_of(header.type), .request = header.request}, answer);
  if (goaway_after >= 0 && goaway_after-- == 0) {
    send(link, {.type = wire::MessageType::Goaway},
         payload_of(wire::Goaway{wire::GoawayReason::Idle, 0, "a test"}));
  }
}

void AskDaemon::on_hello(Link& link, const wire::Frame& frame) {
  ++hellos;
  const auto hello = wire::decode<wire::Hello>(frame.payload);
  if (!hello) { ++faults; link.open = false; return; }
  link.reader.set_max_length(welcome.max_frame);
  wire::Welcome answer = welcome;
  answer.daemon = std::string(15, 'd') + static_cast<char>(runs_);
  const std::lock_guard lock(mutex_);
  answer.resumed = resumes && sessions_.contains(hello->session);
  link.token = hello->session;
  if (!answer.resumed) {
    link.token = std::string(wire::kIdSize, 's');
    const std::uint64_t number = ++tokens_made_;
    std::memcpy(link.token.data(), &number, sizeof number);
    sessions_[link.token];
  }
  answer.session = link.token;
  answer.mode = hello->want == wire::Want::Ask ? wire::Want::Ask : welcome.mode;
  if (answer.mode == wire::Want::Ask) answer.descriptors.clear();
  const std::string bytes = wire::encode_frame(
      {.type = wire::MessageType::Welcome, .request = frame.header.request}, payload_of(answer));
  if (answer.mode == wire::Want::Ask || files.empty()) {
    link.out += bytes;
  } else {
    send_with(link.fd, bytes, files);
  }
}

std::string AskDaemon::execute(Session& session, const wire::Frame& frame) {
  switch (frame.header.type) {
    case wire::MessageType::Resolve: return resolve(*wire::decode<wire::Resolve>(frame.payload));
    case wire::MessageType::Enter: {
      const auto asked = wire::decode<wire::Enter>(frame.payload);
      if (asked) return enter(*asked);
      break;
    }
    case wire::MessageType::Outcome: return end(*wire::decode<wire::Outcome>(frame.payload));
    case wire::MessageType::Present: return present(*wire::decode<wire::Present>(frame.payload));
    case wire::MessageType::Cancel: ++cancels; return payload_of(wire::CancelAnswer{});
    default: break;
  }
  if (frame.header.type == wire::MessageType::Refund) {
    return refund(session, *wire::decode<wire::Refund>(frame.payload));
  }
  const bool look = frame.header.type == wire::MessageType::Peek;
  std::vector<wire::Item> items;
  if (look) {
    items = wire::decode<wire::Peek>(frame.payload)->items;
  } else {
    auto acquire = wire::decode<wire::Acquire>(frame.payload);
    if (!acquire || acquire->ttl_ns == 0) { ++faults; return {}; }
    items = acquire->items;
  }
  wire::AcquireAnswer out;
  std::string limit;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].limit) limit = *items[i].limit;
    out.decisions.push_back(decide(limit, items[i], !look));
    if (!look && out.decisions.back().allowed()) {
      session.charged[{frame.header.request, i}] = limit + "\n" + items[i].key;
    }
  }
  return look ? payload_of(wire::PeekAnswer{out.decisions}) : payload_of(out);
}

std::string AskDaemon::resolve(const wire::Resolve& asked) {
  wire::ResolveAnswer out;
  for (const auto& name : asked.names) {
    const std::set<std::string>& known = name.kind == wire::NameKind::Breaker ? breakers : limits;
    wire::Resolved& told = out.names.emplace_back();
    if (known.contains(name.name)) {
      told.settings.set("state", open ? 2U : 1U);
      told.settings.set("would", open ? 5U : 0U);
      told.settings.set("explain", "as the daemon says");
      const wire::Value window = wire::Value::array({2, 60'000'000'000, 5});
      told.settings.set("windows", wire::Value::array({window}));
      told.settings.set("plain", true);
      told.settings.set("ip_prefix", wire::Value::array({24, 56}));
      continue;
    }
    told.code = static_cast<std::uint16_t>(wire::ItemError::UnknownName);
    told.nearest.assign(known.begin(), known.end());
  }
  return payload_of(out);
}

std::string AskDaemon::enter(const wire::Enter& asked) {
  wire::EnterAnswer out;
  wire::Admission& told = out.admission;
  if (!asked.breaker) {
    std::string limit;
    for (const wire::Item& item : asked.items) {
      limit = item.limit.value_or(limit);
      told.each.push_back(decide(limit, item, true));
      if (told.reason != wire::kReasonAllowed || told.each.back().reason == told.reason) continue;
      told.reason = told.each.back().reason;
      told.part = wire::Part::Limit;
      told.retry_after_ns = told.each.back().retry_after_ns;
      told.index = static_cast<std::uint8_t>(told.each.size() - 1);
    }
  } else if (!breakers.contains(*asked.breaker)) {
    told = wire::Admission::error(wire::ItemError::UnknownName, "no such breaker");
  } else if (open) {
    told.reason = 5;
    told.part = wire::Part::Breaker;
    told.state = wire::BreakerWord::Open;
    told.retry_after_ns = 2'000'000'000;
    told.since_ns = 3'200'000'000;
    told.why = "failure rate 60 % of 10 calls";
  } else {
    told.state = probes ? wire::BreakerWord::HalfOpen : wire::BreakerWord::Closed;
    if (probes) told.flags |= wire::kAnswerHolds;
    if (timed) told.flags |= wire::kAnswerTimed;
    told.ticket = "ticket " + std::to_string(++tickets_made_);
  }
  return payload_of(out);
}

std::string AskDaemon::end(const wire::Outcome& outcome) {
  outcomes_.insert(outcomes_.end(), outcome.reports.begin(), outcome.reports.end());
  return payload_of(wire::OutcomeAnswer{std::vector<std::uint16_t>(outcome.reports.size())});
}

std::string AskDaemon::present(const wire::Present& asked) {
  presented += asked.tickets.size();
  wire::PresentAnswer out;
  for (const std::string& ticket : asked.tickets) out.tickets.push_back(ticket + " again");
  return payload_of(out);
}

std::vector<wire::OutcomeReport> AskDaemon::outcomes() {
  const std::lock_guard lock(mutex_);
  return outcomes_;
}

bool AskDaemon::wait_outcomes(std::size_t count) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (outcomes().size() < count) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

wire::DecisionAnswer AskDaemon::decide(const std::string& limit, const wire::Item& item,
                                       bool write) {
  if (!limits.contains(limit)) {
    return wire::DecisionAnswer::error(wire::ItemError::UnknownName, "no such limit");
  }
  std::uint64_t& spent = spent_[{limit, item.key}];
  wire::DecisionAnswer out;
  if (spent + item.cost > tokens) {
    out.reason = 1;
    out.remaining = tokens - spent;
    out.retry_after_ns = 12'345'678'901;
    out.reset_after_ns = wire::kNever;
    return out;
  }
  if (write) spent += item.cost;
  if (write) out.wait_ns = wait_ns;
  out.remaining = tokens - spent - (write ? 0 : item.cost);
  out.reset_after_ns = 3;
  return out;
}

std::string AskDaemon::refund(Session& session, const wire::Refund& refund) {
  wire::RefundAnswer out;
  for (const wire::RefundItem& item : refund.items) {
    ++refunds;
    const auto charged = session.charged.find({item.request, item.item});
    if (charged == session.charged.end()) {
      out.items.push_back({static_cast<std::uint16_t>(wire::ItemError::NotRemembered), 0});
      continue;
    }
    const std::size_t cut = charged->second.find('\n');
    --spent_[{charged->second.substr(0, cut), charged->second.substr(cut + 1)}];
    session.charged.erase(charged);
    out.items.push_back({0, 1});
  }
  return payload_of(out);
}

void AskDaemon::send(Link& link, const wire::FrameHeader& header, std::string_view payload) {
  link.out += wire::encode_frame(header, payload);
}

void AskDaemon::write(Link& link) {
  while (!link.out.empty() && link.open) {
    std::size_t size = link.out.size();
    if (const long left = cut_out; left >= 0) {
      if (static_cast<std::size_t>(left) <= size) {
        size = static_cast<std::size_t>(left);
        cut_out = -1;
        link.open = false;
      } else {
        cut_out = left - static_cast<long>(size);
      }
    }
    const ssize_t sent = ::send(link.fd, link.out.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) { link.open = false; return; }
    link.out.erase(0, static_cast<std::size_t>(sent));
  }
}

std::uint64_t AskDaemon::executed(const std::string& limit, const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = spent_.find({limit, key});
  return found == spent_.end() ? 0 : found->second;
}

std::uint64_t AskDaemon::executed_in_all() {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [name, spent] : spent_) sum += spent;
  return sum;
}

}  // namespace cutwater::test
