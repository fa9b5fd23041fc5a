// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Compiled only: with all warnings an engine names the fields that it has, and leaves out what a
// call may lack.
#include "wide/wide.hpp"

#pragma GCC diagnostic error "-Wmissing-field-initializers"

using namespace wide;

namespace {

[[maybe_unused]] void leave_out(const ConstTensorView& x, const TensorView& y) {
  const auto take = [](const auto&... all) { (static_cast<void>(all), ...); };
  take(Context::CpuOptions{.num_threads = 1});
  take(AttentionArguments{.x = x, .parameters = {}, .y = y});
  take(BatchnormArguments{.x = x, .running_mean = y, .running_variance = y, .y = y});
  take(ChainArguments{.x = x, .y = y}, ChainMember{.gamma = x});
  take(ConvArguments{.x = x, .weight = x, .y = y}, ConvMember{.weight = x});
  take(EnsembleArguments{.x = x, .y = y});
  take(FlashAttentionArguments{.q = x, .k = x, .v = x, .y = y});
  take(GroupnormArguments{.x = x, .y = y}, GroupnormMember{.gamma = x});
  take(LayernormArguments{.x = x, .y = y}, LayernormMember{.gamma = x});
  take(LinearArguments{.x = x, .weight = x, .y = y}, LinearMember{.weight = x});
  take(PointwiseArguments{.x = x, .y = y}, RmsnormArguments{.x = x, .y = y});
  take(RaggedLinearArguments{.x = x, .weight = x, .y = y});
  take(RoutedLinearArguments{.x = x, .weight = x, .y = y, .first_rows = x, .order = x});
  take(RoutedMlpArguments{.x = x, .weights = x, .y = y, .first_rows = x, .order = x});
  take(RecurrentArguments{.x = x, .input_weight = x, .hidden_weight = x, .y = y});
}

}  // namespace
