// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The judge of flash_attention.
#pragma once

#include <span>
#include <string_view>

#include "wide/flash_attention.hpp"

namespace wide::catalog {

/// One query of one head in fp64.
struct FlashAttentionReferenceRow {
  std::span<const double> q;  ///< [D]
  std::span<const double> k;  ///< [Tk, kv_heads, D]: a member's keys of one batch row
  std::span<const double> v;  ///< the same of its values
  int64_t position = 0;       ///< of the query among the queries
  int64_t kv_head = 0;
  int64_t key_length = 0;  ///< as stored; any value
  double slope = 0;
  std::span<const double> bias{};  ///< [Tk], or empty
  /// How far a kernel's operands may be off these, where it computed them; empty: not at all.
  /// Shaped as v: only visible keys are used.
  std::span<const double> q_error{}, k_error{}, v_error{};
};

/// Whether query i sees key j, by the definition in wide/flash_attention.hpp; keys past a length
/// are hidden.
bool sees_key(const FlashAttentionProblem& problem, int64_t query, int64_t key, int64_t key_length);

/// The head's part of y and, for each value, the largest error that passes. The problem is
/// complete.
void judge_flash_attention_row(const FlashAttentionProblem& problem,
                               const FlashAttentionReferenceRow& row, std::span<double> values,
                               std::span<double> tolerances);
extern const std::string_view kFlashAttentionToleranceFormula;

}  // namespace wide::catalog
