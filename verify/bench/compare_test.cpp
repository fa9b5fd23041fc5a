// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The judge alone, on outputs written by hand: NaN, infinities, tolerances that are no tolerances,
// rows that were never sampled, members of the wrong size.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "host/compare.hpp"
#include "host/operand.hpp"
#include "wide/convert.hpp"

namespace wide::test {

namespace {

using catalog::MemberOutputs;
using catalog::ReferenceSample;
using catalog::Verdict;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A reference of so many members, rows and columns: value(member, row, column), one tolerance.
class Table final : public catalog::PackedWorkload {
 public:
  Table(int64_t members, int64_t rows, int64_t columns, double tolerance)
      : PackedWorkload(Context::cpu({.num_threads = 1, .allocator = {}}), members, {}),
        tolerance_(tolerance) {
    add_operand(operands::linear_y, Dtype::fp32, {rows, columns}, catalog::Distribution::none());
  }
  double value(int64_t member, int64_t row, int64_t column) const {
    const bool is_special = member == 0 && row == 0 && column == 0;
    return is_special ? first : static_cast<double>(100 * member + 10 * row + column + 1);
  }
  double first = 1;

  std::string unsupported_reason(std::string_view) const override { return ""; }
  catalog::Prepared prepare(const PlanOptions&) override { return {}; }
  catalog::PreparedMembers prepare_members() override { return {}; }
  catalog::Cost cost() const override { return {}; }
  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = value(member, row, static_cast<int64_t>(i));
      tolerances[i] = tolerance_;
    }
  }
  double reference_row_flops() const override { return 1e6; }

 private:
  double tolerance_;
};

MemberOutputs exact_outputs(const Table& table) {
  MemberOutputs outputs{Dtype::fp32, {}};
  for (int64_t m = 0; m < table.num_members(); ++m) {
    auto& member = outputs.members.emplace_back();
    member.rows = table.rows(m), member.row_length = table.row_length(m);
    member.bytes.resize(static_cast<size_t>(member.num_elements()) * sizeof(float));
    for (int64_t i = 0; i < member.num_elements(); ++i) {
      store_element(member.bytes.data(), Dtype::fp32, i,
                    table.value(m, i / member.row_length, i % member.row_length));
    }
  }
  return outputs;
}

void set(MemberOutputs& outputs, int64_t member, int64_t row, int64_t column, double value) {
  MemberOutputs::Member& output = outputs.members[static_cast<size_t>(member)];
  store_element(output.bytes.data(), Dtype::fp32, row * output.row_length + column, value);
}

/// Verdict where the first value is `got` and should be `expected`.
bool accepts(double got, double expected, double tolerance, bool keeps_infinities = true) {
  Table table(2, 2, 3, tolerance);
  table.first = expected;
  MemberOutputs outputs = exact_outputs(table);
  set(outputs, 0, 0, 0, got);
  return catalog::compare(ReferenceSample(table), outputs, {.keeps_infinities = keeps_infinities})
      .passed;
}

}  // namespace

TEST_CASE("equal passes, also with no tolerance; the boundary is included") {
  CHECK(accepts(1, 1, 0));
  CHECK(accepts(-0.0, 0.0, 0));
  CHECK(accepts(1.5, 1, 0.5));
  CHECK_FALSE(accepts(1.5, 1, 0.49));
  CHECK_FALSE(accepts(0.5, 1, 0.49));
  CHECK_FALSE(accepts(std::nextafter(1.0f, 2.0f), 1, 0));
}

TEST_CASE("what is not finite must be what is expected") {
  CHECK(accepts(kNan, kNan, 1));
  CHECK(accepts(kInfinity, kInfinity, 1));
  CHECK_FALSE(accepts(kNan, 1, 1e30));
  CHECK_FALSE(accepts(1, kNan, 1e30));
  CHECK_FALSE(accepts(kInfinity, 1, 1e30));
  CHECK_FALSE(accepts(-kInfinity, kInfinity, 1e30));
  CHECK_FALSE(accepts(1, kInfinity, 1e30));
  CHECK_FALSE(accepts(kNan, kInfinity, 1e30));
}

TEST_CASE("where infinities are not kept, NaN passes for what one went into, and nowhere else") {
  CHECK(accepts(kNan, kInfinity, kInfinity, false));
  CHECK(accepts(kNan, 0, kInfinity, false));  // relu of -infinity
  CHECK_FALSE(accepts(kNan, kInfinity, kInfinity, true));
  CHECK_FALSE(accepts(kNan, 1, 1e30, false));
  CHECK_FALSE(accepts(2, 1, kInfinity, false));
  CHECK(accepts(-kInfinity, kInfinity, kInfinity));  // infinity times what is nearly 0
  CHECK_FALSE(accepts(-kInfinity, 1, kInfinity));
}

TEST_CASE("where an activation took an infinity away, only roundings pass") {
  CHECK(accepts(1 + 0x1p-22, 1, kInfinity));
  CHECK_FALSE(accepts(1 + 0x1.8p-22, 1, kInfinity));
  CHECK_FALSE(accepts(2, 1, kInfinity));
  CHECK_FALSE(accepts(0x1p-149, 0, kInfinity));
}

TEST_CASE("a tolerance that is no number lets nothing pass") {
  CHECK_FALSE(accepts(2, 1, kNan));
  CHECK_FALSE(accepts(2, 1, -5));
}

TEST_CASE("the verdict tells the worst place, per member") {
  const Table table(3, 2, 4, 0.5);
  MemberOutputs outputs = exact_outputs(table);
  set(outputs, 1, 1, 2, table.value(1, 1, 2) + 0.25);
  set(outputs, 2, 0, 3, table.value(2, 0, 3) - 1);
  const Verdict verdict = catalog::compare(ReferenceSample(table), outputs);
  CHECK_FALSE(verdict.passed);
  CHECK(verdict.message == "member 2, row 0, column 3: got 203, expected 204, tolerance 0.5");
  CHECK(verdict.worst_error_ratio == 2);
  CHECK(verdict.mismatches == 1);
  CHECK(verdict.nan_count == 0);
  CHECK(verdict.member_error_ratio == std::vector<double>{0, 0.5, 2});
  CHECK(verdict.elements == 24);
  CHECK(verdict.elements_compared == 24);
}

TEST_CASE("a NaN is found in rows that no reference was computed for") {
  const Table table(2, 1000, 3, 0.5);
  const ReferenceSample sample(table, 1);
  CHECK(sample.rows().size() == 6);
  CHECK(sample.elements() == 18);
  CHECK(sample.elements_in_all() == 6000);
  for (const int64_t row : {int64_t{1}, int64_t{500}, int64_t{998}}) {
    MemberOutputs outputs = exact_outputs(table);
    CHECK(catalog::compare(sample, outputs).passed);
    set(outputs, 1, row, 2, kNan);
    const Verdict verdict = catalog::compare(sample, outputs);
    CHECK_FALSE(verdict.passed);
    CHECK(verdict.nan_count == 1);
    CHECK(verdict.worst_error_ratio == kInfinity);
    CHECK(verdict.member_error_ratio == std::vector<double>{0, kInfinity});
    CHECK(verdict.message.starts_with("member 1, row " + std::to_string(row) + ", column 2: got "));
  }
}

TEST_CASE("a sample has the first and the last row of every member, and depends on its seed only") {
  const Table table(2, 1000, 3, 0.5);
  const auto rows_of = [&](uint64_t seed) {
    const ReferenceSample sample(table, 2e7, seed);
    std::vector<int64_t> rows;
    for (const auto& row : sample.rows()) rows.push_back(row.row);
    return rows;
  };
  const std::vector<int64_t> rows = rows_of(1);
  REQUIRE(rows.size() == 20);
  CHECK((rows[0] == 0 && rows[9] == 999 && rows[10] == 0 && rows[19] == 999));
  CHECK(rows == rows_of(1));
  CHECK(rows != rows_of(2));
  CHECK(ReferenceSample(table, 1e10).rows().size() == 2000);
}

TEST_CASE("outputs that the reference was not computed for do not pass") {
  const Table table(3, 2, 4, 0.5);
  const ReferenceSample sample(table);
  MemberOutputs fewer = exact_outputs(table);
  fewer.members.pop_back();
  CHECK_FALSE(catalog::compare(sample, fewer).passed);
  MemberOutputs shorter = exact_outputs(table);
  shorter.members[1].bytes.pop_back();
  CHECK_FALSE(catalog::compare(sample, shorter).passed);
  MemberOutputs turned = exact_outputs(table);
  std::swap(turned.members[2].rows, turned.members[2].row_length);
  CHECK(catalog::compare(sample, turned).message ==
        "the output of member 2 is 32 bytes of [4, 2], the reference was computed for [2, 4]");
  CHECK_FALSE(catalog::compare(sample, {}).passed);
  CHECK(catalog::compare(sample, {}).message != "");
}

TEST_CASE("an empty output passes, and says that nothing was compared") {
  const Table table(3, 0, 4, 0.5);
  const Verdict verdict = catalog::compare(ReferenceSample(table), exact_outputs(table));
  CHECK(verdict.passed);
  CHECK(verdict.elements_compared == 0);
  CHECK(verdict.elements == 0);
}

}  // namespace wide::test
