// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ONNX models from anywhere: refused, or a graph whose parameters can all be read.
#include "verify/fuzz/fuzz.hpp"
#include "wide/onnx.hpp"

void wide::fuzz::one_input(std::string_view text) {
  const OnnxModel model = OnnxModel::parse(std::as_bytes(std::span(text)), "input");
  const MemberParameters parameters = model.parameters(0);
  expect(parameters.size() == model.graph().parameters().size(),
         "not every parameter has a tensor");
  unsigned sum = 0;
  for (const Value value : model.graph().parameters()) {
    const auto found = parameters.find(model.graph().name(value));
    expect(found != parameters.end(), "a parameter has no tensor");
    const ValueType& type = model.graph().type(value);
    expect(found->second.shape == type.shape && found->second.dtype == type.dtype,
           "a tensor is not as its parameter");
    const auto* data = static_cast<const unsigned char*>(found->second.data);
    for (int64_t i = 0; i < found->second.span_bytes(); ++i) sum += data[i];
  }
  expect(!model.graph().outputs().empty(), "a graph without outputs");
  static volatile unsigned seen;
  seen = sum;
}
