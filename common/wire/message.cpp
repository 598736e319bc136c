// SPDX-License-Identifier: Apache-2.0
#include "wire/message.hpp"

#include <exception>
#include <limits>

#include "wire/field_reader.hpp"
#include "wire/text.hpp"

namespace cutwater::wire {
namespace {

constexpr std::uint64_t kMaxU8 = std::numeric_limits<std::uint8_t>::max();
constexpr std::uint64_t kMaxU16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxU64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kAnyLength = kMaxFrameLargest;  // bounded by the frame it came in

Value bytes_value(const std::string& bytes) { return Value::binary(bytes); }

Value or_nil(const std::optional<std::string>& name) { return name ? Value(*name) : Value(); }

Value key_or_nil(const std::optional<std::string>& key) {
  return key ? Value::binary(*key) : Value();
}

Value error_text(const std::string& text) { return Value(fit_text(text, kMaxErrorText)); }

/// Writes the fields and reads them back: what decode() refuses is never sent.
template <class Message>
Result<std::string> checked(Value::Array fields) {
  auto payload = encode_value(Value(std::move(fields)));
  if (!payload) return payload;
  const auto read_back = decode<Message>(*payload);
  if (read_back) return payload;
  const Fault& fault = read_back.fault();
  return Error(Errc::InvalidArgument, fault.field + ": " + fault.text);
}

/// decode() without a thought about memory running out.
template <class Message, class Body>
Decoded<Message> read_fields(std::string_view payload, Body body) {
  try {
    FieldReader in(Message::kType, payload);
    Message message = body(in);
    return in.result(std::move(message));
  } catch (const std::exception&) {
    return Fault{ErrorCode::Internal, "", "out of memory"};
  }
}

template <class Message, class Body>
Result<std::string> write_fields(Body body) {
  try {
    return checked<Message>(body());
  } catch (const std::exception&) {
    return Error(Errc::NoMemory, "no memory to write a message");
  }
}

Hello read_hello(FieldReader& in) {
  Hello out;
  out.min_version = static_cast<std::uint8_t>(in.number(1, kMaxU8));
  out.max_version = static_cast<std::uint8_t>(in.number(out.min_version, kMaxU8));
  out.features = in.number(0, kMaxU64);
  out.client_name = in.text(kMaxClientName);
  out.want = static_cast<Want>(in.number(0, 3));
  if (in.array(3, kMaxArray) != nullptr) {
    out.layout = {.major = static_cast<std::uint16_t>(in.element_number(0, kMaxU16)),
                  .minor = static_cast<std::uint16_t>(in.element_number(1, kMaxU16)),
                  .bits = in.element_number(2, kMaxU64)};
  }
  out.segment = in.id(kIdSize, true);
  out.clock_ns = in.number(0, kMaxU64);
  out.time_ns = in.number(0, kMaxU64);
  out.session = in.id(kIdSize, true);
  out.auth = in.text(kAnyLength);
  if (out.auth != "peercred" && out.auth != "mtls" && out.auth != "hmac") {
    in.refuse("peercred, mtls or hmac", "another string");
  }
  out.identity = in.name_or_empty();
  out.nonce = in.id(kProofSize, true);
  return out;
}

Welcome read_welcome(FieldReader& in) {
  Welcome out;
  out.version = static_cast<std::uint8_t>(in.number(1, kMaxU8));
  out.features = in.number(0, kMaxU64);
  out.instance = in.name();
  out.daemon = in.id(kIdSize, false);
  out.session = in.id(kIdSize, false);
  out.resumed = in.flag();
  out.rights = static_cast<std::uint8_t>(in.number(0, kMaxU8));
  out.mode = static_cast<Want>(in.number(0, 3));
  out.why = in.text(kAnyLength);
  const bool maps = out.mode == Want::Map || out.mode == Want::MapRead;
  if (const auto* names = in.array(maps ? kMaxDescriptors : 0, maps ? kMaxDescriptors : 0)) {
    for (std::size_t i = 0; i < names->size(); ++i) out.descriptors.push_back(in.element_name(i));
  }
  if (in.array(2, kMaxArray) != nullptr) {
    out.row_index = static_cast<std::uint32_t>(in.element_number(0, kMaxU32));
    out.row_generation = static_cast<std::uint32_t>(in.element_number(1, kMaxU32));
  }
  out.generation = in.number(0, kMaxU64);
  out.clock_ns = in.number(0, kMaxU64);
  out.credit_items = static_cast<std::uint32_t>(in.number(1, kMaxU32));
  out.credit_bytes = static_cast<std::uint32_t>(in.number(1, kMaxU32));
  out.max_frame = static_cast<std::uint32_t>(in.number(kMaxFrameBeforeWelcome, kMaxFrameLargest));
  out.proof = in.id(kProofSize, true);
  return out;
}

Read read_read(FieldReader& in) {
  Read out;
  out.what = in.name();
  out.name = in.name_or_nil();
  out.key = in.key_or_nil();
  out.cursor = in.binary(kMaxCursor);
  out.max_rows = static_cast<std::uint32_t>(in.number(1, kMaxRows));
  out.options = in.map();
  return out;
}

Steer read_steer(FieldReader& in) {
  Steer out;
  out.verb = in.name();
  out.name = in.name_or_nil();
  out.key = in.key_or_nil();
  out.arguments = in.map();
  out.for_ns = in.number(0, kMaxU64);
  out.note = in.text(kMaxNote);
  return out;
}

ErrorMessage read_error(FieldReader& in) {
  ErrorMessage out;
  out.code = static_cast<ErrorCode>(in.number(0, kMaxU16));
  out.field = in.text(kAnyLength);
  out.text = in.text(kAnyLength);
  out.closing = in.flag();
  return out;
}

}  // namespace

template <>
Decoded<Hello> decode<Hello>(std::string_view payload) {
  return read_fields<Hello>(payload, read_hello);
}

template <>
Decoded<Welcome> decode<Welcome>(std::string_view payload) {
  return read_fields<Welcome>(payload, read_welcome);
}

template <>
Decoded<Ping> decode<Ping>(std::string_view payload) {
  return read_fields<Ping>(payload, [](FieldReader& in) { return Ping{in.number(0, kMaxU64)}; });
}

template <>
Decoded<Pong> decode<Pong>(std::string_view payload) {
  return read_fields<Pong>(payload, [](FieldReader& in) {
    Pong out;
    out.value = in.number(0, kMaxU64);
    out.clock_ns = in.number(0, kMaxU64);
    return out;
  });
}

template <>
Decoded<Bye> decode<Bye>(std::string_view payload) {
  return read_fields<Bye>(payload, [](FieldReader&) { return Bye{}; });
}

template <>
Decoded<ByeOk> decode<ByeOk>(std::string_view payload) {
  return read_fields<ByeOk>(payload, [](FieldReader&) { return ByeOk{}; });
}

template <>
Decoded<ErrorMessage> decode<ErrorMessage>(std::string_view payload) {
  return read_fields<ErrorMessage>(payload, read_error);
}

template <>
Decoded<Goaway> decode<Goaway>(std::string_view payload) {
  return read_fields<Goaway>(payload, [](FieldReader& in) {
    Goaway out;
    out.reason = static_cast<GoawayReason>(in.number(0, kMaxU8));
    out.within_ns = in.number(0, kMaxU64);
    out.text = in.text(kAnyLength);
    return out;
  });
}

template <>
Decoded<Busy> decode<Busy>(std::string_view payload) {
  return read_fields<Busy>(payload, [](FieldReader& in) { return Busy{in.number(0, kMaxU64)}; });
}

template <>
Decoded<Read> decode<Read>(std::string_view payload) {
  return read_fields<Read>(payload, read_read);
}

template <>
Decoded<ReadAnswer> decode<ReadAnswer>(std::string_view payload) {
  return read_fields<ReadAnswer>(payload, [](FieldReader& in) {
    ReadAnswer out;
    out.rows = in.maps(kMaxRows);
    out.cursor = in.binary(kMaxCursor);
    return out;
  });
}

template <>
Decoded<Steer> decode<Steer>(std::string_view payload) {
  return read_fields<Steer>(payload, read_steer);
}

template <>
Decoded<SteerAnswer> decode<SteerAnswer>(std::string_view payload) {
  return read_fields<SteerAnswer>(payload, [](FieldReader& in) {
    SteerAnswer out;
    out.code = static_cast<std::uint16_t>(in.number(0, kMaxU16));
    out.text = in.text(kMaxText);
    out.generation = in.number(0, kMaxU64);
    return out;
  });
}

Result<std::string> encode(const Hello& m) {
  return write_fields<Hello>([&] {
    return Value::Array{m.min_version, m.max_version, m.features, m.client_name,
                        static_cast<std::uint8_t>(m.want),
                        Value::array({m.layout.major, m.layout.minor, m.layout.bits}),
                        bytes_value(m.segment), m.clock_ns, m.time_ns, bytes_value(m.session),
                        m.auth, m.identity, bytes_value(m.nonce)};
  });
}

Result<std::string> encode(const Welcome& m) {
  return write_fields<Welcome>([&] {
    Value::Array names(m.descriptors.begin(), m.descriptors.end());
    return Value::Array{m.version, m.features, m.instance, bytes_value(m.daemon),
                        bytes_value(m.session), m.resumed, m.rights,
                        static_cast<std::uint8_t>(m.mode), error_text(m.why), std::move(names),
                        Value::array({m.row_index, m.row_generation}), m.generation, m.clock_ns,
                        m.credit_items, m.credit_bytes, m.max_frame, bytes_value(m.proof)};
  });
}

Result<std::string> encode(const Ping& m) {
  return write_fields<Ping>([&] { return Value::Array{m.value}; });
}

Result<std::string> encode(const Pong& m) {
  return write_fields<Pong>([&] { return Value::Array{m.value, m.clock_ns}; });
}

Result<std::string> encode(const Bye&) {
  return write_fields<Bye>([] { return Value::Array{}; });
}

Result<std::string> encode(const ByeOk&) {
  return write_fields<ByeOk>([] { return Value::Array{}; });
}

Result<std::string> encode(const ErrorMessage& m) {
  return write_fields<ErrorMessage>([&] {
    return Value::Array{static_cast<std::uint16_t>(m.code), fit_text(m.field, kMaxField),
                        error_text(m.text), m.closing};
  });
}

Result<std::string> encode(const Goaway& m) {
  return write_fields<Goaway>([&] {
    return Value::Array{static_cast<std::uint8_t>(m.reason), m.within_ns, error_text(m.text)};
  });
}

Result<std::string> encode(const Busy& m) {
  return write_fields<Busy>([&] { return Value::Array{m.retry_after_ns}; });
}

Result<std::string> encode(const Read& m) {
  return write_fields<Read>([&] {
    Value::Array fields{m.what, or_nil(m.name), key_or_nil(m.key), bytes_value(m.cursor),
                        m.max_rows};
    const auto* options = m.options.as_map();
    if (options == nullptr || !options->empty()) fields.push_back(m.options);
    return fields;
  });
}

Result<std::string> encode(const ReadAnswer& m) {
  return write_fields<ReadAnswer>(
      [&] { return Value::Array{Value(m.rows), bytes_value(m.cursor)}; });
}

Result<std::string> encode(const Steer& m) {
  return write_fields<Steer>([&] {
    return Value::Array{m.verb, or_nil(m.name), key_or_nil(m.key), m.arguments, m.for_ns, m.note};
  });
}

Result<std::string> encode(const SteerAnswer& m) {
  return write_fields<SteerAnswer>(
      [&] { return Value::Array{m.code, fit_text(m.text, kMaxText), m.generation}; });
}

}  // namespace cutwater::wire
