// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks that plans of all primitives make, with the same words everywhere. All throw
// invalid_argument unless they say otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "host/core/strategy_choice.hpp"
#include "wide/epilogue.hpp"
#include "wide/plan.hpp"
#include "wide/tensor.hpp"

namespace wide {

[[noreturn]] void throw_no_enumerator(std::string_view primitive, std::string_view field,
                                      int64_t number, int64_t last);

/// Extents and strides of one rank, none below 0, that can be counted and multiplied in 64 bits:
/// views are plain data, and whoever changes one may break it.
void require_view(std::string_view primitive, std::string_view argument,
                  const ConstTensorView& view);

/// Also requires that a view with elements has an address, aligned to its element.
void require_device(std::string_view primitive, std::string_view argument,
                    const ConstTensorView& view, Device expected);

void require_dtype(std::string_view primitive, std::string_view argument,
                   const ConstTensorView& view, Dtype expected);

/// "layernorm: rows is -1, expected >= 0"
void require_at_least(std::string_view primitive, std::string_view field, int64_t value,
                      int64_t least);
/// fp32, fp16 or bf16.
void require_float_dtype(std::string_view primitive, Dtype dtype);

/// An enumerator, as numbers that were cast may be none; they count from 0 to `last`.
template <class Enum>
void require_enumerator(std::string_view primitive, std::string_view field, Enum value, Enum last) {
  const auto number = static_cast<int64_t>(value), most = static_cast<int64_t>(last);
  if (number < 0 || number > most) throw_no_enumerator(primitive, field, number, most);
}
void require_enumerators(std::string_view primitive, const Epilogue& epilogue);

/// `expected` says what the numbers are: "[num_members, out, in]".
void require_shape(std::string_view primitive, std::string_view argument,
                   const ConstTensorView& view, std::string_view axes, const Shape& expected);

/// Nothing where the last axis has one element.
void require_last_axis_contiguous(std::string_view primitive, std::string_view argument,
                                  const ConstTensorView& view);

/// Of [num_members, ..]: members begin at places of their own. In a problem a stride of 0 would
/// mean one that is left open.
void require_members_apart(std::string_view primitive, std::string_view argument,
                           const ConstTensorView& view);

/// From member to member of parameters [num_members] or [num_members, count], those of each side by
/// side; `count` where there is one member or no element.
int64_t member_stride(std::string_view primitive, std::string_view argument,
                      const ConstTensorView& view);

/// "linear: members has 3 entries, expected num_members = 4"
void require_entries(std::string_view primitive, std::string_view argument, size_t entries,
                     int64_t num_members);

/// At least `bytes`, not null, 256-byte aligned; nothing where `bytes` is 0.
void require_workspace(std::string_view primitive, const Execution& execution, int64_t bytes);

/// The cublasHandle_t. Throws invalid_argument where the execution has no handles, or those of
/// another device than the plan's, unsupported with the handles' reason where cuBLAS could not
/// start. The device of borrowed handles is not known.
void* require_cublas(std::string_view primitive, const Execution& execution, Device expected);
/// The cudnnHandle_t, likewise.
void* require_cudnn(std::string_view primitive, const Execution& execution, Device expected);

/// Both checks, for the libraries in `calls`, before anything is enqueued.
void require_handles(std::string_view primitive, const Execution& execution,
                     const VendorCalls& calls, Device expected);

/// The message has the nearest of the known names.
void require_known_strategy(std::string_view primitive, std::string_view name,
                            std::span<const std::string_view> known);

/// Throws where a policy is asked for: the primitive has none.
void require_no_policy(std::string_view primitive, std::string_view policy);
/// Throws where a policy is asked of an automatic choice, or of a strategy that, by `reason`, has
/// it not; where that is null, of any.
void require_policy(std::string_view primitive, const PlanOptions& options,
                    const PolicyReason& reason);

/// True where both views have bytes and their address ranges (gaps included) meet.
bool may_overlap(const ConstTensorView& a, const ConstTensorView& b);

/// Whether both are the same elements: of an operand that is read where it is written.
bool is_same_view(const ConstTensorView& a, const ConstTensorView& b);

/// "layernorm: y overlaps gamma, expected memory of its own"
void require_own_memory(std::string_view primitive, std::string_view argument,
                        const ConstTensorView& view, std::string_view other_argument,
                        const ConstTensorView& other);

}  // namespace wide
