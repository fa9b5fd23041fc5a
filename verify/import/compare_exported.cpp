// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Exported models against the numbers of who exported them: scripts/check_exported_models.
//
//   compare_exported MODEL.onnx NUMBERS.npz [MODEL.onnx NUMBERS.npz ...]
//
// One model with a member for each pair, on the CPU. NUMBERS has the member's inputs by their names
// and its outputs as out0, out1, .. in the order of the file. Prints the largest difference of any
// output over the largest number of that output, and the operations that the graph has; or why the
// model is not taken, with exit code 3.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "host/model/graph_reference.hpp"
#include "wide/convert.hpp"
#include "wide/error.hpp"
#include "wide/model.hpp"
#include "wide/npy.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide;
using catalog::Doubles;

/// Where element `i` of member `m` is among all: members stand in front of `axis` of its shape.
int64_t place_of(const std::vector<int64_t>& shape, int axis, int64_t n, int64_t m, int64_t i) {
  if (axis < 0) return i;
  int64_t inner = 1;
  for (size_t a = static_cast<size_t>(axis); a < shape.size(); ++a) inner *= shape[a];
  return (i / inner * n + m) * inner + i % inner;
}

double compare(const OnnxModel& model, const std::vector<Npy>& numbers) {
  const Context cpu = Context::cpu();
  const Graph& graph = model.graph();
  const int64_t n = model.num_members();
  const int64_t batch = numbers[0].view(graph.name(graph.inputs()[0])).shape[0];
  const Model compiled = compile(cpu, graph, model.members(), batch);
  std::vector<Tensor> tensors;
  std::vector<ConstTensorView> inputs;
  std::vector<TensorView> outputs;
  for (const ModelOperand& operand : compiled.plan().inputs()) {
    Tensor tensor(cpu, operand.dtype, operand.shape);
    for (int64_t m = 0; m < n; ++m) {
      const Doubles own = catalog::to_doubles(numbers[static_cast<size_t>(m)].view(operand.name));
      for (int64_t i = 0; i < std::ssize(own.values); ++i)
        store_element(tensor.view().data, operand.dtype,
                      place_of(own.shape, operand.member_axis, n, m, i),
                      own.values[static_cast<size_t>(i)]);
    }
    tensors.push_back(std::move(tensor));
    inputs.push_back(tensors.back());
  }
  const size_t num_inputs = inputs.size();
  for (const ModelOperand& operand : compiled.plan().outputs()) {
    tensors.emplace_back(cpu, operand.dtype, operand.shape);
    outputs.push_back(tensors.back());
  }
  Tensor workspace(cpu, Dtype::uint8, {compiled.plan().workspace_bytes()});
  const Execution execution{Stream::cpu(), {workspace.data(), workspace.bytes()}};
  compiled.run({inputs, outputs}, execution);
  double worst = 0;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const ModelOperand& operand = compiled.plan().outputs()[k];
    const Doubles got = catalog::to_doubles(tensors[num_inputs + k]);
    for (int64_t m = 0; m < n; ++m) {
      const Doubles wanted =
          catalog::to_doubles(numbers[static_cast<size_t>(m)].view("out" + std::to_string(k)));
      double most = 0, error = 0;
      for (const double value : wanted.values) most = std::max(most, std::fabs(value));
      for (int64_t i = 0; i < std::ssize(wanted.values); ++i) {
        const int64_t place = place_of(wanted.shape, operand.member_axis, n, m, i);
        const double off =
            got.values.at(static_cast<size_t>(place)) - wanted.values[static_cast<size_t>(i)];
        error = std::isfinite(off) ? std::max(error, std::fabs(off)) : INFINITY;
      }
      worst = std::max(worst, error / std::max(most, 1e-30));
    }
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> files;
    std::vector<Npy> numbers;
    for (int i = 1; i + 1 < argc; i += 2) {
      files.push_back(argv[i]);
      numbers.push_back(Npy::open(argv[i + 1]));
    }
    const OnnxModel model = OnnxModel::open(files);
    std::set<std::string> operations;
    for (const Node& node : model.graph().nodes())
      operations.insert(std::string(operation_name(model.graph(), node)));
    std::printf("%.2e", compare(model, numbers));
    for (const std::string& name : operations) std::printf(" %s", name.c_str());
    std::printf("\n");
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
}
