// SPDX-License-Identifier: Apache-2.0
#include "config/value.hpp"

#include <algorithm>

#include "calendar/zone.hpp"
#include "config/count.hpp"
#include "config/decimal.hpp"
#include "config/duration.hpp"
#include "config/moment.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

constexpr std::uint64_t kMaxId = 0xfffffffe;   // 0xffffffff is "no change" to the kernel

Parsed text_value(std::string text) {
  Parsed value;
  value.text = std::move(text);
  return value;
}

Parsed number_value(std::uint64_t number, std::string text) {
  Parsed value = text_value(std::move(text));
  value.number = number;
  return value;
}

Result<Parsed> in_range(const Key& key, std::uint64_t number, std::string text) {
  const auto spell = [&](std::uint64_t bound) {
    if (key.kind == Kind::Duration) return format_duration(bound);
    if (key.kind == Kind::OffDuration || key.kind == Kind::Wait) return format_duration(bound);
    return key.kind == Kind::Size ? format_size(bound) : std::to_string(bound);
  };
  if (number > key.max) return refusal(text + " is above the maximum of " + spell(key.max));
  if (number < key.min) return refusal(text + " is below the minimum of " + spell(key.min));
  return number_value(number, std::move(text));
}

Result<Parsed> parse_words(const Key& key, std::string_view text) {
  const auto words = split_words(key.words);
  auto index = parse_choice(text, words);
  if (!index) return index.error();
  std::string_view word = words[*index];
  if (word == "additive") word = "keep-used";   // two words for one thing: one canonical text
  return number_value(*index, std::string(word));
}

Result<Parsed> parse_lock_memory(std::string_view text) {
  if (text == "auto") return number_value(static_cast<std::uint64_t>(LockMemory::Auto), "auto");
  auto yes = parse_bool(text);
  if (!yes) return refusal(in_quotes(text) + " is not known here; write auto, true or false");
  const LockMemory value = *yes ? LockMemory::Yes : LockMemory::No;
  return number_value(static_cast<std::uint64_t>(value), std::string(name_of(value)));
}

Result<Parsed> parse_place(const Key& key, std::string_view text) {
  const auto words = split_words(key.words);
  if (std::find(words.begin(), words.end(), text) != words.end()) {
    return text_value(std::string(text));
  }
  if (!text.starts_with('/')) {
    return refusal(in_quotes(text) + " is not an absolute path; write " + listing(words) +
                   " or a path that begins with /");
  }
  if (text.size() > key.max) {
    return refusal("a path of " + std::to_string(text.size()) + " bytes is above the maximum of " +
                   std::to_string(key.max));
  }
  return text_value(std::string(text));
}

Result<Parsed> parse_target(const Key& key, std::string_view text) {
  constexpr std::string_view kFile = "file:";
  if (text == "stderr") return text_value("stderr");
  if (!text.starts_with(kFile) || !text.substr(kFile.size()).starts_with('/')) {
    return refusal(in_quotes(text) + " is not a target; write stderr or file:/an/absolute/path");
  }
  if (text.size() - kFile.size() > key.max) {
    return refusal("a path of " + std::to_string(text.size() - kFile.size()) +
                   " bytes is above the maximum of " + std::to_string(key.max));
  }
  return text_value(std::string(text));
}

Result<Parsed> parse_zone(std::string_view text) {
  if (text.empty()) return refusal("an empty time zone; write UTC or a name such as Europe/Berlin");
  auto zone = calendar::Zone::load(text);
  if (!zone) return refusal(zone.error().text());
  return text_value(zone->name());
}

Result<Parsed> parse_off_duration(const Key& key, std::string_view text) {
  const auto words = split_words(key.words);
  const std::string off(words.front());
  if (std::find(words.begin(), words.end(), text) != words.end()) return number_value(0, off);
  auto ns = parse_duration(text);
  if (!ns) return ns.error();
  if (*ns == 0) return number_value(0, off);
  return in_range(key, *ns, format_duration(*ns));
}

/// A bare number is calls or seconds: the type of the window says which.
Result<Parsed> parse_window_size(const Key& key, std::string_view text) {
  const Digits digits = scan_digits(text);
  if (digits.length == text.size() && !digits.overflow) {
    if (digits.value == 0) return refusal("0 is no window; write " + range_text(key));
    return number_value(digits.value, std::string(text));
  }
  auto ns = parse_duration(text);
  if (!ns) return ns.error();
  auto value = in_range(key, *ns, format_duration(*ns));
  if (!value) return value;
  value->number = 0;
  value->period_ns = *ns;
  return value;
}

Result<Parsed> parse_state(const Key& key, std::string_view text) {
  rule::BreakerState state{};
  if (!rule::state_named(text, state)) {
    return refusal(in_quotes(text) + " is no state; write " + listing(split_words(key.words)));
  }
  return number_value(static_cast<std::uint64_t>(state), std::string(rule::name_of(state)));
}

Result<Parsed> parse_decision(std::string_view text) {
  if (text == "rate") return number_value(static_cast<std::uint64_t>(rule::HalfOpenRule::Rate),
                                          "rate");
  if (text == "all-succeed") {
    return number_value(static_cast<std::uint64_t>(rule::HalfOpenRule::AllSucceed), "all-succeed");
  }
  return refusal(in_quotes(text) + " is not known here; write rate, all-succeed, { rate-over: M } "
                                   "or { successes: k }");
}

/// A name or a number of a user or group. `known` is false when nobody looked the name up.
Result<Parsed> parse_id(std::string_view text, const Lookup& lookup, std::string_view what) {
  if (text.empty()) {
    return refusal("an empty name; write a " + std::string(what) + " or its number");
  }
  const Digits digits = scan_digits(text);
  if (digits.length == text.size()) {
    if (digits.overflow || digits.value > kMaxId) {
      return refusal(in_quotes(text) + " is above the maximum of " + std::to_string(kMaxId));
    }
    return number_value(digits.value, std::to_string(digits.value));
  }
  Parsed value = text_value(std::string(text));
  value.known = false;
  if (!lookup) return value;
  const auto id = lookup(value.text);
  if (!id) {
    return refusal("there is no " + std::string(what) + " " + in_quotes(text) +
                   " on this host; create it or take it out");
  }
  value.number = *id;
  value.known = true;
  return value;
}

Error unset(std::string_view name) {
  return refusal("${" + std::string(name) + "} is not set; set it or write ${" + std::string(name) +
                 ":-default}");
}

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && letter(name.front()) && std::all_of(name.begin(), name.end(), inner);
}

}  // namespace

Result<Parsed> parse_value(const Key& key, std::string_view text, const LoadOptions& options) {
  if (!key.trap_word.empty() && text == key.trap_word) return refusal(std::string(key.trap_text));
  switch (key.kind) {
    case Kind::Name: {
      auto name = parse_name(text);
      if (!name) return name.error();
      return text_value(std::move(*name));
    }
    case Kind::Choice: return parse_words(key, text);
    case Kind::LockMemory: return parse_lock_memory(text);
    case Kind::OnFull: {
      auto what = parse_what_if(text);
      if (!what) return what.error();
      return number_value(static_cast<std::uint64_t>(*what), std::string(text));
    }
    case Kind::Lease:
      for (std::uint64_t number = 0; const std::string_view word : split_words(key.words)) {
        if (text == word) return number_value(number, std::string(word));
        ++number;
      }
      [[fallthrough]];
    case Kind::Count: {
      auto count = parse_count(text);
      if (!count) return count.error();
      return in_range(key, *count, std::to_string(*count));
    }
    case Kind::Duration: {
      auto ns = parse_duration(text);
      if (!ns) return ns.error();
      return in_range(key, *ns, format_duration(*ns));
    }
    case Kind::Rate: {
      auto rate = parse_rate(text);
      if (!rate) return rate.error();
      return rate_value(*rate);
    }
    case Kind::Mode: {
      auto mode = parse_mode(text);
      if (!mode) return mode.error();
      std::string octal = "0000";
      for (std::size_t i = 0; i < 4; ++i) {
        octal[3 - i] = static_cast<char>('0' + ((*mode >> 3 * i) & 7));
      }
      return number_value(*mode, octal);
    }
    case Kind::Place: return parse_place(key, text);
    case Kind::Target: return parse_target(key, text);
    case Kind::Text:
      if (text.size() > key.max) {
        return refusal("a text of " + std::to_string(text.size()) +
                       " bytes is above the maximum of " + std::to_string(key.max));
      }
      return text_value(std::string(text));
    case Kind::Group: return parse_id(text, options.group_id, "group");
    case Kind::Users:
    case Kind::Groups: return parse_member(key, text, options);
    case Kind::Enabled:
      // From outside a list is written as it is in the file.
      if (text == "[" + std::string(key.words) + "]") return number_value(0, std::string(text));
      [[fallthrough]];
    case Kind::Bool: {
      auto yes = parse_bool(text);
      if (!yes) return yes.error();
      return number_value(*yes ? 1 : 0, std::string(text));
    }
    case Kind::True:
      if (text == "true") return number_value(1, "true");
      return refusal(in_quotes(text) + " says nothing here; write true, or leave the key out");
    case Kind::Size: {
      auto bytes = parse_size(text);
      if (!bytes) return bytes.error();
      return in_range(key, *bytes, format_size(*bytes));
    }
    case Kind::Zone: return parse_zone(text);
    case Kind::Moment: {
      auto at = parse_moment(text);
      if (!at) return at.error();
      return number_value(*at, format_moment(*at));
    }
    case Kind::Percent: {
      if (text == key.words) return number_value(rule::kOffPpm, std::string(text));
      auto ppm = parse_percent(text);
      if (!ppm) return ppm.error();
      return number_value(*ppm, format_percent(*ppm));
    }
    case Kind::Decimal: {
      auto ppm = parse_decimal(text, key.min, key.max);
      if (!ppm) return ppm.error();
      return number_value(*ppm, format_decimal(*ppm));
    }
    case Kind::Wait: {
      if (text == key.words) return number_value(rule::kWaitForever, std::string(text));
      auto ns = parse_duration(text);
      if (!ns) return ns.error();
      return in_range(key, *ns, format_duration(*ns));
    }
    case Kind::OffDuration: return parse_off_duration(key, text);
    case Kind::WindowSize: return parse_window_size(key, text);
    case Kind::State: return parse_state(key, text);
    case Kind::Decision: return parse_decision(text);
    case Kind::Ramp:
      if (text == "off") return number_value(static_cast<std::uint64_t>(rule::Ramp::Off), "off");
      if (text == "auto") return number_value(static_cast<std::uint64_t>(rule::Ramp::Auto), "auto");
      return refusal(in_quotes(text) + " is not known here; write " + range_text(key));
    case Kind::Block:
    case Kind::Calendar:
    case Kind::Windows:
    case Kind::Keys:
    case Kind::Classes: break;   // no scalars
  }
  return refusal("a value of no known kind");
}

Result<Parsed> parse_member(const Key& key, std::string_view text, const LoadOptions& options) {
  if (text == "*") {
    Parsed all = text_value("\"*\"");
    all.everybody = true;
    return all;
  }
  const bool users = key.kind == Kind::Users;
  auto value = parse_id(text, users ? options.user_id : options.group_id, users ? "user" : "group");
  if (value && value->known) value->ids.push_back(static_cast<std::uint32_t>(value->number));
  return value;
}

Parsed join_members(const std::vector<Parsed>& members) {
  Parsed list;
  for (const Parsed& member : members) {
    list.text += list.text.empty() ? "[" : ", ";
    list.text += member.text;
    list.everybody |= member.everybody;
    list.ids.insert(list.ids.end(), member.ids.begin(), member.ids.end());
  }
  list.text += list.text.empty() ? "[]" : "]";
  return list;
}

Parsed default_value(const Key& key, const LoadOptions& options) {
  if (key.kind == Kind::Users || key.kind == Kind::Groups) {
    std::string_view inner = key.fallback.substr(1, key.fallback.size() - 2);   // [NAME] or []
    std::vector<Parsed> members;
    if (!inner.empty()) {
      if (auto member = parse_member(key, inner, options); member) members.push_back(*member);
    }
    Parsed list = join_members(members);
    list.text = std::string(key.fallback);   // the default reads the same on every host
    return list;
  }
  auto value = parse_value(key, key.fallback, options);
  if (value) return *value;
  Parsed absent = text_value(std::string(key.fallback));
  absent.known = false;
  return absent;
}

Parsed rate_value(Rate rate) {
  Parsed value = number_value(rate.count, format_rate(rate));
  value.period_ns = rate.period_ns;
  return value;
}

Result<std::string> substitute(std::string_view text, const LoadOptions& options) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find("${");
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin + 2);
    const std::size_t end = text.find('}');
    if (end == std::string_view::npos) return refusal("'${' without '}'; close it");
    const std::string_view inner = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t split = inner.find(":-");
    const std::string_view name = inner.substr(0, split);
    if (!is_variable_name(name) || inner.find("${") != std::string_view::npos) {
      return refusal(in_quotes("${" + std::string(inner) + "}") +
                     " names no variable; write ${NAME} or ${NAME:-default}, not nested");
    }
    std::optional<std::string> value;
    if (options.variable) value = options.variable(std::string(name));
    if (!value && split == std::string_view::npos) return unset(name);
    out += value ? *value : std::string(inner.substr(split + 2));
  }
  return out;
}

}  // namespace cutwater::config
