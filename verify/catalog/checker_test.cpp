// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The proof that the verifier can fail: implementations of linear that are wrong in one way each,
// all of which it must catch, next to correct ones of every order of summation, all of which it
// must let pass.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <limits>

#include "host/compare.hpp"
#include "verify/support/comma_locale.hpp"
#include "verify/support/open_linear.hpp"
#include "wide/convert.hpp"

namespace wide::test {

namespace {

constexpr int64_t kMembers = 3, kBatch = 5, kIn = 24, kOut = 24;  // square: a transpose fits, too
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Implementation {
  const char* name;
  std::function<void(OpenLinear&)> run;
  Dtype dtype = Dtype::fp32;
  int64_t in_features = kIn;
  catalog::WorkloadOptions options{};
  Activation activation = Activation::none;
};

/// What the verifier says of an implementation; empty: nothing is wrong.
std::string judge(const Implementation& implementation) {
  LinearProblem problem;
  problem.num_members = kMembers;
  problem.batch = kBatch;
  problem.in_features = implementation.in_features;
  problem.out_features = kOut;
  problem.dtype = implementation.dtype;
  problem.epilogue.has_bias = true;
  problem.epilogue.activation = implementation.activation;
  OpenLinear linear(Context::cpu({.num_threads = 1, .allocator = {}}), problem,
                    implementation.options);
  linear.poison_outputs(catalog::OutputOf::strategy, Stream::cpu());
  implementation.run(linear);
  const auto outputs = linear.read_outputs(catalog::OutputOf::strategy, Stream::cpu());
  const catalog::Verdict verdict = catalog::compare(catalog::ReferenceSample(linear), outputs);
  CHECK(verdict.passed == verdict.message.empty());
  CHECK(verdict.passed == (verdict.worst_error_ratio <= 1));
  return verdict.passed ? linear.damage(Stream::cpu()) : verdict.message;
}

/// A correct result, then `spoil`.
std::function<void(OpenLinear&)> spoiled(std::function<void(OpenLinear&)> spoil) {
  return [spoil](OpenLinear& linear) {
    linear.run_library("wide");
    spoil(linear);
  };
}

std::function<void(OpenLinear&)> recipe(const LinearRecipe& how) {
  return [how](OpenLinear& linear) { compute(linear, how); };
}

double keep_bits(double value, int mantissa_bits) {
  const int drop = 23 - mantissa_bits;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t half = 1u << (drop - 1);
  return static_cast<double>(std::bit_cast<float>((bits + half) & ~((1u << drop) - 1)));
}
double to_tf32(double value) {
  return keep_bits(value, 10);
}
double to_bf16(double value) {
  return keep_bits(value, 7);
}
double to_fp16(double value) {
  return static_cast<double>(fp16_to_float(float_to_fp16(static_cast<float>(value))));
}
double to_fp64(double value) {
  return value;
}

int64_t next_member(int64_t member) {
  return (member + 1) % kMembers;
}

void scale_member(OpenLinear& linear, int64_t member, double factor) {
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t o = 0; o < kOut; ++o) {
      linear.set_y(member, b, o, linear.y(member, b, o) * factor);
    }
  }
}

void swap_members(OpenLinear& linear) {
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t o = 0; o < kOut; ++o) {
      const double first = linear.y(0, b, o);
      linear.set_y(0, b, o, linear.y(1, b, o));
      linear.set_y(1, b, o, first);
    }
  }
}

/// Every row gets the one below it.
void shift_rows(OpenLinear& linear) {
  for (int64_t m = 0; m < kMembers; ++m) {
    for (int64_t b = 0; b + 1 < kBatch; ++b) {
      for (int64_t o = 0; o < kOut; ++o) linear.set_y(m, b, o, linear.y(m, b + 1, o));
    }
  }
}

/// [N, B, out] instead of [B, N, out].
void store_member_major(OpenLinear& linear) {
  std::vector<float> rows;
  for (int64_t m = 0; m < kMembers; ++m) {
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t o = 0; o < kOut; ++o) rows.push_back(static_cast<float>(linear.y(m, b, o)));
    }
  }
  std::memcpy(linear.y_data(), rows.data(), rows.size() * sizeof(float));
}

/// The output of a call with other operands, left in the buffer.
void keep_previous_output(OpenLinear& linear) {
  catalog::WorkloadOptions other;
  other.seed = 43;
  OpenLinear previous(Context::cpu({.num_threads = 1, .allocator = {}}), linear.problem(), other);
  previous.run_library("wide");
  std::memcpy(linear.y_data(), previous.y_data(),
              static_cast<size_t>(linear.y_elements()) * sizeof(float));
}

void add_to_what_is_there(OpenLinear& linear) {
  std::vector<double> before;
  for (int64_t o = 0; o < kOut; ++o) before.push_back(linear.y(0, 0, o));
  linear.run_library("wide");
  for (int64_t o = 0; o < kOut; ++o) {
    linear.set_y(0, 0, o, linear.y(0, 0, o) + before[static_cast<size_t>(o)]);
  }
}

/// One value, off by `ratio` times what is allowed.
std::function<void(OpenLinear&)> off_by(double ratio) {
  return spoiled([ratio](OpenLinear& linear) {
    std::vector<double> values(kOut), tolerances(kOut);
    linear.reference_row(kMembers - 1, kBatch - 1, values, tolerances);
    linear.set_y(kMembers - 1, kBatch - 1, kOut - 1, values.back() + ratio * tolerances.back());
  });
}

std::function<void(OpenLinear&)> one_value(double value) {
  return spoiled([value](OpenLinear& linear) { linear.set_y(1, 2, 3, value); });
}

void flip_bit(void* data, int64_t byte) {
  static_cast<unsigned char*>(data)[byte] ^= 1u;
}
std::function<void(OpenLinear&)> write_y(int64_t element) {
  return spoiled(
      [element](OpenLinear& linear) { store_element(linear.y_data(), Dtype::fp32, element, 0.0); });
}

catalog::WorkloadOptions padded() {
  catalog::WorkloadOptions options;
  options.row_padding = 3;
  options.misalign_elements = 1;
  return options;
}

std::vector<Implementation> wrong_ones() {
  const int64_t all = kMembers * kBatch * kOut;
  return {
      {"zeros",
       [](OpenLinear& l) { std::memset(l.y_data(), 0, size_t{4} * kMembers * kBatch * kOut); }},
      {"nothing written", [](OpenLinear&) {}},
      {"the previous call's output", keep_previous_output},
      {"added to what was there", add_to_what_is_there},
      {"one NaN", one_value(kNan)},
      {"infinity for a value", one_value(kInfinity)},
      {"one zero", one_value(0)},
      {"one value off by 1.5 tolerances", off_by(1.5)},
      {"one value off by -1.5 tolerances", off_by(-1.5)},
      {"rows off by one", spoiled(shift_rows)},
      {"members swapped", spoiled(swap_members)},
      {"member-major output", spoiled(store_member_major)},
      {"one member scaled by 1.001", spoiled([](OpenLinear& l) { scale_member(l, 2, 1.001); })},
      {"one member negated", spoiled([](OpenLinear& l) { scale_member(l, 2, -1); })},
      {"bias of member 0 for all", recipe({.bias_of = [](int64_t) { return int64_t{0}; }})},
      {"bias missing", recipe({.bias_of = [](int64_t) { return int64_t{-1}; }})},
      {"weights of the next member", recipe({.weight_of = next_member})},
      {"input of the next member", recipe({.x_of = next_member})},
      {"weights of member 0 for all", recipe({.weight_of = [](int64_t) { return int64_t{0}; }})},
      {"transposed weight", recipe({.is_weight_transposed = true})},
      {"last row missing", recipe({.num_rows_less = 1})},
      {"last column missing", recipe({.num_columns_less = 1})},
      {"last product missing", recipe({.dropped_term = kIn - 1})},
      {"one product doubled", recipe({.doubled_term = 7})},
      {"one product too many", recipe({.num_terms_more = 1})},
      {"padding read", recipe({.num_terms_more = 1}), Dtype::fp32, kIn, padded()},
      {"tf32 operands", recipe({.round_operand = to_tf32})},
      {"tf32 operands in long sums", recipe({.round_operand = to_tf32}), Dtype::fp32, 8192},
      {"bf16 operands", recipe({.round_operand = to_bf16})},
      {"fp16 operands", recipe({.round_operand = to_fp16})},
      {"fp16 sums of fp32", recipe({.round_sum = to_fp16})},
      {"bf16 sums of fp32", recipe({.round_sum = to_bf16})},
      {"fp16 sums of fp16", recipe({.round_sum = to_fp16}), Dtype::fp16, 256},
      {"bf16 sums of bf16", recipe({.round_sum = to_bf16}), Dtype::bf16, 256},
      {"relu forgotten",
       recipe({.skips_activation = true}),
       Dtype::fp32,
       kIn,
       {},
       Activation::relu},
      {"written before the start", write_y(-1)},
      {"written behind the end", write_y(all)},
      {"written 1000 elements behind the end", write_y(all + 1000)},
      {"written between rows", write_y(kMembers * kOut + 1), Dtype::fp32, kIn, padded()},
      {"an input changed", spoiled([](OpenLinear& l) { flip_bit(l.x_data(), 17); })},
      {"a weight changed", spoiled([](OpenLinear& l) { flip_bit(l.weight_data(), 4); })},
  };
}

std::vector<Implementation> right_ones() {
  std::vector<Implementation> list{
      {"sums in fp64", recipe({.round_sum = to_fp64})},
      {"one value off by half a tolerance", off_by(0.5)},
  };
  for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
    for (const int64_t in : {1, 24, 256, 1024}) {
      for (const auto& options : {catalog::WorkloadOptions{}, padded()}) {
        for (const Activation activation : {Activation::none, Activation::relu}) {
          list.push_back({"first term first", recipe({}), dtype, in, options, activation});
          list.push_back(
              {"last term first", recipe({.is_backwards = true}), dtype, in, options, activation});
          list.push_back({"wide", spoiled([](OpenLinear&) {}), dtype, in, options, activation});
        }
      }
    }
  }
  return list;
}

}  // namespace

TEST_CASE("what is wrong is said with points, whatever the program's locale") {
  const Implementation wrong{"one value",
                             spoiled([](OpenLinear& linear) { linear.set_y(1, 2, 3, 1234.5); })};
  const CommaLocale commas;
  CHECK_THAT(judge(wrong),
             Catch::Matchers::StartsWith("member 1, row 2, column 3: got 1234.5, expected ") &&
                 Catch::Matchers::ContainsSubstring(", tolerance "));
}

TEST_CASE("every wrong implementation is caught") {
  int64_t num_killed = 0, num_planted = 0;
  for (const Implementation& wrong : wrong_ones()) {
    INFO(wrong.name);
    const std::string verdict = judge(wrong);
    CHECK(verdict != "");
    num_killed += verdict.empty() ? 0 : 1;
    ++num_planted;
  }
  WARN("killed " << num_killed << " of " << num_planted << " planted errors");
  CHECK(num_planted >= 30);
}

TEST_CASE("correct implementations pass, in every order of summation") {
  for (const Implementation& right : right_ones()) {
    INFO(right.name << ", " << dtype_name(right.dtype) << ", in " << right.in_features);
    CHECK(judge(right) == "");
  }
}

TEST_CASE("the message says where, what was got and what expected") {
  const std::string wrong_value = judge({"", one_value(64)});
  CHECK(wrong_value.starts_with("member 1, row 2, column 3: got 64, expected "));
  CHECK(wrong_value.find(", tolerance ") != std::string::npos);
  CHECK(judge({"", write_y(-1)}) == "linear y (output): byte 1 before its start was written");
  CHECK(judge({"", write_y(kMembers * kBatch * kOut)}) ==
        "linear y (output): byte 1 past its end was written");
  CHECK(judge({"", write_y(kMembers * kOut + 1), Dtype::fp32, kIn, padded()}) ==
        "linear y (output): the gap at [0, 73] was written");
  CHECK(judge({"", spoiled([](OpenLinear& l) {
                 flip_bit(l.x_data(), 4 * (kMembers * kIn + 7));
               })}) == "linear x: this input was written to, first at [1, 7]");
}

}  // namespace wide::test
