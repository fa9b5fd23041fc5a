// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The weight of a linear layer as an operand, packed or quantised, and as the reference sees it.
#pragma once

#include <string>
#include <vector>

#include "host/operand.hpp"
#include "host/spec.hpp"
#include "wide/quantize.hpp"

namespace wide::catalog {

/// Reads the axes weights and group.
QuantizedWeight weight_of_case(const Case& point, int64_t out_features, int64_t in_features);
/// Of these axes and tf32.
std::string weights_impossible_reason(const Case& point);
AxisInfo group_axis();

/// Packed weights of `dtype`, or the same values, in fp32, as blobs. Multiples of a power of two
/// are stored exactly, hence integer fills, too.
Operand::Description linear_weight_operand(const QuantizedWeight& weight, Dtype dtype,
                                           const WorkloadOptions& options);

/// Members' weights [out, in]. Those of a blob are decoded once for all rows of a member; the first
/// of these is computed alone (reference_row()).
class ReferenceWeights {
 public:
  explicit ReferenceWeights(const QuantizedWeight& weight) : weight_(weight) {}
  std::span<const double> of(const Operand& operand, int64_t member) const;

 private:
  QuantizedWeight weight_;
  mutable std::vector<double> decoded_;
  mutable int64_t decoded_member_ = -1;
};

}  // namespace wide::catalog
