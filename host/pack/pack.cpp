// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pack and unpack: a view of every member inside the packed tensor, then strided copies. All the
// layout knowledge is in packed_shape and member_view.
#include "wide/pack.hpp"

#include <array>
#include <string>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"
#include "host/pack/member_copy.hpp"

namespace wide {

namespace {

std::string text(const PackedOperand& operand) {
  return std::string(operand.name);
}

/// Callers make operands of their own: their axis may be anything.
int axis_of(const PackedOperand& operand, int member_rank) {
  const int end = member_rank + (operand.kind == PackedOperand::Kind::stacked ? 1 : 0);
  WIDE_REQUIRE(operand.axis >= -member_rank && operand.axis < end,
               text(operand) + ": axis is " + std::to_string(operand.axis) + ", expected one in [" +
                   std::to_string(-member_rank) + ", " + std::to_string(end) +
                   ") of a member's tensor of " + std::to_string(member_rank) + " dimensions");
  return operand.axis < 0 ? operand.axis + member_rank : operand.axis;
}

void require_member_rank(const PackedOperand& operand, const Shape& member) {
  WIDE_REQUIRE(
      member.rank() >= operand.min_rank && member.rank() <= operand.max_rank,
      text(operand) + ": a member's tensor is " + to_string(member) + ", expected " +
          std::to_string(operand.min_rank) +
          (operand.min_rank == operand.max_rank ? "" : " to " + std::to_string(operand.max_rank)) +
          " dimensions");
}

template <class View>
View view_of_member(const PackedOperand& operand, const View& packed, int64_t num_members,
                    int64_t index) {
  const bool is_stacked = operand.kind == PackedOperand::Kind::stacked;
  const int member_rank = packed.rank() - (is_stacked ? 1 : 0);
  WIDE_REQUIRE(member_rank >= operand.min_rank && member_rank <= operand.max_rank,
               text(operand) + ": the packed tensor is " + to_string(packed.shape) + ", expected " +
                   std::to_string(operand.min_rank + (is_stacked ? 1 : 0)) + " to " +
                   std::to_string(operand.max_rank + (is_stacked ? 1 : 0)) + " dimensions");
  WIDE_REQUIRE(num_members >= 1 && index >= 0 && index < num_members,
               text(operand) + ": member is " + std::to_string(index) + ", expected one in [0, " +
                   std::to_string(num_members) + ")");
  const int axis = axis_of(operand, member_rank);
  const int64_t extent = packed.shape[axis];
  if (is_stacked) {
    WIDE_REQUIRE(extent == num_members, text(operand) + ": the packed tensor is " +
                                            to_string(packed.shape) + ", expected " +
                                            counted(num_members, "member") + " on axis " +
                                            std::to_string(axis));
    View member = packed.narrow(axis, index, 1);
    std::array<int64_t, kMaxRank> extents{}, steps{};
    int rank = 0;
    for (int a = 0; a < packed.rank(); ++a) {
      if (a == axis) continue;
      extents[static_cast<size_t>(rank)] = member.shape[a];
      steps[static_cast<size_t>(rank++)] = member.strides[a];
    }
    member.shape = Shape(std::span<const int64_t>(extents.data(), static_cast<size_t>(rank)));
    member.strides = Strides(std::span<const int64_t>(steps.data(), static_cast<size_t>(rank)));
    return member;
  }
  WIDE_REQUIRE(extent % num_members == 0, text(operand) + ": axis " + std::to_string(axis) +
                                              " of the packed tensor " + to_string(packed.shape) +
                                              " does not divide into " +
                                              counted(num_members, "member"));
  const int64_t length = extent / num_members;
  return packed.narrow(axis, index * length, length);
}

/// Checked here, as a kernel that accesses a misaligned element leaves the CUDA context unusable.
void require_address(const std::string& name, const ConstTensorView& view) {
  if (view.span_bytes() == 0) return;
  WIDE_REQUIRE(view.data != nullptr,
               name + " is a null pointer, expected " + to_string(view.shape) + " elements");
  WIDE_REQUIRE(view.alignment() >= dtype_bytes(view.dtype),
               name + " is aligned to " + std::to_string(view.alignment()) +
                   " bytes, expected its " + std::string(dtype_name(view.dtype)) +
                   " elements' size = " + std::to_string(dtype_bytes(view.dtype)));
}

/// The checks that pack and unpack share; `verb` goes into messages.
template <class Members, class Packed>
void require_packed(const char* verb, const PackedOperand& operand, const Members& members,
                    const Packed& packed) {
  const std::string name = std::string(verb) + ": " + text(operand);
  WIDE_REQUIRE(!members.empty(), name + ": no member, expected at least one");
  require_address(name + ": the packed tensor", packed);
  const auto& first = members.front();
  for (size_t i = 0; i < members.size(); ++i) {
    WIDE_REQUIRE(members[i].shape == first.shape && members[i].dtype == first.dtype &&
                     members[i].device == first.device,
                 name + ": member " + std::to_string(i) + " is " +
                     std::string(dtype_name(members[i].dtype)) + " " + to_string(members[i].shape) +
                     " on " + to_string(members[i].device) +
                     ", expected as member 0: " + std::string(dtype_name(first.dtype)) + " " +
                     to_string(first.shape) + " on " + to_string(first.device));
    require_address(name + ": member " + std::to_string(i), members[i]);
    WIDE_REQUIRE(!may_overlap(members[i], packed),
                 name + ": member " + std::to_string(i) +
                     " overlaps the packed tensor, expected memory of its own");
  }
  const auto num_members = static_cast<int64_t>(members.size());
  const Shape expected = packed_shape(operand, first.shape, num_members);
  WIDE_REQUIRE(packed.shape == expected,
               name + ": " + counted(num_members, "member") + " of " + to_string(first.shape) +
                   " pack to " + to_string(expected) + ", got " + to_string(packed.shape));
  WIDE_REQUIRE(packed.dtype == first.dtype && packed.device == first.device,
               name + ": members are " + std::string(dtype_name(first.dtype)) + " on " +
                   to_string(first.device) + ", the packed tensor " +
                   std::string(dtype_name(packed.dtype)) + " on " + to_string(packed.device) +
                   ", expected the same");
}

/// A launch copies pairs of equal strides: members of the same strides go together.
void run_copies(std::span<const MemberCopy> copies, Stream stream) {
  if (copies.front().source.device.type == DeviceType::cpu) return copy_members_cpu(copies);
  for (size_t first = 0; first < copies.size();) {
    size_t end = first + 1;
    while (end < copies.size() && copies[end].source.strides == copies[first].source.strides &&
           copies[end].destination.strides == copies[first].destination.strides) {
      ++end;
    }
    copy_members_cuda(copies.subspan(first, end - first), stream);
    first = end;
  }
}

}  // namespace

Shape packed_shape(const PackedOperand& operand, const Shape& member, int64_t num_members) {
  require_member_rank(operand, member);
  WIDE_REQUIRE(num_members >= 1, text(operand) + ": num_members is " + std::to_string(num_members) +
                                     ", expected >= 1");
  const int axis = axis_of(operand, member.rank());
  if (operand.kind == PackedOperand::Kind::joined) {
    Shape shape = member;
    // Through Shape, so that an overflow is refused rather than wrapped.
    shape[axis] = num_elements(Shape{member[axis], num_members});
    (void)num_elements(shape);
    return shape;
  }
  std::vector<int64_t> extents(member.begin(), member.end());
  extents.insert(extents.begin() + axis, num_members);
  const Shape shape{std::span<const int64_t>(extents)};
  (void)num_elements(shape);
  return shape;
}

TensorView member_view(const PackedOperand& operand, const TensorView& packed, int64_t num_members,
                       int64_t index) {
  return view_of_member(operand, packed, num_members, index);
}

ConstTensorView member_view(const PackedOperand& operand, const ConstTensorView& packed,
                            int64_t num_members, int64_t index) {
  return view_of_member(operand, packed, num_members, index);
}

void pack(const PackedOperand& operand, std::span<const ConstTensorView> members,
          const TensorView& packed, Stream stream) {
  const NvtxRange range("wide::pack");
  require_packed("pack", operand, members, packed);
  const auto num_members = static_cast<int64_t>(members.size());
  std::vector<MemberCopy> copies;
  for (int64_t i = 0; i < num_members; ++i) {
    copies.push_back(
        {members[static_cast<size_t>(i)], member_view(operand, packed, num_members, i)});
  }
  run_copies(copies, stream);
}

void unpack(const PackedOperand& operand, const ConstTensorView& packed,
            std::span<const TensorView> members, Stream stream) {
  const NvtxRange range("wide::unpack");
  require_packed("unpack", operand, members, packed);
  const auto num_members = static_cast<int64_t>(members.size());
  std::vector<MemberCopy> copies;
  for (int64_t i = 0; i < num_members; ++i) {
    copies.push_back(
        {member_view(operand, packed, num_members, i), members[static_cast<size_t>(i)]});
  }
  run_copies(copies, stream);
}

}  // namespace wide
