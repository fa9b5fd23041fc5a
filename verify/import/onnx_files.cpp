// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// onnx_files FOLDER: writes the ONNX files that tests without C++ open.
#include <filesystem>
#include <fstream>
#include <utility>

#include "verify/support/onnx_case.hpp"

namespace {

using namespace wide::test::onnx;

/// Numbers in [-1, 1], others for every member and tensor.
std::string weights(const std::string& name, const Extents& dims, int member, int tensor) {
  int64_t size = 1;
  for (const int64_t extent : dims) size *= extent;
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<float>((i * 37 + member * 11 + tensor * 5) % 65 - 32) / 32);
  }
  return floats(name, dims, values);
}

/// x [batch, 6] -> fc1 -> an activation -> fc2 -> y [batch, 4]; names begin with `prefix`.
File mlp(int member, const std::string& prefix = "", const std::string& activation = "Relu") {
  const std::string p = prefix, turned = int_attribute("transB", 1);
  return network(
      {6},
      {node("Gemm", {"x", p + "fc1.weight", p + "fc1.bias"}, {p + "h"}, turned),
       node(activation, {p + "h"}, {p + "a"}),
       node("Gemm", {p + "a", p + "fc2.weight", p + "fc2.bias"}, {"y"}, turned)},
      {weights(p + "fc1.weight", {8, 6}, member, 0), weights(p + "fc1.bias", {8}, member, 1),
       weights(p + "fc2.weight", {4, 8}, member, 2), weights(p + "fc2.bias", {4}, member, 3)});
}

/// A weight of 4200 elements, which the importer keeps as one number.
File filled_weight() {
  return network(
      {6},
      {node("ConstantOfShape", {"s"}, {"w"}, tensor_attribute("value", floats("", {1}, {0.5f}))),
       node("MatMul", {"x", "w"}, {"y"})},
      {ints("s", {2}, {6, 700})});
}

/// Inputs whose second extent is a symbol, one of them to be fixed; two outputs.
File symbolic() {
  File file = network({}, {node("Mul", {"x", "mask"}, {"y"}), node("Add", {"x", "common"}, {"z"})});
  file.inputs = {value("x", {-1, -2}), value("mask", {-1, -2}), value("common", {-1, -2})};
  file.outputs = {value("y", {}), value("z", {})};
  return file;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const std::pair<const char*, std::string> files[] = {
      {"member0.onnx", mlp(0).bytes_of()},         {"member1.onnx", mlp(1, "other/").bytes_of()},
      {"member2.onnx", mlp(2).bytes_of()},         {"tanh.onnx", mlp(1, "", "Tanh").bytes_of()},
      {"erf.onnx", mlp(1, "", "Erf").bytes_of()},  {"symbolic.onnx", symbolic().bytes_of()},
      {"filled.onnx", filled_weight().bytes_of()}, {"cut.onnx", mlp(0).bytes_of().substr(0, 300)},
      {"garbage.onnx", "\x81 this is no model"}};
  for (const auto& [name, bytes] : files) {
    std::ofstream out(folder / name, std::ios::binary);
    if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) return 1;
  }
  return 0;
}
