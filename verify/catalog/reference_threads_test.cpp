// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// References by several threads: the numbers of one, whichever the primitive, and no row before
// what it shares with others has been found; and how much memory they may take.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "host/compare.hpp"
#include "host/core/cpu_device.hpp"
#include "host/operand.hpp"
#include "wide/error.hpp"

namespace wide::test {

namespace {

using catalog::PrimitiveSpec;
using catalog::ReferenceSample;

constexpr double kAll = std::numeric_limits<double>::infinity();
constexpr double kFlops = 6e6;  // three threads' worth
using Values = std::vector<std::pair<std::string, catalog::AxisValue>>;

Context one_thread() {
  return Context::cpu({.num_threads = 1, .allocator = {}});
}

/// A case of so many batch rows that threads are worth starting.
catalog::Case large_case(const PrimitiveSpec& spec) {
  for (int64_t batch = 2;; batch *= 2) {
    Values values{{"n", int64_t{2}}, {"batch", batch}};
    for (const auto& axis : spec.axes) {
      if (axis.name == "seq") values.emplace_back("seq", int64_t{40});
      if (axis.name == "d" || axis.name == "d_model") values.emplace_back(axis.name, int64_t{64});
    }
    const catalog::Case point = catalog::make_case(spec, values);
    const auto workload = spec.make_workload(one_thread(), point, {});
    int64_t rows = 0;
    for (int64_t m = 0; m < workload->num_outputs(); ++m) rows += workload->rows(m);
    if (workload->reference_row_flops() * static_cast<double>(rows) > kFlops) return point;
  }
}

/// Row by row, from the last one on.
void check_row_by_row(const PrimitiveSpec& spec, const catalog::Case& point) {
  INFO(spec.name << " " << point.to_string());
  const auto workload = spec.make_workload(one_thread(), point, {});
  const auto again = spec.make_workload(one_thread(), point, {});
  const ReferenceSample sample(*workload, kFlops);
  REQUIRE(!sample.rows().empty());
  int64_t differing = 0;
  for (auto row = sample.rows().rbegin(); row != sample.rows().rend(); ++row) {
    std::vector<double> expected(row->values.size()), tolerances(row->values.size());
    again->reference_row(row->member, row->row, expected, tolerances);
    differing += row->values != expected || row->tolerances != tolerances ? 1 : 0;
  }
  CHECK(differing == 0);
}

/// `on_row` sees every row that is computed.
class Rows final : public catalog::PackedWorkload {
 public:
  Rows(int64_t members, int64_t rows, int64_t together)
      : PackedWorkload(one_thread(), members, {}), together_(together) {
    add_operand(operands::linear_y, Dtype::fp32, {rows, 1}, catalog::Distribution::none());
  }
  std::function<void(int64_t member, int64_t row)> on_row;
  int64_t claimed_rows = 0;  ///< of a member, where it has not its own

  int64_t rows(int64_t member) const override {
    return claimed_rows > 0 ? claimed_rows : PackedWorkload::rows(member);
  }

  std::string unsupported_reason(std::string_view) const override { return ""; }
  catalog::Prepared prepare(const PlanOptions&) override { return {}; }
  catalog::PreparedMembers prepare_members() override { return {}; }
  catalog::Cost cost() const override { return {}; }
  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    on_row(member, row);
    values[0] = static_cast<double>(1000 * member + row);
    tolerances[0] = 1;
  }
  int64_t reference_rows_together() const override { return together_; }
  double reference_row_flops() const override { return 1e6; }

 private:
  int64_t together_;
};

}  // namespace

TEST_CASE("several threads compute what one computes, row by row") {
  for (const PrimitiveSpec* spec : catalog::primitives())
    check_row_by_row(*spec, large_case(*spec));
}

TEST_CASE("what references keep of a member, a batch row or a sequence is that of the row") {
  const auto check = [](const char* op, Values values) {
    values.emplace_back("n", int64_t{3});
    const PrimitiveSpec& spec = catalog::find_primitive(op);
    check_row_by_row(spec, catalog::make_case(spec, values));
  };
  check("attention", {{"batch", int64_t{3}}, {"seq", int64_t{33}}, {"d_model", int64_t{64}}});
  check("recurrent", {{"batch", int64_t{3}}, {"seq", int64_t{17}}, {"d", int64_t{32}}});
  check("linear",
        {{"batch", int64_t{40}}, {"d", int64_t{256}}, {"weights", "int8"}, {"dtype", "fp16"}});
  check("batchnorm2d", {{"batch", int64_t{40}}, {"channels", int64_t{9}}, {"mode", "train"}});
  check("embedding", {{"batch", int64_t{64}}, {"bag", "sum"}});
}

TEST_CASE("behind the first row of those that share what it finds, and behind no other") {
  const int64_t together = GENERATE(0, 1, 7);
  Rows rows(3, 100, together);
  std::atomic<int64_t> found{-1};
  std::atomic<int> inside{0}, wrong{0};
  rows.on_row = [&](int64_t member, int64_t row) {
    const int64_t shared = 1000 * member + (together == 0 ? 0 : row / together);
    const bool is_first = (together == 0 ? row : row % together) == 0;
    const int others = inside++;
    if (is_first ? others != 0 : found != shared) ++wrong;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (is_first) found = shared;
    --inside;
  };
  const ReferenceSample sample(rows, kAll);
  CHECK(wrong == 0);
  REQUIRE(sample.rows().size() == 300);
  CHECK(sample.elements() == sample.elements_in_all());
  for (const auto& row : sample.rows())
    CHECK(row.values == std::vector<double>{static_cast<double>(1000 * row.member + row.row)});
}

TEST_CASE("a machine's threads take part, and what one of them throws ends it") {
  Rows rows(1, 100, 0);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto num_threads = [&] {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    return threads.size();
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const size_t wanted = usable_cpu_threads() > 1 ? 2 : 1;
  rows.on_row = [&](int64_t, int64_t row) {
    while (row > 0 && num_threads() < wanted && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  };
  CHECK(ReferenceSample(rows, kAll).rows().size() == 100);
  CHECK(threads.size() >= wanted);
  rows.on_row = [](int64_t, int64_t row) {
    if (row == 50) throw Error(ErrorCode::invalid_argument, "no such row");
  };
  CHECK_THROWS_AS(ReferenceSample(rows, kAll), Error);
}

TEST_CASE("references that no memory is there for are refused before any is taken") {
  Rows rows(1, 4, 0);
  rows.on_row = [](int64_t, int64_t) {};
  rows.claimed_rows = int64_t{1} << 60;
  CHECK(ReferenceSample(rows, 1).rows().size() == 3);
  CHECK_THROWS_MATCHES(ReferenceSample(rows, kAll), Error,
                       Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(
                           "of 1152921504606846976 elements of outputs take ")));
}

}  // namespace wide::test
