// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/linear/linear_weight_workload.hpp"

#include <algorithm>

#include "host/linear/linear_reference.hpp"
#include "host/linear/linear_weight.hpp"
#include "host/linear_values.hpp"
#include "host/operand_values.hpp"

namespace wide::catalog {

QuantizedWeight weight_of_case(const Case& point, int64_t out_features, int64_t in_features) {
  return {*parse_weight_format(point.word("weights")), point.word("group") == "64" ? 64 : 128,
          out_features, in_features};
}

std::string weights_impossible_reason(const Case& point) {
  const std::string reason = tf32_impossible_reason(point);
  if (!reason.empty()) return reason;
  const bool is_packed = point.word("weights") == "packed";
  if (point.word("tf32") == "yes" && !is_packed) {
    return "tf32 is a way to multiply fp32, weights are quantised";
  }
  if (point.word("group") != "128" && is_packed) return "packed weights have no groups";
  return "";
}

AxisInfo group_axis() {
  return {"group", "inputs that share a quantised weight's scale", "128", {"128", "64"}};
}

Operand::Description linear_weight_operand(const QuantizedWeight& weight, Dtype dtype,
                                           const WorkloadOptions& options) {
  const Distribution distribution = linear_parameter_distribution(options.fill);
  if (!is_quantized(weight)) {
    return {.packing = operands::linear_weight,
            .dtype = dtype,
            .member_shape = {weight.out_features, weight.in_features},
            .distribution = distribution};
  }
  const Distribution from = shaped(distribution, options.fill, Dtype::fp32, false);
  Operand::Description description{.packing = operands::linear_quantized_weight,
                                   .dtype = Dtype::uint8,
                                   .member_shape = {quantized_bytes(weight)}};
  description.granule = kQuantizedAlignment;
  description.contents = [=, seed = options.seed](int64_t id, bool is_poisoned,
                                                  std::span<std::byte> bytes) {
    const Context context = Context::cpu({.num_threads = 1, .allocator = {}});
    Tensor dense(context, Dtype::fp32, {weight.out_features, weight.in_features});
    auto* values = static_cast<std::byte*>(dense.data());
    if (is_poisoned) {
      std::fill_n(values, dense.bytes(), std::byte{0xff});  // NaN
    } else {
      const uint64_t key = stream_key(seed, operands::linear_weight.name, 0, id);
      fill_run(from, key, 0, dense.num_elements(), 0, Dtype::fp32, values);
    }
    const ConstTensorView member = dense;
    const auto size = static_cast<int64_t>(bytes.size());
    quantize_weights(context, weight, std::span(&member, 1),
                     TensorView(bytes.data(), Dtype::uint8, {1, size}, Device{}), Stream::cpu());
  };
  return description;
}

std::span<const double> ReferenceWeights::of(const Operand& operand, int64_t member) const {
  if (!is_quantized(weight_)) return operand.values(member);
  if (decoded_member_ != member) {
    decoded_ = linear_reference_weight(weight_, operand.values(member));
    decoded_member_ = member;
  }
  return decoded_;
}

}  // namespace wide::catalog
