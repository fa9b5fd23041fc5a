// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands as memory: layouts against index arithmetic of this test's own, guard bands, gaps and
// inputs against writes made by hand.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>
#include <thread>

#include "host/operand.hpp"
#include "verify/support/devices.hpp"
#include "wide/convert.hpp"
#include "wide/error.hpp"

namespace wide::test {

namespace {

using catalog::Distribution;
using catalog::Operand;
using catalog::OutputOf;
using catalog::WorkloadOptions;

Context one_thread() {
  return Context::cpu({.num_threads = 1, .allocator = {}});
}

std::vector<double> values_of(const Operand& operand, int64_t member) {
  const auto values = operand.values(member);
  return {values.begin(), values.end()};
}

Operand::Description weights(Dtype dtype = Dtype::fp32) {
  return {operands::linear_weight, dtype, {4, 6}, 3, false, Distribution::uniform()};
}

/// Offset of a member's element in the stored packed tensor, from the layouts as documented:
/// joined: [.., N*D, ..], stacked: [.., N, ..].
int64_t stored_offset(const PackedOperand& packing, const Shape& shape, int64_t num_members,
                      int64_t padding, int64_t member, const Shape& index) {
  std::vector<int64_t> extent(shape.begin(), shape.end());
  std::vector<int64_t> place(index.begin(), index.end());
  const int axis = packing.axis < 0 ? packing.axis + shape.rank() : packing.axis;
  const auto at = static_cast<size_t>(axis);
  if (packing.kind == PackedOperand::Kind::joined) {
    place[at] += member * extent[at];
    extent[at] *= num_members;
  } else {
    extent.insert(extent.begin() + axis, num_members);
    place.insert(place.begin() + axis, member);
  }
  extent.back() += padding;
  int64_t offset = 0;
  for (size_t a = 0; a < extent.size(); ++a) offset = offset * extent[a] + place[a];
  return offset;
}

/// Every element of every member lies where the layout says, and nothing else was filled.
void check_layout(const PackedOperand& packing, const Shape& shape,
                  const WorkloadOptions& options) {
  constexpr int64_t kMembers = 3;
  const Operand operand(one_thread(),
                        {packing, Dtype::fp32, shape, kMembers, false, Distribution::uniform()},
                        options);
  const TensorView view = operand.packed();
  const auto address = reinterpret_cast<uintptr_t>(view.data);
  CHECK(address % 256 == static_cast<uintptr_t>(options.misalign_elements) * 4 % 256);
  CHECK(view.shape == packed_shape(packing, shape, kMembers));
  std::set<int64_t> filled;
  for (int64_t m = 0; m < kMembers; ++m) {
    const std::vector<double> values = values_of(operand, m);
    const Strides dense = contiguous_strides(shape);
    for (int64_t i = 0; i < num_elements(shape); ++i) {
      Shape index = shape;
      for (int a = 0; a < shape.rank(); ++a) index[a] = i / dense[a] % shape[a];
      const int64_t offset = stored_offset(packing, shape, kMembers, options.row_padding, m, index);
      REQUIRE(load_element(view.data, Dtype::fp32, offset) == values[static_cast<size_t>(i)]);
      CHECK(filled.insert(offset).second);
    }
  }
  const int64_t rows = view.num_elements() / view.shape.back();
  for (int64_t i = 0; i < rows * (view.shape.back() + options.row_padding); ++i) {
    CHECK(std::isnan(load_element(view.data, Dtype::fp32, i)) == !filled.contains(i));
  }
}

WorkloadOptions layout(int64_t misalign, int64_t padding) {
  WorkloadOptions options;
  options.misalign_elements = misalign;
  options.row_padding = padding;
  return options;
}

}  // namespace

TEST_CASE("every kind of operand lies where the layout table says") {
  const std::vector<std::pair<PackedOperand, Shape>> kinds{
      {operands::linear_x, {5, 3}},
      {operands::linear_x, {2, 5, 3}},
      {operands::linear_weight, {4, 6}},
      {operands::linear_bias, {5}},
      {operands::conv1d_x, {2, 3, 5}},
      {operands::conv2d_x, {2, 3, 5, 4}},
      {operands::conv2d_weight, {4, 3, 2, 2}},
      {operands::conv_bias, {5}},
      {operands::embedding_ids, {3, 7}},
      {operands::embedding_table, {7, 3}},
      {operands::layernorm_x, {2, 2, 2, 2, 3}}};
  for (const auto& [packing, shape] : kinds) {
    for (const auto& options : {layout(0, 0), layout(1, 0), layout(0, 3), layout(3, 2)}) {
      INFO(packing.name << ", padding " << options.row_padding);
      check_layout(packing, shape, options);
    }
  }
}

TEST_CASE("one tensor is shared by all members, and has no member axis") {
  auto shared = weights();
  shared.is_shared = true;
  const Operand operand(one_thread(), shared, {});
  CHECK(operand.packed().shape == Shape{4, 6});
  CHECK(operand.bytes() == 4 * 6 * 4);
  CHECK(operand.member(0).data == operand.member(2).data);
  CHECK(values_of(operand, 0) == values_of(operand, 2));
}

TEST_CASE("a member's own tensor holds the values of its part of the packed one") {
  for (const auto& options : {layout(0, 0), layout(1, 3)}) {
    const Operand operand(one_thread(), weights(Dtype::fp16), options);
    for (int64_t m = 0; m < 3; ++m) {
      const TensorView own = operand.member(m);
      CHECK((own.shape == Shape{4, 6} && own.is_contiguous() && own.alignment() == 256));
      const auto values = values_of(operand, m);
      for (int64_t i = 0; i < 24; ++i) {
        CHECK(load_element(own.data, Dtype::fp16, i) == values[static_cast<size_t>(i)]);
      }
    }
    CHECK(operand.damage(Stream::cpu()) == "");
  }
}

TEST_CASE("threads may ask for a member's values at once") {
  Operand::Description large = weights();
  large.member_shape = {400, 600};
  const Operand operand(one_thread(), large, {}), again(one_thread(), large, {});
  for (int64_t member = 0; member < 3; ++member) {
    const std::vector<double> expected = values_of(again, member);
    std::atomic<int> differing{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] { differing += values_of(operand, member) == expected ? 0 : 1; });
    for (std::thread& thread : threads) thread.join();
    CHECK(differing == 0);
  }
}

TEST_CASE("writes before, behind and between are found, and how far off they are") {
  Operand::Description output{operands::linear_y,  Dtype::fp32, {4, 6}, 3, false,
                              Distribution::none()};
  Operand operand(one_thread(), output, layout(1, 2));
  auto* data = static_cast<float*>(operand.packed().data);
  const auto found = [&](int64_t element) {
    operand.poison(OutputOf::strategy, Stream::cpu());
    data[element] = 0;
    return operand.damage(Stream::cpu());
  };
  const int64_t row = 3 * 6 + 2, end = 4 * row;
  for (const int64_t inside : {int64_t{0}, row - 3, row, end - 3}) CHECK(found(inside) == "");
  CHECK(found(-1) == "linear y (output): byte 1 before its start was written");
  CHECK(found(-1000) == "linear y (output): byte 3997 before its start was written");
  CHECK(found(end) == "linear y (output): byte 1 past its end was written");
  CHECK(found(end + 1023) == "linear y (output): byte 4093 past its end was written");
  CHECK(found(row - 2) == "linear y (output): the gap at [0, 18] was written");
  CHECK(found(end - 1) == "linear y (output): the gap at [3, 19] was written");
  static_cast<float*>(operand.member(1).data)[24] = 0;
  operand.poison(OutputOf::strategy, Stream::cpu());
  CHECK(operand.damage(Stream::cpu()) ==
        "linear y (output) of member 1: byte 1 past its end was written");
  operand.poison(OutputOf::baseline, Stream::cpu());
  CHECK(operand.damage(Stream::cpu()) == "");
}

TEST_CASE("any byte of an input that changes is found") {
  for (const auto& options : {layout(0, 0), layout(1, 3)}) {
    const Operand operand(one_thread(), weights(Dtype::bf16), options);
    auto* bytes = static_cast<unsigned char*>(operand.packed().data);
    for (int64_t i = -4096; i < operand.packed().span_bytes() + 4096; ++i) {
      bytes[i] ^= 1u;
      REQUIRE(operand.damage(Stream::cpu()) != "");
      bytes[i] ^= 1u;
    }
    CHECK(operand.damage(Stream::cpu()) == "");
    *static_cast<unsigned char*>(operand.member(2).data) ^= 1u;
    CHECK(operand.damage(Stream::cpu()) == "linear weight of member 2: this input was written to");
  }
}

TEST_CASE("values of a state may change, its surroundings may not") {
  auto state = weights();
  state.is_state = true;
  const Operand operand(one_thread(), state, layout(1, 3));
  auto* data = static_cast<float*>(operand.packed().data);
  data[0] = 99;
  static_cast<float*>(operand.member(1).data)[0] = 99;
  CHECK(operand.damage(Stream::cpu()) == "");
  data[6] = 99;
  CHECK(operand.damage(Stream::cpu()) == "linear weight: the gap at [0, 0, 6] was written");
}

TEST_CASE("operands of odd dtypes and no elements are legal; wrong ids are not") {
  for (const Shape& shape : {Shape{0, 6}, Shape{4, 0}}) {
    Operand operand(one_thread(),
                    {operands::linear_weight, Dtype::fp32, shape, 3, false, Distribution::none()},
                    layout(0, 2));
    operand.poison(OutputOf::strategy, Stream::cpu());
    operand.poison(OutputOf::baseline, Stream::cpu());
    CHECK(operand.read(OutputOf::strategy, Stream::cpu()).members.size() == 3);
    CHECK(operand.read(OutputOf::baseline, Stream::cpu()).members.at(2).bytes.empty());
    CHECK(operand.damage(Stream::cpu()) == "");
    CHECK(operand.bytes() == 0);
  }
  WorkloadOptions options;
  options.member_ids = {1, 2};
  CHECK_THROWS_AS(Operand(one_thread(), weights(), options), Error);
}

TEST_CASE("members of shapes of their own lie where their places say, and gaps are looked at") {
  // [2, 3] with rows 4 apart, nothing, [1, 5] behind a gap of two.
  Operand::Description ragged;
  ragged.packing.name = "ragged x";
  ragged.num_members = 3;
  ragged.ragged = {{{2, 3}, 0, {4, 1}}, {{0, 7}, 8, {7, 1}}, {{1, 5}, 9, {5, 1}}};
  const Operand input(one_thread(), ragged, layout(1, 2));
  CHECK(input.packed().shape == Shape{14});
  CHECK(input.bytes() == (6 + 0 + 5) * 4);
  CHECK(input.member_shape(2) == Shape{1, 5});
  const auto* data = static_cast<const float*>(input.packed().data);
  const auto first = values_of(input, 0), last = values_of(input, 2);
  REQUIRE((first.size() == 6 && values_of(input, 1).empty() && last.size() == 5));
  for (size_t i = 0; i < 6; ++i) CHECK(static_cast<double>(data[i / 3 * 4 + i % 3]) == first[i]);
  for (size_t i = 0; i < 5; ++i) CHECK(static_cast<double>(data[9 + i]) == last[i]);
  for (const int64_t gap : {3, 7, 8}) CHECK(std::isnan(data[gap]));
  CHECK(static_cast<const float*>(input.member(2).data)[4] == data[13]);
  CHECK(input.damage(Stream::cpu()) == "");

  Operand::Description output = ragged;
  output.distribution = Distribution::none();
  Operand written(one_thread(), output, layout(0, 0));
  const auto found = [&](int64_t element) {
    written.poison(OutputOf::strategy, Stream::cpu());
    static_cast<float*>(written.packed().data)[element] = 0;
    return written.damage(Stream::cpu());
  };
  for (const int64_t inside : {0, 2, 4, 6, 9, 13}) CHECK(found(inside) == "");
  for (const int64_t gap : {3, 7, 8}) {
    CHECK(found(gap) == "ragged x (output): the gap at [" + std::to_string(gap) + "] was written");
  }
  CHECK(found(14) == "ragged x (output): byte 1 past its end was written");
  const auto outputs = written.read(OutputOf::strategy, Stream::cpu());
  CHECK((outputs.members[0].rows == 2 && outputs.members[0].row_length == 3));
  CHECK((outputs.members[1].rows == 0 && outputs.members[1].bytes.empty()));
  CHECK((outputs.members[2].rows == 1 && outputs.members[2].bytes.size() == 20));

  ragged.ragged_elements = 16;
  const Operand longer(one_thread(), ragged, layout(0, 0));
  CHECK(longer.packed().shape == Shape{16});
  CHECK(longer.bytes() == input.bytes());
  static_cast<float*>(longer.packed().data)[15] = 0;
  CHECK(longer.damage(Stream::cpu()) == "ragged x: the gap at [15] was written");
}

TEST_CASE("operands on CUDA hold what operands on the CPU hold, and find the same damage",
          "[gpu]") {
  const Context cuda = require_cuda();
  const OwnedStream stream(cuda);
  const auto options = layout(1, 3);
  const Operand there(cuda, weights(Dtype::fp16), options);
  const Operand here(one_thread(), weights(Dtype::fp16), options);
  Operand::Description output = weights();
  output.distribution = Distribution::none();
  Operand written(cuda, output, options);
  for (int64_t m = 0; m < 3; ++m) {
    CHECK(values_of(there, m) == values_of(here, m));
    CHECK(there.read(OutputOf::strategy, stream.get()).members ==
          here.read(OutputOf::strategy, Stream::cpu()).members);
    CHECK(there.read(OutputOf::baseline, stream.get()).members ==
          here.read(OutputOf::baseline, Stream::cpu()).members);
  }
  CHECK(there.damage(stream.get()) == "");
  CHECK(written.damage(stream.get()) == "");
  TensorView place = there.packed();
  place.shape = place.strides = {1};
  fill_bytes(place, 0, stream.get());
  CHECK(there.damage(stream.get()) ==
        "linear weight: this input was written to, first at [0, 0, 0]");
  place = written.packed();
  place.data = static_cast<std::byte*>(place.data) - 4;
  place.shape = place.strides = {1};
  fill_bytes(place, 0, stream.get());
  CHECK(written.damage(stream.get()) ==
        "linear weight (output): byte 1 before its start was written");
}

}  // namespace wide::test
