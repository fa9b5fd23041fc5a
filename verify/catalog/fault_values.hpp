// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands of the runs in which calls of the runtime fail, and their results.
#pragma once

#include <cstddef>
#include <vector>

#include "wide/convert.hpp"
#include "wide/tensor.hpp"

namespace wide::test {

using Bytes = std::vector<std::byte>;

/// A device and a stream of a scenario's own, and what it does with them.
struct CudaRun {
  Context context = Context::cuda(0);
  OwnedStream stream{context};

  /// Values that differ everywhere, on the device.
  Tensor filled(const Shape& shape, float scale = 0.25f, Dtype dtype = Dtype::fp32) const {
    Tensor host(Context::cpu(), dtype, shape);
    for (int64_t i = 0; i < host.bytes() / dtype_bytes(dtype); ++i) {
      store_element(host.data(), dtype, i, scale * static_cast<float>(i % 13 - 6));
    }
    Tensor tensor(context, dtype, shape);
    copy(host.view(), tensor.view(), stream.get());
    context.synchronize(stream.get());
    return tensor;
  }

  Tensor zeros(const Shape& shape, Dtype dtype = Dtype::fp32) const {
    Tensor tensor(context, dtype, shape);
    fill_bytes(tensor.view(), 0, stream.get());
    return tensor;
  }

  Bytes read(const Tensor& tensor) const {
    Tensor host(Context::cpu(), tensor.dtype(), tensor.shape());
    copy(tensor.view(), host.view(), stream.get());
    context.synchronize(stream.get());
    const auto* first = static_cast<const std::byte*>(host.data());
    return {first, first + host.bytes()};
  }

  /// Runs the plan, with a workspace where it needs one, and reads an output.
  template <class Plan, class Arguments>
  Bytes run(const Plan& plan, const Arguments& arguments, const Tensor& output) const {
    const int64_t bytes = plan.workspace_bytes();
    Tensor workspace;
    if (bytes > 0) workspace = Tensor(context, Dtype::uint8, {bytes});
    plan.run(arguments, {stream.get(), {workspace.data(), bytes}});
    return read(output);
  }
};

}  // namespace wide::test
