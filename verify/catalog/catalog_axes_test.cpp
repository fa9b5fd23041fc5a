// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// An axis that is taken and then ignored measures another case than the one it names. Work that no
// strategy has to do makes floors that are none.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "verify/support/cases.hpp"

namespace wide::test {

namespace {

using catalog::AxisInfo;
using catalog::AxisValue;
using catalog::Case;
using catalog::PrimitiveSpec;

/// What tells one piece of work from another without running it.
auto work_of(const PrimitiveSpec& spec, const Case& point) {
  const auto workload = spec.make_workload(Context::cpu(), point, {});
  const catalog::Cost cost = workload->cost();
  return std::tuple(cost.flops, cost.bytes_read, cost.bytes_written, workload->footprint_bytes(),
                    workload->num_outputs(), workload->rows(0), workload->row_length(0));
}

Case with(const PrimitiveSpec& spec, const Case& point, const std::string& axis, int64_t value) {
  Values values;
  for (const Case::Entry& entry : point.entries()) {
    values.emplace_back(entry.name, entry.name == axis ? AxisValue(value) : entry.value);
  }
  return catalog::make_case(spec, values);
}

/// Axes of values, and heads, which divide work that stays the same.
bool is_no_size(std::string_view axis) {
  return axis == "offset" || axis == "spread" || axis == "soft_cap" || axis == "heads";
}

/// Whether any legal value of the axis nearby is other work.
bool changes_work(const PrimitiveSpec& spec, const Case& point, const AxisInfo& axis) {
  const std::string name(axis.name);
  const int64_t value = point.integer(name);
  for (const int64_t other : {value + 1, value + 2, 2 * value, 3 * value, value / 2, value - 1}) {
    if (other < axis.min || other == value) continue;
    const Case changed = with(spec, point, name, other);
    if (!spec.impossible_reason(changed).empty()) continue;
    if (work_of(spec, changed) != work_of(spec, point)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("every axis of numbers is part of the work") {
  for (const PrimitiveSpec* spec : catalog::primitives()) {
    // What is left at 0 is that of another axis; some axes count beside certain words alone.
    std::vector<Case> points{catalog::make_case(*spec, {})};
    for (const Values& words : word_combinations(*spec)) {
      points.push_back(odd_case(*spec, 3, 3, words));
      if (!spec->impossible_reason(points.back()).empty()) points.pop_back();
    }
    for (const AxisInfo& axis : spec->axes) {
      if (!axis.words.empty() || is_no_size(axis.name)) continue;
      INFO(spec->name << " --" << axis.name);
      CHECK(std::any_of(points.begin(), points.end(),
                        [&](const Case& point) { return changes_work(*spec, point, axis); }));
    }
  }
}

TEST_CASE("positions of x that no window has are no bytes of the minimum") {
  struct Windows {
    std::string op;
    Values values;
    int64_t positions;  // of 9 x 9
  };
  const std::vector<Windows> all{
      // Every other row; of rows whose channels are first all positions.
      {"conv2d", {{"kernel", 1}, {"stride", 2}, {"layout", "last"}}, 5 * 5},
      {"conv2d", {{"kernel", 1}, {"stride", 2}}, 5 * 9},
      {"conv2d", {{"kernel", 1}, {"stride", 2}, {"x_layout", "last"}}, 5 * 5},
      // Windows begin at -1, 3 and 7.
      {"conv2d", {{"kernel", 3}, {"stride", 4}, {"layout", "last"}}, 7 * 7},
      // Taps at 0 and 3, 3 and 6.
      {"conv2d", {{"kernel", 2}, {"stride", 3}, {"padding", 0}, {"dilation", 3}}, 3 * 9},
      {"conv2d", {{"kernel", 3}, {"stride", 2}, {"layout", "last"}}, 9 * 9},
      {"pooling", {{"kernel", 2}, {"stride", 4}, {"layout", "last"}}, 4 * 4},
      {"pooling", {{"kernel", 2}, {"stride", 4}}, 4 * 9},
      {"pooling", {{"kernel", 2}, {"stride", 2}, {"ceil", "yes"}}, 9 * 9},
      {"pooling", {{"mode", "adaptive_average"}, {"out", 2}}, 9 * 9},
      // At 1.75 and 6.25.
      {"interpolate", {{"scale", 23}, {"layout", "last"}}, 4 * 4},
      {"interpolate", {{"scale", 23}}, 4 * 9},
  };
  for (const Windows& windows : all) {
    const PrimitiveSpec& spec = catalog::find_primitive(windows.op);
    Values values{{"n", 2}, {"batch", 3}, {"channels", 4}, {"height", 9}};
    values.insert(values.end(), windows.values.begin(), windows.values.end());
    const Case point = catalog::make_case(spec, values);
    INFO(spec.name << " " << point.to_string());
    const int64_t taps = windows.op == "conv2d" ? point.integer("kernel") : 0;
    const int64_t parameters = taps == 0 ? 0 : 4 * (4 * taps * taps + 1);
    const auto workload = spec.make_workload(Context::cpu(), point, {});
    CHECK(std::llround(workload->cost().bytes_read) ==
          2 * (3 * 4 * windows.positions + parameters) * dtype_bytes(Dtype::fp32));
  }
}

TEST_CASE("no strategy has to read what its inputs do not ask for") {
  const auto cost_of = [](const std::string& op, const Values& values) {
    const PrimitiveSpec& spec = catalog::find_primitive(op);
    return spec.make_workload(Context::cpu(), catalog::make_case(spec, values), {})->cost();
  };
  // Few rows of a table of 30522 rows of 256 features.
  const catalog::Cost bert =
      cost_of("model:bert", {{"n", 2}, {"batch", 1}, {"seq", 8}, {"layers", 1}});
  CHECK(bert.bytes_read < 2.0 * 30522 * 256 * 4);
  CHECK(bert.bytes_read > 2.0 * 12 * 256 * 256 * 4);
  // Biases of keys outside the window.
  const auto attention = [&](int64_t window, const char* bias) {
    return cost_of("flash_attention", {{"n", 2},
                                       {"batch", 1},
                                       {"heads", 2},
                                       {"seq", 64},
                                       {"head_dim", 8},
                                       {"window", window},
                                       {"bias", std::string(bias)}})
        .bytes_read;
  };
  CHECK(attention(0, "yes") - attention(0, "no") == 2 * 2 * 64 * 64 * 4);
  CHECK(attention(1, "yes") - attention(1, "no") == 2 * 2 * 64 * 4);
  // Members that no row has chosen.
  const auto mixture = [&](int64_t batch) {
    return cost_of("model:deep_mlp", {{"n", 8},
                                      {"batch", batch},
                                      {"hidden", 64},
                                      {"routed", std::string("yes")},
                                      {"router", std::string("gated_ids")}})
        .bytes_read;
  };
  const double of_rows = mixture(128) - mixture(64);  // of as many as 64 have
  CHECK(mixture(1) < 0.95 * (mixture(64) - of_rows));
}

}  // namespace wide::test
