// SPDX-License-Identifier: Apache-2.0
// A test that runs over every way of asking: `class Cases : public EveryWay {};`, TEST_P, and
// INSTANTIATE_TEST_SUITE_P(Ways, Cases, testing::ValuesIn(every_way()), way_name).
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>

#include "support/way.hpp"

namespace cutwater::test {

using namespace std::chrono_literals;

inline void PrintTo(const WayMaker& maker, std::ostream* out) { *out << maker.name; }

inline std::string way_name(const ::testing::TestParamInfo<WayMaker>& parameter) {
  return parameter.param.name;
}

class EveryWay : public ::testing::TestWithParam<WayMaker> {
 protected:
  std::unique_ptr<Way> way;

  /// One or more limits as a YAML map: `api: {rate: 1/s}, other: {rate: 2/s}`.
  void start(const std::string& limits) { start_whole("limits: {" + limits + "}\n"); }

  void start_whole(const std::string& yaml) {
    way = GetParam().make();
    const auto opened = way->open(yaml);
    ASSERT_TRUE(opened) << opened.error().text();
  }

  void reload(const std::string& limits) {
    const auto done = way->reload("limits: {" + limits + "}\n");
    ASSERT_TRUE(done) << done.error().text();
  }

  void at(Nanos t) { way->at(t); }
  Limit limit(std::string_view name = "api") { return way->limit(name); }
};

}  // namespace cutwater::test
