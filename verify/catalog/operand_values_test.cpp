// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What operands hold: a function of seed, operand, member and place alone, rounded to the dtype,
// spread as the distribution says, poisoned where asked.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "host/operand.hpp"
#include "wide/convert.hpp"

namespace wide::test {

namespace {

using catalog::Distribution;
using catalog::Operand;
using catalog::WorkloadOptions;

Context one_thread() {
  return Context::cpu({.num_threads = 1, .allocator = {}});
}

Operand::Description weights() {
  return {operands::linear_weight, Dtype::fp32, {4, 6}, 3, false, Distribution::uniform()};
}

std::vector<double> content(const Operand::Description& description, const WorkloadOptions& options,
                            int64_t member) {
  const Operand operand(one_thread(), description, options);
  const auto values = operand.values(member);
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("content depends on seed, name, member id and place, and on nothing else") {
  const auto base = content(weights(), {}, 1);
  CHECK(base == content(weights(), {}, 1));
  WorkloadOptions elsewhere;
  elsewhere.misalign_elements = 3;
  elsewhere.row_padding = 5;
  CHECK(base == content(weights(), elsewhere, 1));
  WorkloadOptions mapped;
  mapped.member_ids = {1, 1, 0};
  CHECK(base == content(weights(), mapped, 0));
  CHECK(base == content(weights(), mapped, 1));
  auto more_members = weights();
  more_members.num_members = 50;
  CHECK(base == content(more_members, {}, 1));

  CHECK(base != content(weights(), {}, 2));
  WorkloadOptions seeded;
  seeded.seed = 43;
  CHECK(base != content(weights(), seeded, 1));
  auto renamed = weights();
  renamed.packing.name = "another weight";
  CHECK(base != content(renamed, {}, 1));
  auto second = weights();
  second.occurrence = 1;
  CHECK(base != content(second, {}, 1));
}

TEST_CASE("uniform values fill their range and are rounded to the dtype") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16, Dtype::fp8_e4m3}) {
    Operand::Description many{operands::linear_bias,       dtype, {100000}, 1, false,
                              Distribution::uniform(-1, 3)};
    const auto values = content(many, {}, 0);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK((*low >= -1 && *low < -0.99 && *high > 2.9 && *high <= 3));
    double sum = 0;
    for (const double value : values) sum += value;
    CHECK(std::fabs(sum / 100000 - 1) < 0.02);
    for (const double value : values) {
      double stored = 0;
      store_element(&stored, dtype, 0, value);
      REQUIRE(load_element(&stored, dtype, 0) == value);
    }
  }
}

TEST_CASE("fills shape what lies around zero, and nothing that has to keep its sign") {
  using catalog::Fill;
  const auto filled = [](Fill fill, bool is_first = true, Dtype dtype = Dtype::fp32,
                         const Distribution& from = Distribution::uniform(-2, 2)) {
    return content({operands::linear_bias,
                    dtype,
                    {100000},
                    1,
                    false,
                    catalog::shaped(from, fill, dtype, is_first)},
                   {}, 0);
  };
  const auto deviation = [](const std::vector<double>& values) {
    double sum = 0, squares = 0;
    for (const double v : values) sum += v, squares += v * v;
    CHECK(std::fabs(sum / 1e5) < 0.03);
    return std::sqrt(squares / 1e5);
  };
  const auto normal = filled(Fill::normal);
  CHECK(std::fabs(deviation(normal) - 2) < 0.03);
  const auto within =
      std::count_if(normal.begin(), normal.end(), [](double v) { return std::fabs(v) < 2; });
  CHECK(std::fabs(static_cast<double>(within) / 1e5 - 0.6827) < 0.01);
  const auto trig = filled(Fill::trig);
  CHECK(std::fabs(deviation(trig) - std::sqrt(2.0)) < 0.03);
  CHECK(std::fabs(trig[0] - 2 * trig[1] * std::cos(1.0) + trig[2]) < 1e-5);  // of a sine
  for (const double v : filled(Fill::zeros)) REQUIRE(v == 0);
  const auto tiny = filled(Fill::tiny, true, Dtype::fp16);
  const auto subnormals =
      std::count_if(tiny.begin(), tiny.end(), [](double v) { return std::fabs(v) < 0x1p-14; });
  CHECK(subnormals > 20'000);
  CHECK(subnormals < 80'000);
  const auto a = filled(Fill::cancelling), b = filled(Fill::cancelling, false);
  for (size_t i = 0; i < a.size(); i += 2) {
    REQUIRE(b[i] == b[i + 1]);
    REQUIRE(std::fabs(a[i] + a[i + 1]) <= 0x1p-6);
  }
  const auto wide = filled(Fill::wide_range);
  const auto [low, high] = std::minmax_element(wide.begin(), wide.end());
  CHECK((*low < -900 && *low >= -1024 && *high > 900 && *high <= 1024));
  const auto positive = filled(Fill::positive);
  const auto [least, most] = std::minmax_element(positive.begin(), positive.end());
  CHECK((*least >= 0 && *least < 0.01 && *most > 1.99 && *most <= 2));
  for (const Fill fill : {Fill::tiny, Fill::wide_range})
    CHECK(filled(fill, false) == filled(Fill::uniform));
  const Distribution variance = Distribution::uniform(0.25, 1), ids = Distribution::ids(5);
  for (const Fill fill : {Fill::normal, Fill::trig, Fill::zeros, Fill::cancelling, Fill::tiny,
                          Fill::wide_range, Fill::positive}) {
    CHECK(filled(fill, true, Dtype::fp32, variance) ==
          filled(Fill::uniform, true, Dtype::fp32, variance));
    CHECK(filled(fill, true, Dtype::int32, ids) == filled(Fill::uniform, true, Dtype::int32, ids));
  }
}

TEST_CASE("integers and ids are whole, within their limits, and as dense as asked") {
  Operand::Description description{
      operands::linear_bias, Dtype::bf16, {100000}, 1, false, Distribution::integers(-2, 2, 0.25)};
  const auto values = content(description, {}, 0);
  CHECK(std::set(values.begin(), values.end()) == std::set<double>{-2, -1, 0, 1, 2});
  // A fifth of those that are kept are zeros as well.
  const auto zeros = static_cast<double>(std::count(values.begin(), values.end(), 0.0));
  CHECK(std::fabs(zeros / 100000 - 0.8) < 0.01);

  for (const Dtype dtype : {Dtype::int32, Dtype::int64}) {
    description = {operands::embedding_ids, dtype, {100, 100}, 2, false, Distribution::ids(7)};
    const auto ids = content(description, {}, 1);
    CHECK(std::set(ids.begin(), ids.end()) == std::set<double>{0, 1, 2, 3, 4, 5, 6});
  }
}

TEST_CASE("few ids are four, Zipf's are as frequent as their rank says") {
  const auto frequencies = [](const Distribution& from) {
    std::map<double, double> share;
    const auto ids =
        content({operands::embedding_ids, Dtype::int32, {300, 300}, 1, false, from}, {}, 0);
    for (const double id : ids) share[id] += 1.0 / static_cast<double>(ids.size());
    return share;
  };
  const auto few = frequencies(Distribution::few_ids(1000));
  CHECK(few.size() == 4);
  for (const double id : {0, 250, 500, 750}) CHECK(std::fabs(few.at(id) - 0.25) < 0.01);
  CHECK(frequencies(Distribution::few_ids(3)).rbegin()->first == 2);
  auto zipf = frequencies(Distribution::zipf_ids(1000));
  CHECK(zipf.rbegin()->first <= 999);
  for (const double id : {0, 1, 3, 9}) {
    const double expected = std::log((id + 2) / (id + 1)) / std::log(1001.0);
    CHECK(std::fabs(zipf[id] - expected) < 0.003);
  }
  CHECK(frequencies(Distribution::zipf_ids(1)).size() == 1);
}

TEST_CASE("a poisoned member is NaN or out of range, the others are what they were") {
  WorkloadOptions options;
  options.poisoned_member = 1;
  for (const int64_t member : {0, 2}) {
    CHECK(content(weights(), options, member) == content(weights(), {}, member));
  }
  for (const double value : content(weights(), options, 1)) CHECK(std::isnan(value));

  Operand::Description ids{operands::embedding_ids, Dtype::int32, {8, 8}, 3, false,
                           Distribution::ids(7)};
  for (const double id : content(ids, options, 1)) CHECK((id < 0 || id >= 7));
  ids.is_shared = true;
  for (const double id : content(ids, options, 1)) CHECK((id >= 0 && id < 7));
}

TEST_CASE("filling is fast enough for large cases", "[.][speed]") {
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16, Dtype::int64}) {
    const auto start = std::chrono::steady_clock::now();
    const Operand operand(one_thread(),
                          {operands::linear_weight,
                           dtype,
                           {4096, 4096},
                           4,
                           false,
                           is_floating(dtype) ? Distribution::uniform() : Distribution::ids(1000)},
                          {});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    WARN(dtype_name(dtype) << ": " << 4 * 4096 * 4096 / seconds.count() / 1e6 << " M values/s");
  }
}

}  // namespace wide::test
