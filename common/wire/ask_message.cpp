// SPDX-License-Identifier: Apache-2.0
#include "wire/ask_message.hpp"

#include "wire/ask_fields.hpp"

namespace cutwater::wire {
namespace {

constexpr auto kResolve = [](auto& io, auto& m) {
  io.list("names", m.names, {1, kMaxResolve}, [](auto& list, auto& ask) {
    list.tuple("", [&](auto& in) {
      in.number("kind", ask.kind, 0, 3);
      in.subject_or_empty("name", ask.name);
    });
  });
};

constexpr auto kResolveAnswer = [](auto& io, auto& m) {
  io.list("names", m.names, {0, kMaxResolve}, [](auto& list, auto& resolved) {
    list.tuple("", [&](auto& in) {
      in.number("code", resolved.code);
      if (resolved.code == 0) return in.map("settings", resolved.settings);
      in.list("nearest", resolved.nearest, {0, kMaxNearest},
              [](auto& nearest, auto& name) { nearest.subject_or_empty("", name); });
    });
  });
};

constexpr auto kAcquire = [](auto& io, auto& m) {
  io.number("ttl_ns", m.ttl_ns);
  io.number("max_wait_ns", m.max_wait_ns);
  item_fields(io, m.items, {1, kMaxItems});
};

constexpr auto kPeek = [](auto& io, auto& m) { item_fields(io, m.items, {1, kMaxItems}); };

constexpr auto kDecisions = [](auto& io, auto& m) {
  io.list("decisions", m.decisions, {0, kMaxItems}, [](auto& list, auto& d) {
    list.tuple("", [&](auto& in) { decision_fields(in, d); });
  });
};

constexpr auto kCancel = [](auto& io, auto& m) { io.number("request", m.request); };

constexpr auto kReturned = [](auto& io, auto& returned) {
  io.number("code", returned.code);
  io.number("tokens", returned.tokens);
};

constexpr auto kCancelAnswer = [](auto& io, auto& m) { kReturned(io, m.returned); };

constexpr auto kRefund = [](auto& io, auto& m) {
  io.list("items", m.items, {1, kMaxItems}, [](auto& list, auto& item) {
    list.tuple("", [&](auto& in) {
      in.number("request", item.request);
      in.number("item", item.item, 0, kMaxItems - 1);
      if (in.more(item.n.has_value())) in.number("n", in.slot(item.n), 1, kMaxCost);
    });
  });
};

constexpr auto kRefundAnswer = [](auto& io, auto& m) {
  io.list("items", m.items, {0, kMaxItems}, [](auto& list, auto& returned) {
    list.tuple("", [&](auto& in) { kReturned(in, returned); });
  });
};

}  // namespace

std::string_view name_of(ItemError code) noexcept {
  switch (code) {
    case ItemError::UnknownName: return "unknown_name";
    case ItemError::KeyTooLong: return "key_too_long";
    case ItemError::NotPermitted: return "not_permitted";
    case ItemError::InvalidArgument: return "invalid_argument";
    case ItemError::Stale: return "stale";
    case ItemError::Cancelled: return "cancelled";
    case ItemError::NotRemembered: return "not_remembered";
    case ItemError::TooLate: return "too_late";
    case ItemError::NoRoom: return "no_room";
  }
  return "unknown";
}

DecisionAnswer DecisionAnswer::error(ItemError code, std::string text) {
  DecisionAnswer out;
  out.reason = static_cast<std::uint16_t>(code);
  out.text = std::move(text);
  return out;
}

template <>
Decoded<Resolve> decode<Resolve>(std::string_view payload) {
  return read_message<Resolve>(payload, kResolve);
}
template <>
Decoded<ResolveAnswer> decode<ResolveAnswer>(std::string_view payload) {
  return read_message<ResolveAnswer>(payload, kResolveAnswer);
}
template <>
Decoded<Acquire> decode<Acquire>(std::string_view payload) {
  return read_message<Acquire>(payload, kAcquire);
}
template <>
Decoded<AcquireAnswer> decode<AcquireAnswer>(std::string_view payload) {
  return read_message<AcquireAnswer>(payload, kDecisions);
}
template <>
Decoded<Peek> decode<Peek>(std::string_view payload) {
  return read_message<Peek>(payload, kPeek);
}
template <>
Decoded<PeekAnswer> decode<PeekAnswer>(std::string_view payload) {
  return read_message<PeekAnswer>(payload, kDecisions);
}
template <>
Decoded<Cancel> decode<Cancel>(std::string_view payload) {
  return read_message<Cancel>(payload, kCancel);
}
template <>
Decoded<CancelAnswer> decode<CancelAnswer>(std::string_view payload) {
  return read_message<CancelAnswer>(payload, kCancelAnswer);
}
template <>
Decoded<Refund> decode<Refund>(std::string_view payload) {
  return read_message<Refund>(payload, kRefund);
}
template <>
Decoded<RefundAnswer> decode<RefundAnswer>(std::string_view payload) {
  return read_message<RefundAnswer>(payload, kRefundAnswer);
}

Result<std::string> encode(const Resolve& m) { return write_message(m, kResolve); }
Result<std::string> encode(const ResolveAnswer& m) { return write_message(m, kResolveAnswer); }
Result<std::string> encode(const Acquire& m) { return write_message(m, kAcquire); }
Result<std::string> encode(const AcquireAnswer& m) { return write_message(m, kDecisions); }
Result<std::string> encode(const Peek& m) { return write_message(m, kPeek); }
Result<std::string> encode(const PeekAnswer& m) { return write_message(m, kDecisions); }
Result<std::string> encode(const Cancel& m) { return write_message(m, kCancel); }
Result<std::string> encode(const CancelAnswer& m) { return write_message(m, kCancelAnswer); }
Result<std::string> encode(const Refund& m) { return write_message(m, kRefund); }
Result<std::string> encode(const RefundAnswer& m) { return write_message(m, kRefundAnswer); }

}  // namespace cutwater::wire
