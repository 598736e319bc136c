// SPDX-License-Identifier: Apache-2.0
// The only file that knows the JSON library.
#include <nlohmann/json.hpp>

#include "ctl/print.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json convert(const wire::Value& value) {
  switch (value.kind()) {
    case wire::Value::Kind::Bool:
      return *value.as_bool();
    case wire::Value::Kind::Unsigned:
      return *value.as_unsigned();
    case wire::Value::Kind::Signed:
      return *value.as_signed();
    case wire::Value::Kind::String:
      return *value.as_string();
    case wire::Value::Kind::Binary:
      return value.as_binary()->empty() ? "" : escape(*value.as_binary());
    case wire::Value::Kind::Array: {
      Json out = Json::array();
      for (const auto& element : *value.as_array()) out.push_back(convert(element));
      return out;
    }
    case wire::Value::Kind::Map: {
      Json out = Json::object();
      for (const auto& entry : *value.as_map()) out[entry.key] = convert(entry.value);
      return out;
    }
    default:
      return nullptr;
  }
}

}  // namespace

std::string to_json(const wire::Value& value, JsonForm form) {
  // `replace` never throws for bytes that are no UTF-8; what is left is bad_alloc, which ends the
  // program.
  return convert(value).dump(form == JsonForm::Line ? -1 : 2, ' ', false,
                             Json::error_handler_t::replace) +
         '\n';
}

}  // namespace cutwater::ctl
