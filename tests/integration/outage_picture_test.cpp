// SPDX-License-Identifier: Apache-2.0
// The picture of `cutwater-bench outage`, drawn from events that never change: what it says, that
// nothing leaves the sheet or lies on another word, and that colours can be told from what is
// behind them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "outage.hpp"

namespace cutwater::bench {
namespace {

struct Element {
  std::string tag, words;
  std::map<std::string, std::string> attributes;

  double at(const std::string& name) const { return std::stod(attributes.at(name)); }
  std::string get(const std::string& name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? "" : found->second;
  }
};

/// Elements in order; empty when a tag is not closed by its own name or an attribute not quoted.
std::vector<Element> elements_of(const std::string& xml) {
  std::vector<Element> out;
  std::vector<std::string> open;
  for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return {};
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.starts_with('?')) continue;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return {};
      open.pop_back();
      continue;
    }
    Element one;
    one.tag = tag.substr(0, tag.find_first_of(" /"));
    std::size_t from = one.tag.size();
    while ((from = tag.find_first_not_of(" /", from)) != tag.npos) {
      const std::size_t quote = tag.find("=\"", from);
      const std::size_t close = quote == tag.npos ? tag.npos : tag.find('"', quote + 2);
      if (close == tag.npos) return {};
      one.attributes[tag.substr(from, quote - from)] = tag.substr(quote + 2, close - quote - 2);
      from = close + 1;
    }
    one.words = xml.substr(end + 1, xml.find('<', end) - end - 1);
    if (!tag.ends_with('/')) open.push_back(one.tag);
    out.push_back(std::move(one));
  }
  return open.empty() ? out : std::vector<Element>{};
}

/// `workers` that have four answers, then time-outs until a breaker opens, then refusals.
Outage made_up(int workers, std::uint32_t ends_us = 4'200'000) {
  Outage out;
  out.plan.workers = workers;
  out.hangs_us = 900'000;
  out.recovers_us = 3'400'000;
  out.ends_us = ends_us;
  for (OutageMode* mode : {&out.own, &out.one}) {
    mode->shared = mode == &out.one;
    for (int w = 0; w < workers; ++w) {
      Lane lane;
      for (std::uint32_t i = 0; i < 4; ++i) lane.push_back({400'000 + 120'000 * i, 90, What::Good});
      const std::uint32_t vain = mode->shared ? 2 : 10;
      for (std::uint32_t i = 0; i < vain; ++i) {
        lane.push_back({900'000 + 120'000 * i, 100'000, What::TimeOut});
      }
      for (std::uint32_t t = 900'000 + 120'000 * vain; t < 3'500'000; t += 20'000) {
        lane.push_back({t, 0, t % 60'000 == 0 ? What::Probing : What::Refused});
      }
      lane.push_back({3'520'000, 80, What::Good});
      mode->lanes.push_back(std::move(lane));
    }
  }
  return out;
}

std::vector<std::string> words_of(const std::vector<Element>& elements) {
  std::vector<std::string> out;
  for (const Element& one : elements) {
    if (one.tag == "text") out.push_back(one.words);
  }
  return out;
}

struct Place {
  double left, right, top, bottom;
};

/// As wide as a common sans-serif makes it: 0.6 of its size a letter, generously.
Place place_of(const Element& text) {
  const double size = text.at("font-size");
  const double width = 0.6 * size * static_cast<double>(text.words.size());
  const std::string anchor = text.get("text-anchor");
  const double left =
      text.at("x") - (anchor == "end" ? width : anchor == "middle" ? width / 2 : 0);
  return {left, left + width, text.at("y") - size, text.at("y") + 0.25 * size};
}

double light(const std::string& colour) {
  double sum = 0;
  const double weights[] = {0.2126, 0.7152, 0.0722};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    sum += weights[i] * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}
double contrast(const std::string& a, const std::string& b) {
  const double one = light(a), other = light(b);
  return (std::max(one, other) + 0.05) / (std::min(one, other) + 0.05);
}

TEST(OutagePicture, SaysThisInThisOrder) {
  const std::vector<std::string> golden = {
      "2 workers, one dependency that hangs for 2.5 s",
      "Each waits 100 ms for an answer. Both runs at the same time, with the same settings; 0 s is "
      "when the hanging began.",
      "answered",
      "time-out: no answer came",
      "refused at once by the breaker",
      "the dependency hangs",
      "blank: the worker starts, or pauses before its next call",
      "A breaker in each worker",
      "20 time-outs, 2.0 s of workers&#8217; time; opened 2 times; the last worker was protected "
      "after 1.22 s",
      "worker 1",
      "worker 2",
      "0 s",
      "1 s",
      "2 s",
      "3 s",
      "One breaker for the host",
      "4 time-outs, 0.4 s of workers&#8217; time; opened once; the last worker was protected "
      "after 0.26 s",
      "worker 1",
      "worker 2",
      "0 s",
      "1 s",
      "2 s",
      "3 s"};

  EXPECT_EQ(words_of(elements_of(outage_svg(made_up(2)))), golden);
}

TEST(OutagePicture, DrawsEachTimeOutAndJoinsWhatIsRefused) {
  const auto elements = elements_of(outage_svg(made_up(2)));
  std::map<std::string, int> boxes;
  for (const Element& one : elements) {
    if (one.tag == "rect") ++boxes[one.get("fill")];
  }
  EXPECT_EQ(boxes["#c62828"], 1 + 2 * 10 + 2 * 2) << "one in the legend";
  EXPECT_EQ(boxes["#546e7a"], 1 + 2 + 2) << "one band a worker";
  EXPECT_EQ(boxes["#2e7d32"], 1 + 4 + 4) << "before and after";
  EXPECT_EQ(boxes["#fdecea"], 1 + 2) << "one a panel";
}

TEST(OutagePicture, NothingLeavesTheSheetAndNoWordsLieOnOthers) {
  for (const int workers : {2, 8, kMostWorkers}) {
    for (const std::uint32_t ends_us : {4'200'000U, 59'000'000U}) {
      const auto elements = elements_of(outage_svg(made_up(workers, ends_us)));
      ASSERT_FALSE(elements.empty());
      const double wide = elements[0].at("width"), high = elements[0].at("height");
      std::vector<Place> texts;
      for (const Element& one : elements) {
        if (one.tag == "rect" && one.get("width") != "100%") {
          EXPECT_GE(one.at("x"), 0);
          EXPECT_LE(one.at("x") + one.at("width"), wide);
          EXPECT_LE(one.at("y") + one.at("height"), high);
        }
        if (one.tag != "text") continue;
        const Place place = place_of(one);
        EXPECT_GE(place.left, 0) << one.words;
        EXPECT_LE(place.right, wide) << one.words;
        EXPECT_LE(place.bottom, high) << one.words;
        for (const Place& other : texts) {
          const bool apart = place.left >= other.right || other.left >= place.right ||
                             place.top >= other.bottom || other.top >= place.bottom;
          EXPECT_TRUE(apart) << one.words << ", " << workers << " workers, to " << ends_us;
        }
        texts.push_back(place);
      }
    }
  }
}

TEST(OutagePicture, ColoursStandOutOnWhiteAndOnTheBand) {
  for (const char* behind : {"#ffffff", "#fdecea"}) {
    for (const char* colour : {"#2e7d32", "#c62828", "#546e7a"}) {
      EXPECT_GE(contrast(colour, behind), 3.0) << colour << " on " << behind;
    }
    EXPECT_GE(contrast("#263238", behind), 4.5);
  }
}

TEST(OutagePicture, ARunWithoutProtectionSaysSo) {
  Outage short_one = made_up(2);
  for (Lane& lane : short_one.own.lanes) {
    std::erase_if(lane, [](const OutageEvent& event) { return event.what != What::TimeOut; });
  }

  const auto words = words_of(elements_of(outage_svg(short_one)));
  const std::string table = outage_table(short_one), json = outage_json(short_one);

  EXPECT_TRUE(std::any_of(words.begin(), words.end(), [](const std::string& one) {
    return one.ends_with("not every worker was protected while it hung");
  }));
  EXPECT_NE(table.find("never"), std::string::npos) << table;
  EXPECT_NE(json.find("\"protected_ms\":null"), std::string::npos);
}

TEST(OutagePicture, TheTestTellsGoodXmlFromBad) {
  EXPECT_EQ(elements_of("<?xml version=\"1.0\"?><a b=\"c\"><d/><e>x</e></a>").size(), 3U);
  for (const char* bad : {"<a>", "<a></b>", "</a>", "<a b=\"c></a>", "<a"}) {
    EXPECT_TRUE(elements_of(bad).empty()) << bad;
  }
}

}  // namespace
}  // namespace cutwater::bench
