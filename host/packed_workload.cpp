// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A workload as the list of its operands, the output last.
#include <algorithm>

#include "host/operand.hpp"

namespace wide::catalog {

PackedWorkload::PackedWorkload(const Context& context, int64_t num_members,
                               const WorkloadOptions& options)
    : context_(context), num_members_(num_members), options_(options) {}

const std::string& PackedWorkload::cublas_unavailable_reason() const {
  if (!cublas_reason_) {
    const bool needs_none = context_.device().type == DeviceType::cpu;
    cublas_reason_ = needs_none ? "" : VendorHandles(context_).cublas_unavailable_reason();
  }
  return *cublas_reason_;
}

Distribution shaped(const Distribution& from, Fill fill, Dtype dtype, bool is_first) {
  using Kind = Distribution::Kind;
  const bool is_around_zero =
      from.kind == Kind::uniform && from.low == -from.high && is_floating(dtype);
  if (!is_around_zero) return from;
  const auto of_kind = [&](Kind kind) { return Distribution{kind, from.low, from.high}; };
  switch (fill) {
    case Fill::uniform:
    case Fill::integers:
    case Fill::specials:
      return from;
    case Fill::normal:
      return of_kind(Kind::normal);
    case Fill::trig:
      return of_kind(Kind::trig);
    case Fill::zeros:
      return Distribution::uniform(0, 0);
    case Fill::cancelling:
      return of_kind(is_first ? Kind::cancelling : Kind::paired);
    case Fill::tiny: {
      const double bound = min_subnormal(dtype) / unit_roundoff(dtype);  // half are subnormal
      return is_first ? Distribution::uniform(-bound, bound) : from;
    }
    case Fill::wide_range: {
      const double exponent = dtype_bytes(dtype) <= 2 ? 6 : 10;
      return is_first ? Distribution{Kind::wide_range, -exponent, exponent} : from;
    }
    case Fill::positive:
      return Distribution::uniform(0, from.high);
  }
  return from;
}

Operand& PackedWorkload::add_operand(Operand::Description description) {
  description.distribution =
      shaped(description.distribution, options_.fill, description.dtype, operands_.empty());
  description.num_members = num_members_;
  description.occurrence =
      std::count_if(operands_.begin(), operands_.end(), [&](const Operand& operand) {
        return operand.description().packing.name == description.packing.name;
      });
  return operands_.emplace_back(context_, description, options_);
}

Operand& PackedWorkload::add_operand(const PackedOperand& packing, Dtype dtype,
                                     const Shape& member_shape, const Distribution& distribution,
                                     bool is_shared) {
  Operand::Description description;
  description.packing = packing;
  description.dtype = dtype;
  description.member_shape = member_shape;
  description.is_shared = is_shared;
  description.distribution = distribution;
  return add_operand(std::move(description));
}

Operand* PackedWorkload::add_operand_if(bool is_there, const PackedOperand& packing, Dtype dtype,
                                        const Shape& member_shape, const Distribution& distribution,
                                        bool is_shared) {
  return is_there ? &add_operand(packing, dtype, member_shape, distribution, is_shared) : nullptr;
}

Operand& PackedWorkload::add_ragged_operand(std::string_view name, Dtype dtype,
                                            std::vector<MemberPlace> places,
                                            const Distribution& distribution, int64_t elements) {
  Operand::Description description;
  description.packing.name = name;
  description.dtype = dtype;
  description.distribution = distribution;
  description.ragged = std::move(places);
  description.ragged_elements = elements;
  return add_operand(std::move(description));
}

int64_t PackedWorkload::num_outputs() const {
  return operands_.back().num_tensors();
}

int64_t PackedWorkload::footprint_bytes() const {
  int64_t bytes = 0;
  for (const Operand& operand : operands_) bytes += operand.bytes();
  return bytes;
}

std::vector<WorkloadInput> PackedWorkload::input_views() const {
  std::vector<WorkloadInput> inputs;
  for (const Operand& operand : operands_) {
    if (operand.is_output()) continue;
    const Operand::Description& described = operand.description();
    std::string name(described.packing.name);
    name.erase(0, name.find(' ') + 1);  // "conv2d weight": the primitive is known
    if (described.occurrence > 0) name += "." + std::to_string(described.occurrence);
    inputs.push_back({name, operand.packed()});
  }
  return inputs;
}

void PackedWorkload::poison_outputs(OutputOf which, Stream stream) {
  operands_.back().poison(which, stream);
}

MemberOutputs PackedWorkload::read_outputs(OutputOf which, Stream stream) {
  return operands_.back().read(which, stream);
}

std::string PackedWorkload::damage(Stream stream) {
  for (const Operand& operand : operands_) {
    if (std::string message = operand.damage(stream); !message.empty()) return message;
  }
  return "";
}

int64_t PackedWorkload::rows(int64_t member) const {
  const Shape& shape = operands_.back().member_shape(member);
  return shape.back() == 0 ? 0 : num_elements(shape) / shape.back();
}

int64_t PackedWorkload::row_length(int64_t member) const {
  return operands_.back().member_shape(member).back();
}

}  // namespace wide::catalog
