// SPDX-License-Identifier: Apache-2.0
#include "wire/message.hpp"

#include "wire/fields.hpp"

namespace cutwater::wire {
namespace {

constexpr auto kHello = [](auto& io, auto& m) {
  io.number("min_version", m.min_version, 1);
  io.number("max_version", m.max_version, m.min_version);
  io.number("features", m.features);
  io.text("client_name", m.client_name, kMaxClientName);
  io.number("want", m.want, 0, 3);
  io.tuple("layout", [&](auto& in) {
    in.number("major", m.layout.major);
    in.number("minor", m.layout.minor);
    in.number("bits", m.layout.bits);
  });
  io.id("segment", m.segment, {kIdSize, true});
  io.number("clock_ns", m.clock_ns);
  io.number("time_ns", m.time_ns);
  io.id("session", m.session, {kIdSize, true});
  io.text("auth", m.auth, kMaxFrameBeforeWelcome);
  if (m.auth != "peercred" && m.auth != "mtls" && m.auth != "hmac") {
    io.refuse("auth", "peercred, mtls or hmac", "another string");
  }
  io.name_or_empty("identity", m.identity);
  io.id("nonce", m.nonce, {kProofSize, true});
};

constexpr auto kWelcome = [](auto& io, auto& m) {
  io.number("version", m.version, 1);
  io.number("features", m.features);
  io.name("instance", m.instance);
  io.id("daemon", m.daemon, {kIdSize, false});
  io.id("session", m.session, {kIdSize, false});
  io.flag("resumed", m.resumed);
  io.number("rights", m.rights);
  io.number("mode", m.mode, 0, 3);
  io.told("why", m.why, kMaxErrorText);
  const bool maps = m.mode == Want::Map || m.mode == Want::MapRead;
  const std::size_t files = maps ? kMaxDescriptors : 0;
  io.list("descriptors", m.descriptors, {files, files},
          [](auto& in, auto& name) { in.name("", name); });
  io.tuple("row", [&](auto& in) {
    in.number("index", m.row_index);
    in.number("generation", m.row_generation);
  });
  io.number("generation", m.generation);
  io.number("clock_ns", m.clock_ns);
  io.number("credit_items", m.credit_items, 1);
  io.number("credit_bytes", m.credit_bytes, 1);
  io.number("max_frame", m.max_frame, kMaxFrameBeforeWelcome, kMaxFrameLargest);
  io.id("proof", m.proof, {kProofSize, true});
};

constexpr auto kPing = [](auto& io, auto& m) { io.number("value", m.value); };

constexpr auto kPong = [](auto& io, auto& m) {
  io.number("value", m.value);
  io.number("clock_ns", m.clock_ns);
};

constexpr auto kNothing = [](auto&, auto&) {};

constexpr auto kError = [](auto& io, auto& m) {
  io.number("code", m.code);
  io.told("field", m.field, kMaxField);
  io.told("text", m.text, kMaxErrorText);
  io.flag("closing", m.closing);
};

constexpr auto kGoaway = [](auto& io, auto& m) {
  io.number("reason", m.reason);
  io.number("within_ns", m.within_ns);
  io.told("text", m.text, kMaxErrorText);
};

constexpr auto kBusy = [](auto& io, auto& m) { io.number("retry_after_ns", m.retry_after_ns); };

constexpr auto kRead = [](auto& io, auto& m) {
  io.name("what", m.what);
  io.subject_or_nil("name", m.name);
  io.key_or_nil("key", m.key);
  io.binary("cursor", m.cursor, kMaxCursor);
  io.number("max_rows", m.max_rows, 1, kMaxRows);
  const auto* options = m.options.as_map();
  if (io.more(options == nullptr || !options->empty())) io.map("options", m.options);
};

constexpr auto kReadAnswer = [](auto& io, auto& m) {
  io.list("rows", m.rows, {0, kMaxRows}, [](auto& in, auto& row) { in.map("", row); });
  io.binary("cursor", m.cursor, kMaxCursor);
};

constexpr auto kSteer = [](auto& io, auto& m) {
  io.name("verb", m.verb);
  io.subject_or_nil("name", m.name);
  io.key_or_nil("key", m.key);
  io.map("arguments", m.arguments);
  io.number("for_ns", m.for_ns);
  io.text("note", m.note, kMaxNote);
};

constexpr auto kSteerAnswer = [](auto& io, auto& m) {
  io.number("code", m.code);
  io.cut_text("text", m.text, kMaxText);
  io.number("generation", m.generation);
  if (io.more(m.act != 0 || m.saved != kSteerNothingToSave)) {
    io.number("act", m.act);
    io.number("saved", m.saved);
  }
};

}  // namespace

template <>
Decoded<Hello> decode<Hello>(std::string_view payload) {
  return read_message<Hello>(payload, kHello);
}
template <>
Decoded<Welcome> decode<Welcome>(std::string_view payload) {
  return read_message<Welcome>(payload, kWelcome);
}
template <>
Decoded<Ping> decode<Ping>(std::string_view payload) {
  return read_message<Ping>(payload, kPing);
}
template <>
Decoded<Pong> decode<Pong>(std::string_view payload) {
  return read_message<Pong>(payload, kPong);
}
template <>
Decoded<Bye> decode<Bye>(std::string_view payload) {
  return read_message<Bye>(payload, kNothing);
}
template <>
Decoded<ByeOk> decode<ByeOk>(std::string_view payload) {
  return read_message<ByeOk>(payload, kNothing);
}
template <>
Decoded<ErrorMessage> decode<ErrorMessage>(std::string_view payload) {
  return read_message<ErrorMessage>(payload, kError);
}
template <>
Decoded<Goaway> decode<Goaway>(std::string_view payload) {
  return read_message<Goaway>(payload, kGoaway);
}
template <>
Decoded<Busy> decode<Busy>(std::string_view payload) {
  return read_message<Busy>(payload, kBusy);
}
template <>
Decoded<Read> decode<Read>(std::string_view payload) {
  return read_message<Read>(payload, kRead);
}
template <>
Decoded<ReadAnswer> decode<ReadAnswer>(std::string_view payload) {
  return read_message<ReadAnswer>(payload, kReadAnswer);
}
template <>
Decoded<Steer> decode<Steer>(std::string_view payload) {
  return read_message<Steer>(payload, kSteer);
}
template <>
Decoded<SteerAnswer> decode<SteerAnswer>(std::string_view payload) {
  return read_message<SteerAnswer>(payload, kSteerAnswer);
}

Result<std::string> encode(const Hello& m) { return write_message(m, kHello); }
Result<std::string> encode(const Welcome& m) { return write_message(m, kWelcome); }
Result<std::string> encode(const Ping& m) { return write_message(m, kPing); }
Result<std::string> encode(const Pong& m) { return write_message(m, kPong); }
Result<std::string> encode(const Bye& m) { return write_message(m, kNothing); }
Result<std::string> encode(const ByeOk& m) { return write_message(m, kNothing); }
Result<std::string> encode(const ErrorMessage& m) { return write_message(m, kError); }
Result<std::string> encode(const Goaway& m) { return write_message(m, kGoaway); }
Result<std::string> encode(const Busy& m) { return write_message(m, kBusy); }
Result<std::string> encode(const Read& m) { return write_message(m, kRead); }
Result<std::string> encode(const ReadAnswer& m) { return write_message(m, kReadAnswer); }
Result<std::string> encode(const Steer& m) { return write_message(m, kSteer); }
Result<std::string> encode(const SteerAnswer& m) { return write_message(m, kSteerAnswer); }

}  // namespace cutwater::wire
