// SPDX-License-Identifier: Apache-2.0
#include "acts/act.hpp"

#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

#include "base/crc32c.hpp"

namespace cutwater::server {

namespace {

using nlohmann::json;

constexpr std::size_t kSumDigits = 8;

std::string hex_of(std::string_view bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char byte : bytes) out += fmt::format("{:02x}", static_cast<std::uint8_t>(byte));
  return out;
}

std::optional<std::string> bytes_of(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    std::uint8_t byte = 0;
    const auto [at, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (error != std::errc() || at != hex.data() + i + 2) return std::nullopt;
    out += static_cast<char>(byte);
  }
  return out;
}

json json_of(const Act& act) {
  json out{{"id", act.id},         {"do", name_of(act.kind)}, {"at", act.at_s},
           {"until", act.until_s}, {"who", act.who},          {"note", act.note}};
  if (is_about_breaker(act.kind)) {
    out["breaker"] = act.breaker;
    if (act.kind == ActKind::Breaker) out["state"] = rule::name_of(act.state);
    return out;
  }
  out["limit"] = act.limit;
  if (act.kind != ActKind::Shadow) out["key"] = hex_of(act.key);
  if (act.kind == ActKind::Shadow) out["on"] = act.shadow;
  if (act.kind == ActKind::Override) {
    out["count"] = act.rate_count;
    out["period_ns"] = act.rate_period_ns;
    out["burst"] = act.burst;
  }
  return out;
}

json json_of(const ActEnd& end) {
  return {{"end", end.id}, {"how", name_of(end.how)}, {"at", end.at_s}, {"who", end.who}};
}

/// Fields of one object; remembers the first that is missing or of another type.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {}

  std::uint64_t number(const char* name) {
    const json* value = find(name);
    if (value != nullptr && value->is_number_unsigned()) return value->get<std::uint64_t>();
    return wrong(name), 0;
  }
  bool flag(const char* name) {
    const json* value = find(name);
    if (value != nullptr && value->is_boolean()) return value->get<bool>();
    return wrong(name), false;
  }
  std::string text(const char* name) {
    const json* value = find(name);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    return wrong(name), std::string();
  }
  /// The value whose word stands there.
  template <class Word, std::size_t N>
  Word word(const char* name, const std::array<Word, N>& words) {
    const std::string given = text(name);
    for (const Word one : words) {
      if (name_of(one) == given) return one;
    }
    return wrong(name), words[0];
  }
  void wrong(const char* name) {
    if (fault_.empty()) fault_ = fmt::format("field `{}` is missing or not as expected", name);
  }
  const std::string& fault() const noexcept { return fault_; }

 private:
  const json* find(const char* name) const {
    const auto at = object_.find(name);
    return at == object_.end() ? nullptr : &*at;
  }
  const json& object_;
  std::string fault_;
};

Act read_act(Fields& fields) {
  Act act;
  act.id = fields.number("id");
  act.kind = fields.word<ActKind, 6>("do", {ActKind::Ban, ActKind::Override, ActKind::Shadow,
                                            ActKind::Breaker, ActKind::Auto, ActKind::Reset});
  act.at_s = fields.number("at");
  act.until_s = fields.number("until");
  act.who = fields.text("who");
  act.note = fields.text("note");
  if (act.id == 0) fields.wrong("id");
  if (is_about_breaker(act.kind)) {
    act.breaker = fields.text("breaker");
    if (is_momentary(act.kind)) return act;
    const bool known = rule::state_named(fields.text("state"), act.state);
    if (!known || !is_by_hand(act.state)) fields.wrong("state");
    return act;
  }
  act.limit = fields.text("limit");
  if (act.kind == ActKind::Shadow) {
    act.shadow = fields.flag("on");
  } else if (auto key = bytes_of(fields.text("key"))) {
    act.key = std::move(*key);
  } else {
    fields.wrong("key");
  }
  if (act.kind == ActKind::Override) {
    act.rate_count = fields.number("count");
    act.rate_period_ns = fields.number("period_ns");
    act.burst = fields.number("burst");
  }
  return act;
}

ActEnd read_end(Fields& fields) {
  ActEnd end;
  end.id = fields.number("end");
  end.how = fields.word<EndKind, 3>("how",
                                    {EndKind::Undone, EndKind::Replaced, EndKind::Expired});
  end.at_s = fields.number("at");
  end.who = fields.text("who");
  return end;
}

Error damaged(std::string text) { return {Errc::Damaged, std::move(text)}; }

}  // namespace

std::string_view name_of(ActKind kind) noexcept {
  switch (kind) {
    case ActKind::Ban: return "ban";
    case ActKind::Override: return "override";
    case ActKind::Shadow: return "shadow";
    case ActKind::Breaker: return "breaker";
    case ActKind::Auto: return "auto";
    case ActKind::Reset: return "reset";
  }
  return "?";
}

std::string_view name_of(EndKind how) noexcept {
  switch (how) {
    case EndKind::Undone: return "undone";
    case EndKind::Replaced: return "replaced";
    case EndKind::Expired: return "expired";
    case EndKind::Done: return "done";
  }
  return "?";
}

std::string to_line(const JournalEntry& entry) {
  const json object = std::visit([](const auto& one) { return json_of(one); }, entry);
  // Notes are UTF-8 by their check; what is not is replaced, never thrown at.
  const std::string text = object.dump(-1, ' ', false, json::error_handler_t::replace);
  return fmt::format("{:08x} {}\n", crc32c(text.data(), text.size()), text);
}

Result<JournalEntry> from_line(std::string_view line) {
  if (line.size() < kSumDigits + 2 || line[kSumDigits] != ' ') return damaged("too short");
  std::uint32_t sum = 0;
  const auto [at, error] = std::from_chars(line.data(), line.data() + kSumDigits, sum, 16);
  const std::string_view text = line.substr(kSumDigits + 1);
  if (error != std::errc() || at != line.data() + kSumDigits ||
      sum != crc32c(text.data(), text.size())) {
    return damaged("its checksum is wrong");
  }
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return damaged("no JSON object");
  Fields fields(object);
  JournalEntry entry = object.contains("end") ? JournalEntry(read_end(fields))
                                              : JournalEntry(read_act(fields));
  if (!fields.fault().empty()) return damaged(fields.fault());
  return entry;
}

}  // namespace cutwater::server
