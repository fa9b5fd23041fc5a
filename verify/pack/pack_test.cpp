// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pack and unpack of every operand, dtype and device against plain loops that share nothing with
// them. The operands are read from the header's text, where none can be forgotten.
#include "wide/pack.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "verify/support/devices.hpp"
#include "wide/error.hpp"

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>

#include "wide/dlpack.hpp"
#endif

using namespace wide;
using Catch::Matchers::Message;

namespace {

using Bytes = std::vector<uint8_t>;

/// Those of wide/pack.hpp, in its order.
std::vector<PackedOperand> declared_operands() {
  std::ifstream file(WIDE_SOURCE_DIR "/include/wide/pack.hpp");
  static const std::string text{std::istreambuf_iterator<char>(file), {}};  // names lie in it
  const std::regex declaration(R"(constexpr PackedOperand \w+)"),
      definition(
          R"re(PackedOperand \w+\{"([^"]+)",\s+(joined|stacked),\s+(-?\d),\s+(\d),\s+(\d)\};)re");
  std::vector<PackedOperand> operands;
  for (std::sregex_iterator at(text.begin(), text.end(), definition), end; at != end; ++at) {
    const std::smatch& m = *at;
    operands.push_back(
        {{&*m[1].first, static_cast<size_t>(m[1].length())},
         m[2] == "joined" ? PackedOperand::Kind::joined : PackedOperand::Kind::stacked,
         std::stoi(m[3]),
         std::stoi(m[4]),
         std::stoi(m[5])});
  }
  const std::sregex_iterator declarations(text.begin(), text.end(), declaration);
  REQUIRE(std::distance(declarations, {}) == static_cast<std::ptrdiff_t>(operands.size()));
  REQUIRE(operands.size() > 60);
  return operands;
}

/// Odd extents, none equal to another or to the number of members.
Shape member_shape(const PackedOperand& operand, int rank) {
  const std::array<int64_t, 6> extents{3, 10, 7, 2, 4, 1};
  (void)operand;
  return Shape(std::span<const int64_t>(extents.data(), static_cast<size_t>(rank)));
}

/// Offset, in elements, of a member's element in the packed tensor: the layout's definition.
int64_t packed_offset(const PackedOperand& operand, const Shape& member, int64_t index,
                      int64_t num_members, const std::array<int64_t, 6>& at, int64_t row_padding) {
  std::vector<int64_t> extents(member.begin(), member.end()),
      place(at.begin(), at.begin() + member.rank());
  const int axis = operand.axis < 0 ? operand.axis + member.rank() : operand.axis;
  const auto a = static_cast<size_t>(axis);
  if (operand.kind == PackedOperand::Kind::joined) {
    place[a] += index * extents[a];
    extents[a] *= num_members;
  } else {
    extents.insert(extents.begin() + axis, num_members);
    place.insert(place.begin() + axis, index);
  }
  extents.back() += row_padding;
  int64_t offset = 0;
  for (size_t i = 0; i < extents.size(); ++i) offset = offset * extents[i] + place[i];
  return offset;
}

template <class F>
void for_each_element(const Shape& shape, const F& f) {
  std::array<int64_t, 6> at{};
  for (int64_t number = 0; number < num_elements(shape); ++number) {
    f(number, at);
    for (int axis = shape.rank() - 1; axis >= 0 && ++at[static_cast<size_t>(axis)] == shape[axis];
         --axis) {
      at[static_cast<size_t>(axis)] = 0;
    }
  }
}

Bytes download(const Context& context, const Tensor& tensor, Stream stream) {
  Bytes bytes(static_cast<size_t>(tensor.bytes()));
  copy(tensor, TensorView(bytes.data(), tensor.dtype(), tensor.shape(), Device{}), stream);
  context.synchronize(stream);
  return bytes;
}

void check_round_trip(const Context& context, const PackedOperand& operand, int rank, Dtype dtype,
                      int64_t num_members, int64_t row_padding, int64_t shift) {
  INFO(operand.name << " rank " << rank << " " << dtype_name(dtype) << " padding " << row_padding
                    << " shift " << shift);
  const OwnedStream stream(context);
  const Shape member = member_shape(operand, rank);
  const int64_t size = dtype_bytes(dtype), count = num_elements(member);
  Shape stored = packed_shape(operand, member, num_members);
  const Shape packed_extents = stored;
  stored[stored.rank() - 1] += row_padding;
  Tensor storage(context, dtype, {num_elements(stored) + shift});
  fill_bytes(storage, 0xee, stream.get());
  auto* base = static_cast<uint8_t*>(storage.data()) + shift * size;
  const TensorView packed(base, dtype, packed_extents, contiguous_strides(stored),
                          context.device());

  std::vector<Tensor> members, returned;
  std::vector<ConstTensorView> sources;
  std::vector<TensorView> targets;
  std::vector<Bytes> contents;
  for (int64_t i = 0; i < num_members; ++i) {
    Bytes& bytes = contents.emplace_back(static_cast<size_t>(count * size));
    for (size_t b = 0; b < bytes.size(); ++b)
      bytes[b] = static_cast<uint8_t>(b * 7 + static_cast<size_t>(i) * 131 + 1);
    copy(ConstTensorView(bytes.data(), dtype, member, Device{}),
         members.emplace_back(context, dtype, member), stream.get());
    context.synchronize(stream.get());
    sources.push_back(members.back());
    targets.push_back(returned.emplace_back(context, dtype, member));
  }
  pack(operand, sources, packed, stream.get());
  const Bytes got = download(context, storage, stream.get());
  Bytes expected(got.size(), 0xee);
  for (int64_t i = 0; i < num_members; ++i) {
    for_each_element(member, [&](int64_t number, const auto& at) {
      const int64_t to = shift + packed_offset(operand, member, i, num_members, at, row_padding);
      std::memcpy(expected.data() + to * size,
                  contents[static_cast<size_t>(i)].data() + number * size,
                  static_cast<size_t>(size));
    });
  }
  CHECK(got == expected);
  unpack(operand, packed, targets, stream.get());
  for (size_t i = 0; i < returned.size(); ++i)
    CHECK(download(context, returned[i], stream.get()) == contents[i]);
}

}  // namespace

TEST_CASE("pack puts every element where the layout says, unpack brings it back, bit for bit") {
  const std::vector<PackedOperand> operands = declared_operands();
  for (const Context& context : test::devices_at_hand()) {
    for (const PackedOperand& operand : operands) {
      for (int rank = operand.min_rank; rank <= operand.max_rank; ++rank) {
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::fp8_e4m3, Dtype::int64}) {
          check_round_trip(context, operand, rank, dtype, 5, 0, 0);
          check_round_trip(context, operand, rank, dtype, 5, 3, 1);
        }
      }
    }
  }
}

TEST_CASE("every dtype packs, N = 1 and more members than a launch takes, too") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : kAllDtypes)
      check_round_trip(context, operands::linear_x, 2, dtype, 4, 6, 0);
    check_round_trip(context, operands::linear_weight, 2, Dtype::bf16, 1, 0, 0);
    check_round_trip(context, operands::linear_weight, 2, Dtype::fp32,
                     test::wants_small_cases() ? 66 : 130, 0, 0);
  }
}

TEST_CASE("packing along the wrong axis is refused with both shapes") {
  const Context cpu = Context::cpu();
  Tensor member(cpu, Dtype::fp32, {8, 128, 64}), wrong(cpu, Dtype::fp32, {8, 512, 64});
  const std::vector<ConstTensorView> members(4, member);
  CHECK_THROWS_MATCHES(
      pack(operands::linear_x, members, wrong, Stream::cpu()), Error,
      Message("pack: linear x: 4 members of [8, 128, 64] pack to [8, 128, 256], got [8, 512, 64]"));
  const std::vector<TensorView> targets(4, member);
  CHECK_THROWS_MATCHES(unpack(operands::attention_x, wrong, targets, Stream::cpu()), Error,
                       Message("unpack: attention x: 4 members of [8, 128, 64] pack to [8, 128, "
                               "256], got [8, 512, 64]"));
}

TEST_CASE("pack refuses what does not fit together") {
  const Context cpu = Context::cpu();
  Tensor a(cpu, Dtype::fp32, {2, 3}), b(cpu, Dtype::fp32, {2, 4}), half(cpu, Dtype::fp16, {2, 3});
  Tensor packed(cpu, Dtype::fp32, {2, 6}), packed_half(cpu, Dtype::fp16, {2, 6});
  const auto packs = [&](std::vector<ConstTensorView> members, const TensorView& to) {
    pack(operands::linear_x, members, to, Stream::cpu());
  };
  CHECK_THROWS_MATCHES(packs({}, packed), Error,
                       Message("pack: linear x: no member, expected at least one"));
  CHECK_THROWS_MATCHES(packs({a, b}, packed), Error,
                       Message("pack: linear x: member 1 is fp32 [2, 4] on cpu, expected as member "
                               "0: fp32 [2, 3] on cpu"));
  CHECK_THROWS_AS(packs({a, half}, packed), Error);
  CHECK_THROWS_AS(packs({a, a}, packed_half), Error);
  CHECK_THROWS_MATCHES(
      packs({packed.view().narrow(1, 0, 3), a}, packed), Error,
      Message("pack: linear x: member 0 overlaps the packed tensor, expected memory of its own"));
  const Tensor room(cpu, Dtype::fp32, {7});
  const ConstTensorView odd(static_cast<const char*>(room.data()) + 2, Dtype::fp32, {2, 3},
                            Device{});
  CHECK_THROWS_MATCHES(packs({a, odd}, packed), Error,
                       Message("pack: linear x: member 1 is aligned to 2 bytes, expected its fp32 "
                               "elements' size = 4"));
  const ConstTensorView nowhere(nullptr, Dtype::fp32, {2, 3}, Device{});
  CHECK_THROWS_MATCHES(
      packs({nowhere, a}, packed), Error,
      Message("pack: linear x: member 0 is a null pointer, expected [2, 3] elements"));
  CHECK_THROWS_MATCHES(packed_shape(operands::conv2d_x, {1, 2, 3}, 2), Error,
                       Message("conv2d x: a member's tensor is [1, 2, 3], expected 4 dimensions"));
  CHECK_THROWS_AS(packed_shape(operands::linear_x, {2, int64_t{1} << 40}, int64_t{1} << 40), Error);
  CHECK_THROWS_AS(member_view(operands::linear_x, packed.view(), 4, 0), Error);
  CHECK_THROWS_MATCHES(member_view(operands::linear_x, packed.view(), 2, 2), Error,
                       Message("linear x: member is 2, expected one in [0, 2)"));
  CHECK_NOTHROW(packs({Tensor(cpu, Dtype::fp32, {0, 3})}, Tensor(cpu, Dtype::fp32, {0, 3})));
}

TEST_CASE("pack: an operand of the caller's own has an axis that its tensors have") {
  const Context cpu = Context::cpu();
  using Kind = PackedOperand::Kind;
  Tensor a(cpu, Dtype::fp32, {2, 3}), joined(cpu, Dtype::fp32, {2, 6}),
      stacked(cpu, Dtype::fp32, {2, 3, 2});
  const std::vector<ConstTensorView> members{a, a};
  const std::vector<TensorView> targets{a, a};
  const auto refuses = [&](const PackedOperand& own, const TensorView& packed, const char* ends) {
    const std::string wrong = "own: axis is " + std::to_string(own.axis) + ", expected one in " +
                              ends + " of a member's tensor of 2 dimensions";
    CHECK_THROWS_MATCHES(packed_shape(own, a.shape(), 2), Error, Message(wrong));
    CHECK_THROWS_MATCHES(member_view(own, packed, 2, 0), Error, Message(wrong));
    CHECK_THROWS_MATCHES(pack(own, members, packed, Stream::cpu()), Error, Message(wrong));
    CHECK_THROWS_MATCHES(unpack(own, packed, targets, Stream::cpu()), Error, Message(wrong));
  };
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const int axis : {2, 3, 7, kMost, -3, -100, -kMost - 1})
    refuses({"own", Kind::joined, axis, 1, 5}, joined, "[-2, 2)");
  for (const int axis : {3, 7, kMost, -3, -100, -kMost - 1})
    refuses({"own", Kind::stacked, axis, 1, 5}, stacked, "[-2, 3)");
  CHECK(packed_shape({"own", Kind::stacked, 2, 1, 5}, {2, 3}, 2) == Shape{2, 3, 2});
  CHECK(member_view({"own", Kind::stacked, 2, 1, 5}, stacked.view(), 2, 1).shape == Shape{2, 3});
  CHECK(member_view({"own", Kind::joined, -2, 1, 5}, joined.view(), 2, 1).shape == Shape{1, 6});
}

#if __has_include(<dlpack/dlpack.h>)
template <class View>
concept is_exported = requires(View&& view, DLTensor& tensor) {
  to_dlpack(std::forward<View>(view), tensor);
};

TEST_CASE("DLPack tensors come and go without a copy") {
  float data[12] = {};
  int64_t shape[] = {3, 2}, strides[] = {4, 1};
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 2;
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = shape;
  tensor.strides = strides;
  tensor.byte_offset = 4;
  const TensorView view = from_dlpack(tensor);
  CHECK(view.data == data + 1);
  CHECK(view.shape == Shape{3, 2});
  CHECK(view.strides == Strides{4, 1});
  tensor.strides = nullptr;
  CHECK(from_dlpack(tensor).strides == Strides{2, 1});
  DLTensor back{};
  to_dlpack(view, back);
  STATIC_CHECK_FALSE(is_exported<TensorView>);  // nothing would hold its shape
  CHECK(from_dlpack(back).data == view.data);
  CHECK(from_dlpack(back).strides == view.strides);
  strides[0] = -4;
  tensor.strides = strides;
  CHECK_THROWS_MATCHES(from_dlpack(tensor), Error,
                       Message("dlpack: strides [-4, 1], expected none below 0"));
  try {
    (void)from_dlpack(tensor);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unsupported);  // DLPack has such tensors
  }
  tensor.strides = nullptr;
  tensor.dtype = {kDLFloat, 64, 1};
  CHECK_THROWS_AS(from_dlpack(tensor), Error);
  tensor.dtype = {kDLFloat, 32, 4};
  CHECK_THROWS_AS(from_dlpack(tensor), Error);
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = nullptr;
  CHECK_THROWS_MATCHES(from_dlpack(tensor), Error,
                       Message("dlpack: shape is null, expected 2 extents"));
  for (const Dtype dtype : kAllDtypes) {
    const DlpackType type = dlpack_type(dtype);
    CHECK(dtype_of_dlpack(type.code, type.bits, 1) == dtype);
  }
}
#endif
