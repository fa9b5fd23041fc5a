// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands' ranges of addresses are compared pair by pair: models have few.
#include "host/model/run_checks.hpp"

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"

namespace wide {

void require_stream(Device device, Stream stream) {
  WIDE_REQUIRE(device.type == DeviceType::cpu || stream.native() != nullptr,
               "model: stream is null, as Stream::cpu() is, expected one of " + to_string(device) +
                   " (cudaStreamLegacy: the default one)");
}

void require_apart(std::span<const ModelOperand> inputs, std::span<const ModelOperand> outputs,
                   const ModelArguments& arguments, const Execution& execution,
                   int64_t workspace_bytes) {
  const auto output = [&](size_t i) { return "model: output " + outputs[i].name; };
  const ConstTensorView workspace(execution.workspace.data, Dtype::uint8, Shape{workspace_bytes},
                                  Device{});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorView& y = arguments.outputs[i];
    for (size_t k = 0; k < inputs.size(); ++k) {
      WIDE_REQUIRE(
          !may_overlap(y, arguments.inputs[k]),
          output(i) + " overlaps input " + inputs[k].name + ", expected memory of its own");
    }
    for (size_t k = 0; k < i; ++k) {
      WIDE_REQUIRE(
          !may_overlap(y, arguments.outputs[k]),
          output(i) + " overlaps output " + outputs[k].name + ", expected memory of its own");
    }
    WIDE_REQUIRE(!may_overlap(y, workspace),
                 output(i) + " overlaps the workspace, expected memory of its own");
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    WIDE_REQUIRE(
        !may_overlap(arguments.inputs[k], workspace),
        "model: input " + inputs[k].name + " overlaps the workspace, expected memory of its own");
  }
}

}  // namespace wide
