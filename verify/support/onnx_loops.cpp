// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ONNX's operators around attention as plain loops.
#include "verify/support/onnx_loops.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace wide::test::onnx {

namespace {

int64_t size_of(const Extents& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}
size_t at(int64_t i) {
  return static_cast<size_t>(i);
}

/// Element `i` of a shape, in a tensor that is broadcast to it.
double broadcast(const Doubles& x, const Extents& shape, int64_t i) {
  int64_t index = 0, step = 1;
  for (int64_t axis = std::ssize(shape) - 1, own = std::ssize(x.shape) - 1; own >= 0;
       --axis, --own) {
    const int64_t place = i % shape[at(axis)];
    i /= shape[at(axis)];
    if (x.shape[at(own)] == 1) continue;
    index += place * step;
    step *= x.shape[at(own)];
  }
  return x.values[at(index)];
}

Doubles elementwise(const std::vector<Doubles>& x,
                    const std::function<double(const std::vector<double>&)>& f) {
  Doubles y;
  for (const Doubles& each : x) {
    Extents own = each.shape;
    own.insert(own.begin(), at(std::max<int64_t>(0, std::ssize(y.shape) - std::ssize(own))), 1);
    y.shape.insert(y.shape.begin(), own.size() - y.shape.size(), 1);
    for (size_t i = 0; i < own.size(); ++i) y.shape[i] = std::max(y.shape[i], own[i]);
  }
  for (int64_t i = 0; i < size_of(y.shape); ++i) {
    std::vector<double> values;
    for (const Doubles& each : x) values.push_back(broadcast(each, y.shape, i));
    y.values.push_back(f(values));
  }
  return y;
}

/// Letters for axes, as Einsum has them: sums of products over the letters that the result lacks.
/// An ellipsis is one axis.
Doubles einsum(const std::vector<Doubles>& x, std::string equation) {
  std::erase(equation, ' ');
  for (size_t dots = 0; (dots = equation.find("...")) != std::string::npos;)
    equation.replace(dots, 3, "Z");
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms{""};
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  std::string letters = equation.substr(arrow + 2);
  const size_t kept = letters.size();
  for (const char c : equation.substr(0, arrow))
    if (c != ',' && letters.find(c) == std::string::npos) letters += c;
  Extents extents(letters.size(), 1);
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t axis = 0; axis < terms[i].size(); ++axis) {
      int64_t& extent = extents[letters.find(terms[i][axis])];
      extent = std::max(extent, x[i].shape[axis]);
    }
  Doubles y{{extents.begin(), extents.begin() + static_cast<int64_t>(kept)}, {}};
  y.values.resize(at(size_of(y.shape)));
  const int64_t summed = size_of(extents) / size_of(y.shape);
  for (int64_t i = 0; i < size_of(extents); ++i) {
    Extents places(letters.size());
    int64_t rest = i;
    for (size_t l = letters.size(); l-- > 0; rest /= extents[l]) places[l] = rest % extents[l];
    double product = 1;
    for (size_t t = 0; t < x.size(); ++t) {
      int64_t from = 0;
      for (size_t axis = 0; axis < terms[t].size(); ++axis) {
        const int64_t extent = x[t].shape[axis];
        from = from * extent + (extent == 1 ? 0 : places[letters.find(terms[t][axis])]);
      }
      product *= x[t].values[at(from)];
    }
    y.values[at(i / summed)] += product;
  }
  return y;
}

/// With axes in front that are broadcast to one another.
Doubles matmul(const Doubles& a, const Doubles& b) {
  const std::string lead = "abcdefgh";
  const size_t most = std::max(a.shape.size(), b.shape.size()) - 2;
  const auto own = [&](const Doubles& x) {
    const size_t count = x.shape.size() - 2;
    return lead.substr(most - count, count);
  };
  return einsum({a, b}, own(a) + "mk," + own(b) + "kn->" + lead.substr(0, most) + "mn");
}

Doubles reshape(const Doubles& x, const Extents& wanted) {
  Extents shape = wanted;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 0) shape[i] = x.shape[i];
  const int64_t known = -size_of(shape);
  for (int64_t& extent : shape)
    if (extent == -1) extent = size_of(x.shape) / known;
  if (size_of(shape) != size_of(x.shape)) throw std::logic_error("reshape");
  return {shape, x.values};
}

Doubles transpose(const Doubles& x, const Extents& order) {
  Doubles y;
  Extents steps(x.shape.size(), 1);
  for (size_t i = x.shape.size() - 1; i-- > 0;) steps[i] = steps[i + 1] * x.shape[i + 1];
  for (const int64_t axis : order) y.shape.push_back(x.shape[at(axis)]);
  for (int64_t i = 0; i < size_of(y.shape); ++i) {
    int64_t rest = i, from = 0;
    for (size_t axis = y.shape.size(); axis-- > 0; rest /= y.shape[axis])
      from += rest % y.shape[axis] * steps[at(order[axis])];
    y.values.push_back(x.values[at(from)]);
  }
  return y;
}

Doubles softmax(Doubles x) {
  const int64_t row = x.shape.back();
  for (auto from = x.values.begin(); from != x.values.end(); from += row) {
    const double most = *std::max_element(from, from + row);
    double sum = 0;
    for (auto each = from; each != from + row; ++each) sum += * each = std::exp(*each - most);
    for (auto each = from; each != from + row; ++each) *each /= sum;
  }
  return x;
}

/// `count` elements of an axis from `first` on.
Doubles part(const Doubles& x, int64_t axis, int64_t first, int64_t count) {
  Doubles y{x.shape, {}};
  y.shape[at(axis)] = count;
  const int64_t inner = size_of({x.shape.begin() + axis + 1, x.shape.end()});
  for (int64_t i = 0; i < size_of(y.shape); ++i) {
    const int64_t place = i / inner % count, outer = i / inner / count;
    y.values.push_back(
        x.values[at((outer * x.shape[at(axis)] + first + place) * inner + i % inner)]);
  }
  return y;
}

Doubles concat(const std::vector<Doubles>& parts, int64_t axis) {
  Doubles y{parts[0].shape, {}};
  y.shape[at(axis)] = 0;
  for (const Doubles& part : parts) y.shape[at(axis)] += part.shape[at(axis)];
  const int64_t outer = size_of({y.shape.begin(), y.shape.begin() + axis});
  for (int64_t o = 0; o < outer; ++o) {
    for (const Doubles& part : parts) {
      const int64_t own = size_of(part.shape) / outer;
      y.values.insert(y.values.end(), part.values.begin() + o * own,
                      part.values.begin() + (o + 1) * own);
    }
  }
  return y;
}

/// Axis by axis; `pads` are those before all axes, then those behind.
Doubles pad(Doubles x, const Extents& pads, const std::string& mode) {
  const int64_t rank = std::ssize(x.shape);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t extent = x.shape[at(axis)], before = pads[at(axis)];
    std::vector<Doubles> parts;
    for (int64_t i = -before; i < extent + pads[at(axis + rank)]; ++i) {
      const bool is_inside = i >= 0 && i < extent;
      const int64_t from = mode == "wrap"      ? (i + extent) % extent
                           : mode == "reflect" ? (i < 0        ? -i
                                                  : i < extent ? i
                                                               : 2 * (extent - 1) - i)
                                               : std::clamp<int64_t>(i, 0, extent - 1);
      parts.push_back(part(x, axis, from, 1));
      if (mode == "constant" && !is_inside) std::ranges::fill(parts.back().values, 0.0);
    }
    x = concat(parts, axis);
  }
  return x;
}

}  // namespace

std::vector<std::string> operations(const Graph& graph) {
  std::vector<std::string> names;
  for (const wide::Node& node : graph.nodes()) {
    const bool is_activation = graph.type(node.outputs[0]).shape[0] == kBatch;
    const std::string name(operation_name(graph, node));
    if (is_activation && name != "reshape") names.push_back(name);
  }
  return names;
}

std::vector<std::string> nodes_of(const std::vector<Step>& steps) {
  std::vector<std::string> nodes;
  for (const Step& step : steps) {
    std::vector<std::string> in = step.in;
    std::string attributes;
    if (step.op == "Transpose") attributes = ints_attribute("perm", step.numbers);
    if (step.op == "Cast") attributes = int_attribute("to", step.numbers[0]);
    if (step.op == "Split" || step.op == "Gather" || step.op == "Concat")
      attributes = int_attribute("axis", step.numbers[0]);
    if (step.op == "Einsum") attributes = text_attribute("equation", step.text);
    if (step.op == "Gather") {
      in.push_back(step.out[0] + "_index");
      nodes.push_back(node("Constant", {}, {in.back()},
                           tensor_attribute("value", ints("", {}, {step.numbers[1]}))));
    }
    if (step.op == "Reshape" || step.op == "Squeeze" || step.op == "Unsqueeze" ||
        step.op == "Expand" || step.op == "Pad") {
      in.push_back(step.out[0] + "_numbers");
      nodes.push_back(
          node("Constant", {}, {in.back()},
               tensor_attribute("value", ints("", {std::ssize(step.numbers)}, step.numbers))));
    }
    if (step.op == "Pad") attributes = text_attribute("mode", step.text);
    for (size_t i = 0; step.op == "Slice" && i < 4; ++i) {
      const std::array<size_t, 4> order{1, 2, 0, 3};  // start, end, axis, step
      in.push_back(step.out[0] + "_" + std::to_string(i));
      nodes.push_back(node("Constant", {}, {in.back()},
                           tensor_attribute("value", ints("", {1}, {step.numbers[order[i]]}))));
    }
    nodes.push_back(node(step.op, in, step.out, attributes));
  }
  return nodes;
}

double number(size_t i) {
  return std::sin(static_cast<double>(i * i) * 0.37 + 1) * 0.7;
}

void add_tensor(Tensors& all, const std::string& name, Extents shape) {
  Doubles& tensor = all[name];
  tensor.shape = std::move(shape);
  for (size_t i = 0; i < at(size_of(tensor.shape)); ++i)
    tensor.values.push_back(static_cast<double>(static_cast<float>(number(i + 7 * all.size()))));
}

Tensors evaluate_steps(const std::vector<Step>& steps, Tensors known) {
  for (const Step& step : steps) {
    std::vector<Doubles> in;
    for (const std::string& name : step.in) in.push_back(known.at(name));
    using Values = std::vector<double>;
    Doubles y;
    if (step.op == "MatMul") y = matmul(in[0], in[1]);
    if (step.op == "Einsum") y = einsum(in, step.text);
    if (step.op == "Gemm") {
      y = matmul(in[0], in[1]);
      if (in.size() > 2) y = elementwise({y, in[2]}, [](const Values& v) { return v[0] + v[1]; });
    }
    if (step.op == "Add") y = elementwise(in, [](const Values& v) { return v[0] + v[1]; });
    if (step.op == "Mul") y = elementwise(in, [](const Values& v) { return v[0] * v[1]; });
    if (step.op == "Div") y = elementwise(in, [](const Values& v) { return v[0] / v[1]; });
    if (step.op == "Where")
      y = elementwise(in, [](const Values& v) { return v[0] != 0 ? v[1] : v[2]; });
    if (step.op == "Sub") y = elementwise(in, [](const Values& v) { return v[0] - v[1]; });
    if (step.op == "Not") y = elementwise(in, [](const Values& v) { return v[0] == 0; });
    if (step.op == "Neg") y = elementwise(in, [](const Values& v) { return -v[0]; });
    if (step.op == "And")
      y = elementwise(in, [](const Values& v) { return v[0] != 0 && v[1] != 0; });
    if (step.op == "Or")
      y = elementwise(in, [](const Values& v) { return v[0] != 0 || v[1] != 0; });
    if (step.op == "Equal") y = elementwise(in, [](const Values& v) { return v[0] == v[1]; });
    if (step.op == "Greater") y = elementwise(in, [](const Values& v) { return v[0] > v[1]; });
    if (step.op == "LessOrEqual") y = elementwise(in, [](const Values& v) { return v[0] <= v[1]; });
    if (step.op == "Identity" || step.op == "Dropout") y = in[0];
    if (step.op == "Cast") {
      const bool is_truth = step.numbers[0] == 9;
      y = elementwise(in, [&](const Values& v) { return is_truth ? v[0] != 0 : v[0]; });
    }
    if (step.op == "Expand") {
      Doubles like{step.numbers, {}};
      like.values.assign(at(size_of(like.shape)), 0);
      y = elementwise({in[0], like}, [](const Values& v) { return v[0]; });
    }
    if (step.op == "Concat") y = concat(in, step.numbers[0]);
    if (step.op == "Relu") y = elementwise(in, [](const Values& v) { return std::max(v[0], 0.0); });
    if (step.op == "Tanh") y = elementwise(in, [](const Values& v) { return std::tanh(v[0]); });
    if (step.op == "Reshape") y = reshape(in[0], step.numbers);
    if (step.op == "Transpose") y = transpose(in[0], step.numbers);
    if (step.op == "Softmax") y = softmax(in[0]);
    if (step.op == "Gather") {
      y = part(in[0], step.numbers[0], step.numbers[1], 1);
      y.shape.erase(y.shape.begin() + step.numbers[0]);
    }
    if (step.op == "Pad") y = pad(in[0], step.numbers, step.text);
    if (step.op == "Slice") {
      std::vector<Doubles> parts;
      for (int64_t i = step.numbers[1]; i < step.numbers[2]; i += step.numbers[3])
        parts.push_back(part(in[0], step.numbers[0], i, 1));
      y = concat(parts, step.numbers[0]);
    }
    if (step.op == "Unsqueeze") y = in[0], y.shape.insert(y.shape.begin() + step.numbers[0], 1);
    if (step.op == "Squeeze") y = in[0], y.shape.erase(y.shape.begin() + step.numbers[0]);
    if (step.op == "Split") {
      const int64_t axis = step.numbers[0], count = in[0].shape[at(axis)] / std::ssize(step.out);
      for (size_t i = 0; i < step.out.size(); ++i)
        known[step.out[i]] = part(in[0], axis, static_cast<int64_t>(i) * count, count);
      continue;
    }
    if (y.shape.empty()) throw std::logic_error("no loops for " + step.op);
    known[step.out[0]] = std::move(y);
  }
  return known;
}

}  // namespace wide::test::onnx
