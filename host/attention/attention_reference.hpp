// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The judge of attention: linear's and flash_attention's judges chained, each with the errors that
// the previous one lets pass.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wide/attention.hpp"

namespace wide::catalog {

/// One member's operands in fp64, densely packed. Without cross, key and value are x, and the
/// weights are thirds of qkv_weight.
struct AttentionReferenceMember {
  std::span<const double> x, key, value;                 ///< [B, T, features]
  std::span<const double> q_weight, k_weight, v_weight;  ///< [D, features]
  std::span<const double> qkv_bias;                      ///< [3D], or empty
  std::span<const double> out_weight, out_bias;          ///< [D, D]; [D], or empty
};

/// Keys and values of one batch row, and by how much a kernel's may be off: [Tk, D].
struct AttentionReferenceKeys {
  std::vector<double> k{}, v{}, k_error{}, v_error{};
  int64_t length = 0;  ///< as stored; any value
};
AttentionReferenceKeys attention_reference_keys(const AttentionProblem& problem,
                                                const AttentionReferenceMember& member,
                                                int64_t batch_row, int64_t length);

/// Row `row` of y, which lies in the batch row of the keys; for each value the largest error that
/// passes. The problem is complete.
void judge_attention_row(const AttentionProblem& problem, const AttentionReferenceMember& member,
                         const AttentionReferenceKeys& keys, int64_t row, std::span<double> values,
                         std::span<double> tolerances);
extern const std::string_view kAttentionToleranceFormula;

}  // namespace wide::catalog
