// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// concat, slice and flatten: views with an axis for members, then the same copies as pack.
#include "wide/concat.hpp"

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

/// Where members are joined in a tensor of `rank` axes that has none for members itself.
int joined_axis(const std::string& name, const PackedOperand& operand, int rank) {
  const int axis = operand.axis < 0 ? operand.axis + rank : operand.axis;
  WIDE_REQUIRE(operand.kind == PackedOperand::Kind::joined,
               name + " has its members on axis " + std::to_string(axis) +
                   ", expected an operand whose members are joined along an axis of their own");
  WIDE_REQUIRE(rank >= operand.min_rank && rank <= operand.max_rank,
               name + " has " + std::to_string(rank) + " dimensions, expected " +
                   std::to_string(operand.min_rank) + " to " + std::to_string(operand.max_rank));
  WIDE_REQUIRE(rank < kMaxRank, name + " has " + std::to_string(rank) +
                                    " dimensions, expected one less: members take one");
  WIDE_REQUIRE(axis >= 0 && axis < rank, name + ": axis is " + std::to_string(operand.axis) +
                                             ", expected one in [" + std::to_string(-rank) + ", " +
                                             std::to_string(rank) + ") of " + std::to_string(rank) +
                                             " dimensions");
  return axis;
}

/// [.., N*D, ..] as [.., N, D, ..].
template <class View>
View with_members(const std::string& name, const View& packed, int axis, int64_t num_members) {
  WIDE_REQUIRE(num_members >= 1 && packed.shape[axis] % num_members == 0,
               name + " is " + to_string(packed.shape) + ", expected " +
                   counted(num_members, "member") + " of one length on axis " +
                   std::to_string(axis));
  const int64_t length = packed.shape[axis] / num_members;
  std::array<int64_t, kMaxRank> shape{}, strides{};
  size_t rank = 0;
  for (int a = 0; a < packed.rank(); ++a) {
    if (a == axis) {
      shape[rank] = num_members;
      strides[rank++] = length * packed.strides[a];
    }
    shape[rank] = a == axis ? length : packed.shape[a];
    strides[rank++] = packed.strides[a];
  }
  return View(packed.data, packed.dtype, Shape(std::span<const int64_t>(shape.data(), rank)),
              Strides(std::span<const int64_t>(strides.data(), rank)), packed.device);
}

template <class View>
View slice_view(const PackedOperand& operand, const View& packed, int64_t num_members,
                int64_t first, int64_t count) {
  const std::string name = "slice: " + std::string(operand.name);
  const int axis = joined_axis(name, operand, packed.rank());
  const View members = with_members(name, packed, axis, num_members);
  const int64_t length = members.shape[axis + 1];
  WIDE_REQUIRE(first >= 0 && count >= 0 && first <= length - count,
               name + ": elements " + range_text(first, count) + ", expected some of a member's " +
                   std::to_string(length));
  return members.narrow(axis + 1, first, count);
}

template <class View>
View flat_view(const View& packed, int64_t num_members) {
  WIDE_REQUIRE(packed.rank() >= 2, "flatten: the packed tensor is " + to_string(packed.shape) +
                                       ", expected [batch, num_members * channels, ..]");
  WIDE_REQUIRE(num_members >= 1 && packed.shape[1] % num_members == 0,
               "flatten: the packed tensor is " + to_string(packed.shape) +
                   ", expected [batch, num_members * channels, ..] with num_members = " +
                   std::to_string(num_members));
  int64_t features = 1;
  for (int axis = packed.rank() - 1; axis >= 1; --axis) {
    const int64_t extent = packed.shape[axis];
    if (extent > 1 && packed.strides[axis] != features && packed.num_elements() > 0) {
      throw_unsupported("flatten: the packed tensor has shape " + to_string(packed.shape) +
                        " and strides " + to_string(packed.strides) +
                        ", expected channels and positions without gaps");
    }
    features *= extent;
  }
  return View(packed.data, packed.dtype, Shape{packed.shape[0], features},
              Strides{packed.strides[0], 1}, packed.device);
}

}  // namespace

TensorView slice(const PackedOperand& operand, const TensorView& packed, int64_t num_members,
                 int64_t first, int64_t count) {
  return slice_view(operand, packed, num_members, first, count);
}
ConstTensorView slice(const PackedOperand& operand, const ConstTensorView& packed,
                      int64_t num_members, int64_t first, int64_t count) {
  return slice_view(operand, packed, num_members, first, count);
}

TensorView flatten(const TensorView& packed, int64_t num_members) {
  return flat_view(packed, num_members);
}
ConstTensorView flatten(const ConstTensorView& packed, int64_t num_members) {
  return flat_view(packed, num_members);
}

void concat(const PackedOperand& operand, std::span<const ConstTensorView> parts,
            int64_t num_members, const TensorView& whole, Stream stream) {
  const NvtxRange range("wide::concat");
  const std::string name = "concat: " + std::string(operand.name);
  const int axis = joined_axis(name, operand, whole.rank());
  const TensorView members = with_members(name, whole, axis, num_members);
  WIDE_REQUIRE(!parts.empty(), name + ": no part, expected at least one");
  require_device("concat", "whole", whole, whole.device);
  int64_t first = 0;
  std::vector<MemberCopy> copies;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part = "part " + std::to_string(i);
    const bool has_members = parts[i].rank() == whole.rank() + 1;
    WIDE_REQUIRE(has_members || parts[i].rank() == whole.rank(),
                 name + ": " + part + " is " + to_string(parts[i].shape) + ", expected " +
                     std::to_string(whole.rank()) + " dimensions as of the whole, or one more");
    const ConstTensorView source =
        has_members ? parts[i] : with_members(name + ": " + part, parts[i], axis, num_members);
    const int64_t count = source.shape[axis + 1], left = members.shape[axis + 1] - first;
    Shape expected = members.shape;
    expected[axis + 1] = count;
    WIDE_REQUIRE(source.shape == expected && count <= left,
                 name + ": " + part + " is " + to_string(parts[i].shape) +
                     ", expected a part of what is left of " + to_string(members.shape) +
                     " after " + std::to_string(first));
    require_dtype("concat", part, source, whole.dtype);
    require_device("concat", part, source, whole.device);
    WIDE_REQUIRE(!may_overlap(source, whole),
                 name + ": " + part + " overlaps the whole, expected memory of its own");
    copies.push_back({source, members.narrow(axis + 1, first, count)});
    first += count;
  }
  WIDE_REQUIRE(first == members.shape[axis + 1],
               name + ": the parts of a member are " + std::to_string(first) +
                   " long, expected the whole's = " + std::to_string(members.shape[axis + 1]));
  if (whole.device.type == DeviceType::cpu) return copy_members_cpu(copies);
  for (const MemberCopy& copy : copies) copy_members_cuda(std::span(&copy, 1), stream);
}

}  // namespace wide
