// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One run of any primitive's plan, with all that it asks for.
#pragma once

#include <optional>

#include "wide/context.hpp"
#include "wide/plan.hpp"
#include "wide/tensor.hpp"

namespace wide::test {

/// Runs on a stream of its own and a spoiled workspace, and waits. Vendors' handles take a device
/// tens of milliseconds: made for plans that call a vendor only.
template <class Plan, class Arguments>
void run_plan(const Context& context, const Plan& plan, const Arguments& arguments) {
  const OwnedStream stream(context);
  Tensor scratch(context, Dtype::uint8, {plan.workspace_bytes()});
  fill_bytes(scratch, 0xff, stream.get());
  std::optional<VendorHandles> handles;
  const VendorCalls calls = plan.vendor_calls();
  if (calls.cublas || calls.cudnn) handles.emplace(context);
  plan.run(arguments,
           {stream.get(), {scratch.data(), scratch.bytes()}, handles ? &*handles : nullptr});
  context.synchronize(stream.get());
}

}  // namespace wide::test
