// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Out of line: nothing here is worth inlining, a call of a plan makes a handful of comparisons.
#include "host/core/plan_checks.hpp"

#include <cstdint>
#include <optional>

#include "host/core/check.hpp"
#include "host/core/nearest.hpp"
#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide {

namespace {

/// What `call` gives; what it refuses has the operand's name.
template <class Call>
int64_t named(std::string_view primitive, std::string_view argument, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw_invalid_argument(name_of(primitive, argument) + ": " + error.what());
  }
}

int64_t span_of(std::string_view primitive, std::string_view argument,
                const ConstTensorView& view) {
  return named(primitive, argument, [&] { return view.span_bytes(); });
}

}  // namespace

void require_view(std::string_view primitive, std::string_view argument,
                  const ConstTensorView& view) {
  named(primitive, argument, [&] { return view.num_elements(); });
  span_of(primitive, argument, view);
}

void require_device(std::string_view primitive, std::string_view argument,
                    const ConstTensorView& view, Device expected) {
  WIDE_REQUIRE(view.device == expected,
               name_of(primitive, argument) + " is on " + to_string(view.device) +
                   ", expected the plan's device = " + to_string(expected));
  if (span_of(primitive, argument, view) == 0) return;
  WIDE_REQUIRE(view.data != nullptr, name_of(primitive, argument) +
                                         " is a null pointer, expected " + to_string(view.shape) +
                                         " elements");
  const int64_t element_bytes = dtype_bytes(view.dtype);
  WIDE_REQUIRE(view.alignment() >= element_bytes,
               name_of(primitive, argument) + " is aligned to " + std::to_string(view.alignment()) +
                   " bytes, expected its " + std::string(dtype_name(view.dtype)) +
                   " elements' size = " + std::to_string(element_bytes));
}

void require_at_least(std::string_view primitive, std::string_view field, int64_t value,
                      int64_t least) {
  WIDE_REQUIRE(value >= least, name_of(primitive, field) + " is " + std::to_string(value) +
                                   ", expected >= " + std::to_string(least));
}

void require_float_dtype(std::string_view primitive, Dtype dtype) {
  WIDE_REQUIRE(dtype == Dtype::fp32 || dtype == Dtype::fp16 || dtype == Dtype::bf16,
               name_of(primitive, "dtype") + " is " + std::string(dtype_name(dtype)) +
                   ", expected fp32, fp16 or bf16");
}

void throw_no_enumerator(std::string_view primitive, std::string_view field, int64_t number,
                         int64_t last) {
  throw_invalid_argument(name_of(primitive, field) + " is enumerator " + std::to_string(number) +
                         ", expected one in [0, " + std::to_string(last) + "]");
}

void require_enumerators(std::string_view primitive, const Epilogue& epilogue) {
  require_enumerator(primitive, "activation", epilogue.activation, kAllActivations.back());
  require_enumerator(primitive, "scale", epilogue.scale, OutputScale::per_output);
  require_enumerator(primitive, "residual", epilogue.residual, Residual::after_activation);
}

void require_dtype(std::string_view primitive, std::string_view argument,
                   const ConstTensorView& view, Dtype expected) {
  WIDE_REQUIRE(view.dtype == expected,
               name_of(primitive, argument) + " is " + std::string(dtype_name(view.dtype)) +
                   ", expected dtype = " + std::string(dtype_name(expected)));
}

void require_shape(std::string_view primitive, std::string_view argument,
                   const ConstTensorView& view, std::string_view axes, const Shape& expected) {
  WIDE_REQUIRE(view.shape == expected, name_of(primitive, argument) + " is " +
                                           to_string(view.shape) + ", expected " +
                                           std::string(axes) + " = " + to_string(expected));
}

void require_last_axis_contiguous(std::string_view primitive, std::string_view argument,
                                  const ConstTensorView& view) {
  span_of(primitive, argument, view);  // refuses strides that are none of the shape's
  WIDE_REQUIRE(view.shape.back() <= 1 || view.strides.back() == 1,
               name_of(primitive, argument) + " has strides " + to_string(view.strides) +
                   ", expected the last axis contiguous: stride 1");
}

void require_members_apart(std::string_view primitive, std::string_view argument,
                           const ConstTensorView& view) {
  const bool has_elements = view.rank() == 1 || view.shape[1] > 0;
  WIDE_REQUIRE(view.shape[0] <= 1 || !has_elements || view.strides[0] > 0,
               name_of(primitive, argument) + " has strides " + to_string(view.strides) +
                   ", expected members of their own: a first stride above 0");
}

int64_t member_stride(std::string_view primitive, std::string_view argument,
                      const ConstTensorView& view) {
  const int64_t count = view.rank() == 1 ? 1 : view.shape[1];
  WIDE_REQUIRE(count <= 1 || view.strides[1] == 1, name_of(primitive, argument) + " has strides " +
                                                       to_string(view.strides) +
                                                       ", expected a last stride of 1");
  require_members_apart(primitive, argument, view);
  return view.shape[0] <= 1 || count == 0 ? count : view.strides[0];
}

void require_entries(std::string_view primitive, std::string_view argument, size_t entries,
                     int64_t num_members) {
  WIDE_REQUIRE(static_cast<int64_t>(entries) == num_members,
               name_of(primitive, argument) + " has " + counted(entries, "entry", "entries") +
                   ", expected num_members = " + std::to_string(num_members));
}

void require_workspace(std::string_view primitive, const Execution& execution, int64_t bytes) {
  if (bytes == 0) return;
  const Workspace& workspace = execution.workspace;
  WIDE_REQUIRE(workspace.bytes >= bytes,
               std::string(primitive) + ": workspace is " + counted(workspace.bytes, "byte") +
                   ", expected workspace_bytes = " + std::to_string(bytes));
  WIDE_REQUIRE(workspace.data != nullptr, std::string(primitive) +
                                              ": workspace is a null pointer, expected " +
                                              std::to_string(bytes) + " bytes");
  WIDE_REQUIRE(reinterpret_cast<uintptr_t>(workspace.data) % kWorkspaceAlignment == 0,
               std::string(primitive) + ": workspace is not aligned, expected a multiple of " +
                   std::to_string(kWorkspaceAlignment) + " bytes");
}

namespace {

/// `handle` of the execution's handles, or why there is none.
void* require_handle(std::string_view primitive, const Execution& execution, Device expected,
                     const char* library, void* (VendorHandles::*handle)() const,
                     const std::string& (VendorHandles::*reason)() const) {
  WIDE_REQUIRE(execution.handles != nullptr,
               std::string(primitive) + ": execution.handles is null, expected handles of the " +
                   "vendors' libraries: this strategy calls " + library);
  void* const found = (execution.handles->*handle)();
  if (found == nullptr) {
    throw_unsupported(std::string(primitive) + ": " + library +
                      " is unavailable: " + (execution.handles->*reason)());
  }
  const std::optional<Device> device = execution.handles->device();
  WIDE_REQUIRE(!device || *device == expected,
               std::string(primitive) + ": execution.handles are of " + to_string(*device) +
                   ", expected the plan's device = " + to_string(expected));
  return found;
}

}  // namespace

void* require_cublas(std::string_view primitive, const Execution& execution, Device expected) {
  return require_handle(primitive, execution, expected, "cuBLAS", &VendorHandles::cublas,
                        &VendorHandles::cublas_unavailable_reason);
}

void* require_cudnn(std::string_view primitive, const Execution& execution, Device expected) {
  return require_handle(primitive, execution, expected, "cuDNN", &VendorHandles::cudnn,
                        &VendorHandles::cudnn_unavailable_reason);
}

void require_handles(std::string_view primitive, const Execution& execution,
                     const VendorCalls& calls, Device expected) {
  if (calls.cublas) require_cublas(primitive, execution, expected);
  if (calls.cudnn) require_cudnn(primitive, execution, expected);
}

void require_known_strategy(std::string_view primitive, std::string_view name,
                            std::span<const std::string_view> known) {
  for (const std::string_view candidate : known) {
    if (candidate == name) return;
  }
  throw_invalid_argument(std::string(primitive) + ": strategy is \"" + std::string(name) + "\"" +
                         expected_name(name, known));
}

void require_no_policy(std::string_view primitive, std::string_view policy) {
  WIDE_REQUIRE(policy.empty(), std::string(primitive) + ": policy is \"" + std::string(policy) +
                                   "\", expected none: its strategies have no policies");
}

void require_policy(std::string_view primitive, const PlanOptions& options,
                    const PolicyReason& reason) {
  if (!reason) return require_no_policy(primitive, options.policy);
  const std::string& name = options.strategy;
  WIDE_REQUIRE(!is_automatic(name) || options.policy.empty(),
               std::string(primitive) + ": policy is \"" + options.policy +
                   "\", expected none: strategy \"" + name + "\" has its own");
  const std::string why = reason(name, options.policy);
  WIDE_REQUIRE(why.empty(), std::string(primitive) + ": " + why);
}

bool may_overlap(const ConstTensorView& a, const ConstTensorView& b) {
  const int64_t a_bytes = a.span_bytes(), b_bytes = b.span_bytes();
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto a_start = reinterpret_cast<uintptr_t>(a.data);
  const auto b_start = reinterpret_cast<uintptr_t>(b.data);
  return a_start < b_start + static_cast<uintptr_t>(b_bytes) &&
         b_start < a_start + static_cast<uintptr_t>(a_bytes);
}

bool is_same_view(const ConstTensorView& a, const ConstTensorView& b) {
  return a.data == b.data && a.shape == b.shape && a.strides == b.strides;
}

void require_own_memory(std::string_view primitive, std::string_view argument,
                        const ConstTensorView& view, std::string_view other_argument,
                        const ConstTensorView& other) {
  WIDE_REQUIRE(!may_overlap(view, other), name_of(primitive, argument) + " overlaps " +
                                              std::string(other_argument) +
                                              ", expected memory of its own");
}

}  // namespace wide
