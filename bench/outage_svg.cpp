// SPDX-License-Identifier: Apache-2.0
// The picture: two panels on one time axis whose zero is when the dependency began to hang, a row
// for each worker. Time-outs are blocks as long as they took; answers and refusals are bands. Every
// colour stands beside its name in the legend, and kinds differ in height too, for those who do not
// tell the colours apart.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "outage.hpp"

namespace cutwater::bench {
namespace {

constexpr double kWidth = 1120, kLeft = 104, kRight = 24, kTop = 132;
constexpr double kRow = 20, kTitle = 52, kAxis = 30, kGap = 22;
constexpr double kPlot = kWidth - kLeft - kRight;
/// Events of one kind so close together are one band.
constexpr std::uint32_t kBandGapUs = 150'000;

struct Look {
  const char* colour;
  double height;
  const char* name;
};
constexpr Look kGood{"#2e7d32", 8, "answered"};
constexpr Look kTimeOut{"#c62828", 16, "time-out: no answer came"};
constexpr Look kRefused{"#546e7a", 4, "refused at once by the breaker"};
constexpr const char* kHangs = "#fdecea";
constexpr const char* kHangsEdge = "#c98a83";
constexpr const char* kHangsName = "the dependency hangs";
constexpr const char* kBlankName = "blank: the worker starts, or pauses before its next call";
/// Where the entries of a line of the legend begin.
constexpr double kColumns[] = {kLeft, kLeft + 300, kLeft + 600};
constexpr const char* kInk = "#263238";

std::string format(const char* form, ...) {
  char line[512];
  va_list words;
  va_start(words, form);
  std::vsnprintf(line, sizeof line, form, words);
  va_end(words);
  return line;
}

class Picture {
 public:
  explicit Picture(const Outage& outage) : outage_(outage) {}

  std::string draw() {
    const double panel = kTitle + kRow * outage_.plan.workers + kAxis;
    const double height = kTop + 2 * panel + kGap;
    out_ = format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
        "width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" fill=\"%s\">\n"
        "<title>%d workers while a dependency hangs</title>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        kWidth, height, kWidth, height, kInk, outage_.plan.workers);
    text(kLeft, 32, 20, "bold",
         format("%d workers, one dependency that hangs for %.1f s", outage_.plan.workers,
                (outage_.recovers_us - outage_.hangs_us) / 1e6));
    text(kLeft, 54, 13, "normal",
         format("Each waits %d ms for an answer. Both runs at the same time, with the same "
                "settings; 0 s is when the hanging began.",
                outage_.plan.timeout_ms));
    legend();
    draw_panel(kTop, outage_.own);
    draw_panel(kTop + panel + kGap, outage_.one);
    return out_ + "</svg>\n";
  }

 private:
  double x(double us) const { return kLeft + kPlot * us / std::max<double>(outage_.ends_us, 1); }

  void text(double at_x, double at_y, int size, const char* weight, const std::string& words,
            const char* anchor = "start") {
    out_ += format(
                "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" font-weight=\"%s\" "
                "text-anchor=\"%s\">",
                at_x, at_y, size, weight, anchor) +
            words + "</text>\n";
  }
  void box(double from_x, double at_y, double width, double height, const char* colour) {
    out_ += format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
                   from_x, at_y, width, height, colour);
  }

  void frame(double from_x, double at_y, double width, double height, const char* fill,
             const char* edge) {
    out_ += format(
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
        "stroke=\"%s\"/>\n",
        from_x, at_y, width, height, fill, edge);
  }

  void legend() {
    const auto name = [this](double at_x, double at_y, const char* words) {
      text(at_x + 34, at_y + 5, 13, "normal", words);
    };
    std::size_t column = 0;
    for (const Look& look : {kGood, kTimeOut, kRefused}) {
      const double at_x = kColumns[column++];
      box(at_x, 80 - look.height / 2, 26, look.height, look.colour);
      name(at_x, 80, look.name);
    }
    frame(kColumns[0], 96, 26, 16, kHangs, kHangsEdge);
    name(kColumns[0], 104, kHangsName);
    frame(kColumns[1], 96, 26, 16, "#ffffff", kHangsEdge);
    name(kColumns[1], 104, kBlankName);
  }

  void draw_panel(double top, const OutageMode& mode) {
    const OutageCost cost = cost_of(outage_, mode);
    text(kLeft, top + 18, 16, "bold",
         mode.shared ? "One breaker for the host" : "A breaker in each worker");
    text(kLeft, top + 38, 13, "normal",
         format("%llu time-outs, %.1f s of workers&#8217; time; opened %s; %s",
                static_cast<unsigned long long>(cost.time_outs), cost.time_out_seconds,
                cost.openings == 1 ? "once" : (std::to_string(cost.openings) + " times").c_str(),
                cost.protected_ms
                    ? format("the last worker was protected after %.2f s",
                             *cost.protected_ms / 1000)
                          .c_str()
                    : "not every worker was protected while it hung"));
    const double rows = top + kTitle, height = kRow * static_cast<double>(mode.lanes.size());
    frame(x(outage_.hangs_us), rows - 4, x(outage_.recovers_us) - x(outage_.hangs_us), height + 8,
          kHangs, kHangsEdge);
    for (std::size_t i = 0; i < mode.lanes.size(); ++i) {
      const double middle = rows + kRow * (static_cast<double>(i) + 0.5);
      text(kLeft - 12, middle + 4, 12, "normal", format("worker %zu", i + 1), "end");
      draw_lane(mode.lanes[i], middle);
    }
    draw_axis(rows + height + 6);
  }

  void draw_lane(const Lane& lane, double middle) {
    for (std::size_t i = 0; i < lane.size();) {
      const Look& look = look_of(lane[i].what);
      std::size_t last = i;
      const bool band = lane[i].what != What::TimeOut;
      while (band && last + 1 < lane.size() && &look_of(lane[last + 1].what) == &look &&
             lane[last + 1].at_us - lane[last].at_us < kBandGapUs) {
        ++last;
      }
      const double from = x(lane[i].at_us), to = x(lane[last].at_us + lane[last].took_us);
      const double width = band ? std::max(to - from, 2.0) : std::max(to - from - 1.2, 2.0);
      box(from, middle - look.height / 2, width, look.height, look.colour);
      i = last + 1;
    }
  }

  void draw_axis(double at_y) {
    out_ += format("<path d=\"M%.1f %.1fH%.1f\" stroke=\"%s\" fill=\"none\"/>\n", kLeft, at_y,
                   kLeft + kPlot, kInk);
    const double zero = outage_.hangs_us / 1e6, last = (outage_.ends_us / 1e6) - zero;
    const double seconds = zero + last;
    const int step = seconds <= 12 ? 1 : seconds <= 60 ? 5 : 10;
    for (int s = -static_cast<int>(zero) / step * step; s <= last; s += step) {
      const double at_x = x((zero + s) * 1e6);
      out_ += format("<path d=\"M%.1f %.1fv5\" stroke=\"%s\" fill=\"none\"/>\n", at_x, at_y, kInk);
      text(at_x, at_y + 18, 12, "normal", format("%d s", s), "middle");
    }
  }

  static const Look& look_of(What what) {
    switch (what) {
      case What::Good:
        return kGood;
      case What::TimeOut:
        return kTimeOut;
      default:
        return kRefused;
    }
  }

  const Outage& outage_;
  std::string out_;
};

}  // namespace

std::string outage_svg(const Outage& outage) { return Picture(outage).draw(); }

}  // namespace cutwater::bench
