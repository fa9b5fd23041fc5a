// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Files with LSTM and GRU: what a graph computes, with members of weights of their own, against
// ONNX's formulas as plain loops; that nothing is moved around a layer; and what is refused.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "verify/support/error_of.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/onnx_loops.hpp"
#include "verify/support/tensors.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide;
using namespace wide::test::onnx;
using Catch::Matchers::ContainsSubstring;
using Strings = std::vector<std::string>;

constexpr int64_t kB = 2, kT = 5, kI = 3, kH = 4;
constexpr int64_t kMembers = 2;

size_t z(int64_t i) {
  return static_cast<size_t>(i);
}

/// Numbers in [-0.8, 0.8], others for every seed.
Doubles tensor(const Extents& shape, int64_t seed) {
  Doubles out{shape, {}};
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  for (int64_t i = 0; i < size; ++i) {
    const double number = std::sin(static_cast<double>((i + 11 * seed) * (i + 3)) * 0.37) * 0.8;
    out.values.push_back(static_cast<double>(static_cast<float>(number)));
  }
  return out;
}
std::string initializer(const std::string& name, const Doubles& tensor) {
  return floats(name, tensor.shape, {tensor.values.begin(), tensor.values.end()});
}
std::string constant(const std::string& name, const std::vector<int64_t>& values) {
  return node("Constant", {}, {name},
              tensor_attribute("value", ints("", {std::ssize(values)}, values)));
}
std::string transpose(const std::string& from, const std::string& to, const Extents& order) {
  return node("Transpose", {from}, {to}, ints_attribute("perm", order));
}
std::string texts_attribute(const std::string& name, const Strings& values) {
  std::string all;
  for (const std::string& value : values) all += bytes(9, value);
  return bytes(5, bytes(1, name) + all + integer(20, 8));
}

struct Layer {
  bool is_lstm = true;
  std::string direction = "forward";
  bool has_bias = true, has_states = false;

  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  int64_t gates() const { return is_lstm ? 4 : 3; }
  Doubles w(int64_t member) const { return tensor({directions(), gates() * kH, kI}, 1 + member); }
  Doubles r(int64_t member) const { return tensor({directions(), gates() * kH, kH}, 5 + member); }
  Doubles b(int64_t member) const { return tensor({directions(), 2 * gates() * kH}, 9 + member); }
  std::string op() const { return is_lstm ? "LSTM" : "GRU"; }
  std::string attributes() const {
    return text_attribute("direction", direction) + int_attribute("hidden_size", kH) +
           (is_lstm ? "" : int_attribute("linear_before_reset", 1));
  }
  Strings initializers(int64_t member) const {
    return {initializer("W", w(member)), initializer("R", r(member)), initializer("B", b(member))};
  }
};

using Named = std::map<std::string, Doubles>;

double logistic(double v) {
  return 1 / (1 + std::exp(-v));
}

/// One step of a unit by the operator's formulas, with ONNX's order of gates: of each, what x and
/// what h give, both with their biases. What h becomes; c becomes the cell state.
double step_of(bool is_lstm, const std::vector<double>& x, const std::vector<double>& h,
               double before, double& c) {
  if (is_lstm) {
    const double i = logistic(x[0] + h[0]), o = logistic(x[1] + h[1]), f = logistic(x[2] + h[2]);
    c = f * c + i * std::tanh(x[3] + h[3]);
    return o * std::tanh(c);
  }
  const double update = logistic(x[0] + h[0]), reset = logistic(x[1] + h[1]);
  return (1 - update) * std::tanh(x[2] + reset * h[2]) + update * before;
}

/// Of x [B, T, I] and states [B, D, H]: y [B, T, D, H] and the last states.
Named loops(const Layer& layer, int64_t member, const Named& inputs) {
  const int64_t directions = layer.directions(), gates = layer.gates();
  const Doubles &x = inputs.at("x"), w = layer.w(member), r = layer.r(member), b = layer.b(member);
  Named out{{"y", {{kB, kT, directions, kH}, std::vector<double>(z(kB * kT * directions * kH))}}};
  for (const char* name : {"h", "c"})
    out[name] = layer.has_states
                    ? inputs.at(name + std::string("0"))
                    : Doubles{{kB, directions, kH}, std::vector<double>(z(kB * directions * kH))};
  for (int64_t place = 0; place < kB * directions; ++place) {
    const int64_t n = place / directions, d = place % directions;
    double *h = &out["h"].values[z(place * kH)], *c = &out["c"].values[z(place * kH)];
    for (int64_t i = 0; i < kT; ++i) {
      const bool is_reversed = layer.direction == "reverse" || d == 1;
      const int64_t t = is_reversed ? kT - 1 - i : i;
      const std::vector<double> before(h, h + kH);
      for (int64_t unit = 0; unit < kH; ++unit) {
        std::vector<double> from_x, from_h;
        for (int64_t gate = 0; gate < gates; ++gate) {
          const int64_t row = gate * kH + unit, rows = gates * kH;
          double u = layer.has_bias ? b.values[z(d * 2 * rows + row)] : 0;
          double v = layer.has_bias ? b.values[z(d * 2 * rows + rows + row)] : 0;
          for (int64_t k = 0; k < kI; ++k)
            u += x.values[z((n * kT + t) * kI + k)] * w.values[z((d * rows + row) * kI + k)];
          for (int64_t k = 0; k < kH; ++k)
            v += before[z(k)] * r.values[z((d * rows + row) * kH + k)];
          from_x.push_back(u);
          from_h.push_back(v);
        }
        h[unit] = step_of(layer.is_lstm, from_x, from_h, before[z(unit)], c[unit]);
        out["y"].values[z(((n * kT + t) * directions + d) * kH + unit)] = h[unit];
      }
    }
  }
  if (!layer.is_lstm) out.erase("c");
  return out;
}

/// Of x [batch, T, I] and states [batch, D, H], which stay so where the layout is 1, else as
/// PyTorch exports layers with batch_first.
std::string file_of(const Layer& layer, int64_t layout, int64_t member, int64_t batch) {
  const std::string turned = layout == 0 ? "_turned" : "";
  const Strings states = layer.is_lstm ? Strings{"h", "c"} : Strings{"h"};
  File file = network({}, {}, layer.initializers(member));
  file.inputs = {value("x", {batch, kT, kI})};
  file.outputs = {value("y", {})};
  Strings inputs{"x" + turned, "W", "R", layer.has_bias ? "B" : "", ""}, outputs{"y" + turned};
  if (layout == 0) file.nodes.push_back(transpose("x", inputs[0], {1, 0, 2}));
  for (const std::string& state : states) {
    file.outputs.push_back(value(state, {}));
    outputs.push_back(state + turned);
    if (!layer.has_states) continue;
    file.inputs.push_back(value(state + "0", {batch, layer.directions(), kH}));
    inputs.push_back(state + "0" + turned);
    if (layout == 0) file.nodes.push_back(transpose(state + "0", inputs.back(), {1, 0, 2}));
  }
  file.nodes.push_back(
      node(layer.op(), inputs, outputs, layer.attributes() + int_attribute("layout", layout)));
  if (layout == 1) return file.bytes_of();
  if (layer.directions() == 2) {
    file.nodes.push_back(transpose(outputs[0], "ways", {0, 2, 1, 3}));
    file.nodes.push_back(constant("joined", {0, 0, -1}));
    file.nodes.push_back(node("Reshape", {"ways", "joined"}, {"steps"}));
  } else {
    file.nodes.push_back(constant("axis", {1}));
    file.nodes.push_back(node("Squeeze", {outputs[0], "axis"}, {"steps"}));
  }
  file.nodes.push_back(transpose("steps", "y", {1, 0, 2}));
  for (const std::string& state : states)
    file.nodes.push_back(transpose(state + turned, state, {1, 0, 2}));
  return file.bytes_of();
}

OnnxModel parse(const std::string& file) {
  return OnnxModel::parse(std::as_bytes(std::span(file)), "a file");
}

bool is_close(const std::vector<double>& got, const std::vector<double>& wanted) {
  bool is_same = got.size() == wanted.size();
  for (size_t i = 0; is_same && i < got.size(); ++i) is_same = std::fabs(got[i] - wanted[i]) < 1e-5;
  return is_same;
}

/// Whose an element of all members' operand is, and which of its own.
std::pair<size_t, size_t> own_place(const ModelOperand& operand, int64_t i) {
  int64_t inner = operand.is_stacked ? kMembers : 1;
  for (int a = operand.member_axis + (operand.is_stacked ? 1 : 0); a < operand.shape.rank(); ++a)
    inner *= operand.shape[a];
  inner /= kMembers;
  return {z(i / inner % kMembers), z(i / inner / kMembers * inner + i % inner)};
}

/// The members as one model, each on the same inputs: their outputs.
std::vector<Named> run(const OnnxModel& model, const Named& inputs) {
  const Context cpu = Context::cpu();
  const std::vector<MemberParameters> members{model.parameters(0), model.parameters(1)};
  const Model compiled = compile(cpu, model.graph(), members, kB);
  std::vector<Tensor> tensors, results;
  for (const ModelOperand& operand : compiled.plan().inputs()) {
    std::vector<double> all;
    for (int64_t i = 0; i < num_elements(operand.shape); ++i)
      all.push_back(inputs.at(operand.name).values[own_place(operand, i).second]);
    tensors.push_back(test::upload(cpu, operand.dtype, operand.shape, all));
  }
  for (const ModelOperand& operand : compiled.plan().outputs())
    results.emplace_back(cpu, operand.dtype, operand.shape);
  const std::vector<ConstTensorView> in(tensors.begin(), tensors.end());
  const std::vector<TensorView> out(results.begin(), results.end());
  Tensor workspace(cpu, Dtype::uint8, {compiled.plan().workspace_bytes()});
  compiled.run({in, out}, {Stream::cpu(), {workspace.data(), workspace.bytes()}});
  std::vector<Named> all(kMembers);
  for (size_t k = 0; k < results.size(); ++k) {
    const ModelOperand& operand = compiled.plan().outputs()[k];
    const std::vector<double> values = test::download(cpu, results[k]);
    for (int64_t i = 0; i < std::ssize(values); ++i)  // each member's in their order
      all[own_place(operand, i).first][operand.name].values.push_back(values[z(i)]);
  }
  return all;
}

/// A file for each member computes what the loops do: the graph by itself, and as one model.
void check(const Layer& layer, int64_t layout, int64_t batch = -1) {
  CAPTURE(layer.op(), layer.direction, layer.has_bias, layer.has_states, layout, batch);
  const Strings files{file_of(layer, layout, 0, batch), file_of(layer, layout, 1, batch)};
  const OnnxModel model =
      OnnxModel::parse(std::vector<OnnxBytes>{{std::as_bytes(std::span(files[0])), "a file"},
                                              {std::as_bytes(std::span(files[1])), "another"}});
  const Named inputs{{"x", tensor({kB, kT, kI}, 20)},
                     {"h0", tensor({kB, layer.directions(), kH}, 21)},
                     {"c0", tensor({kB, layer.directions(), kH}, 22)}};
  const std::vector<Named> together = run(model, inputs);
  for (int64_t m = 0; m < kMembers; ++m) {
    const Named wanted = loops(layer, m, inputs);
    Named parameters;
    for (const auto& [name, view] : model.parameters(m))
      parameters[name] = catalog::to_doubles(view);
    const auto alone = catalog::evaluate_graph(model.graph(), inputs, parameters);
    CHECK(alone.size() == wanted.size());
    for (const auto& [name, expected] : wanted) {
      CAPTURE(m, name);
      const bool is_flat = layout == 0 && name == "y";
      CHECK(alone.at(name).shape ==
            (is_flat ? Extents{kB, kT, layer.directions() * kH} : expected.shape));
      CHECK(is_close(alone.at(name).values, expected.values));
      CHECK(is_close(together[z(m)].at(name).values, expected.values));
    }
  }
}

/// With nodes and initializers of its own, from x [batch, T, I].
struct Network {
  Strings nodes, initializers;
  Strings outputs{"y"};
  Strings inputs{};  ///< further ones
  int type = 1;      ///< of x

  std::string bytes() const {
    Strings all = Layer{}.initializers(0);
    all.insert(all.end(), initializers.begin(), initializers.end());
    File file = network({}, nodes, all);
    file.inputs = {value("x", {-1, kT, kI}, type)};
    file.inputs.insert(file.inputs.end(), inputs.begin(), inputs.end());
    file.outputs.clear();
    for (const std::string& output : outputs) file.outputs.push_back(value(output, {}));
    return file.bytes_of();
  }
  OnnxModel model() const {
    const std::string text = bytes();  // its parameters are not read here
    return parse(text);
  }
  Strings runs() const {
    const Graph graph = model().graph();
    test::ModelRun run(Context::cpu(), graph, {.num_members = 3, .batch = 2});
    CHECK(run.worst_error(run.run()) < 2e-5);
    return operations(graph);
  }
};

/// y [batch, T, H] of a layer with layout 1, as `inputs` behind x and more attributes say.
Network layer(const Strings& inputs, const std::string& attributes = "",
              const Strings& initializers = {}, const std::string& op = "LSTM") {
  Strings all{"x"};
  all.insert(all.end(), inputs.begin(), inputs.end());
  return {{node(op, all, {"y"}, int_attribute("layout", 1) + attributes)}, initializers};
}

std::string refusal(const Network& network) {
  return test::error_of([&] { (void)parse(network.bytes()); });
}

}  // namespace

TEST_CASE("onnx: recurrent layers compute ONNX's numbers in every direction and layout") {
  for (const bool is_lstm : {true, false}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const int64_t layout : {0, 1}) {
        check({is_lstm, direction, true, false}, layout);
        check({is_lstm, direction, false, false}, layout);
        check({is_lstm, direction, true, true}, layout);
      }
    }
    check({is_lstm, "bidirectional", true, true}, 0, kB);  // a batch with a number
  }
}

TEST_CASE("onnx: nothing is moved around a recurrent layer") {
  const std::string to_steps = transpose("x", "x1", {1, 0, 2}), axis = constant("axis", {1}),
                    first = constant("first", {0});
  const auto stacked = [&](const Strings& outputs, const Strings& behind) {
    Strings nodes{
        to_steps,
        axis,
        first,
        node("LSTM", {"x1", "W", "R", "B"}, {"a", "ah", "ac"}),
        node("Squeeze", {"a", "axis"}, {"a1"}),
        node("GRU", {"a1", "W2", "R2"}, {"b", "bh"}, int_attribute("linear_before_reset", 1))};
    nodes.insert(nodes.end(), behind.begin(), behind.end());
    return Network{nodes,
                   {initializer("W2", tensor({1, 3 * kH, kH}, 3)),
                    initializer("R2", tensor({1, 3 * kH, kH}, 4))},
                   outputs};
  };
  const Strings to_rows{node("Squeeze", {"b", "axis"}, {"b1"}), transpose("b1", "y", {1, 0, 2})};
  CHECK(stacked({"y"}, to_rows).runs() == Strings{"recurrent", "recurrent"});
  CHECK(stacked({"y"}, {node("Squeeze", {"bh", "first"}, {"y"})}).runs() ==
        Strings{"recurrent", "recurrent", "slice"});
  // The last layer's state out of those of all, as PyTorch's h_n[-1].
  const Strings of_all{
      node("Concat", {"ah", "bh"}, {"s"}, int_attribute("axis", 0)),
      node("Constant", {}, {"last"}, tensor_attribute("value", ints("", {}, {-1}))),
      node("Gather", {"s", "last"}, {"y"}), node("Squeeze", {"bh", "first"}, {"z"})};
  const Network both = stacked({"y", "z"}, of_all);
  CHECK(both.runs() == Strings{"recurrent", "slice", "recurrent", "slice", "concat", "slice"});
  test::ModelRun run(Context::cpu(), both.model().graph(), {.num_members = 2, .batch = kB});
  const auto outputs = run.run();
  for (size_t m = 0; m < 2; ++m) {
    CHECK(outputs.at("y")[m].shape == Extents{kB, kH});
    CHECK(outputs.at("y")[m].values == outputs.at("z")[m].values);
  }
  // Both directions' states, one behind the other: as they are.
  const Network ways{
      {to_steps,
       node("LSTM", {"x1", "V", "S"}, {"", "h"}, text_attribute("direction", "bidirectional")),
       transpose("h", "h1", {1, 0, 2}), constant("flat", {0, -1}),
       node("Reshape", {"h1", "flat"}, {"y"})},
      {initializer("V", tensor({2, 4 * kH, kI}, 3)), initializer("S", tensor({2, 4 * kH, kH}, 4))}};
  CHECK(ways.runs() == Strings{"recurrent", "slice", "recurrent", "slice", "concat"});
}

TEST_CASE("onnx: what exporters write of layers that begin with zeros and run to the end") {
  const Strings zeros{node("Shape", {"x"}, {"shape"}), constant("zero", {0}), constant("one", {1}),
                      constant("width", {kH}), node("Gather", {"shape", "zero"}, {"n"})};
  const auto with = [&](Strings nodes, const Strings& inputs, const std::string& attributes = "") {
    Network all = layer(inputs, attributes, {filled("none", {1, 1, kH}, 0)});
    nodes.insert(nodes.begin(), zeros.begin(), zeros.end());
    all.nodes.insert(all.nodes.begin(), nodes.begin(), nodes.end());
    return all.runs();
  };
  const std::string shape = node("Concat", {"n", "one", "width"}, {"s"}, int_attribute("axis", 0));
  const Strings plain{"recurrent"};
  CHECK(with({shape, node("ConstantOfShape", {"s"}, {"h"})}, {"W", "R", "B", "", "h", "h"}) ==
        plain);
  CHECK(with({shape, node("Expand", {"none", "s"}, {"h"})}, {"W", "R", "", "", "h", "none"}) ==
        plain);
  CHECK(with({constant("steps", {kT}), node("Expand", {"steps", "n"}, {"l"})},
             {"W", "R", "B", "l"}) == plain);
  CHECK(with({}, {"W", "R", "B"},
             texts_attribute("activations", {"sigmoid", "TANH", "Tanh"}) +
                 int_attribute("input_forget", 0)) == plain);
  // Zeros that are too many to be folded one by one.
  const auto many = [](int64_t ways) {
    Network all = layer({"W", "R", "", "", "h", "h"}, "", {filled("many", {2000, 1, kH}, 0)});
    const Strings expand{constant("s", {2000, ways, kH}), node("Expand", {"many", "s"}, {"h"})};
    all.nodes.insert(all.nodes.begin(), expand.begin(), expand.end());
    return all;
  };
  CHECK(many(1).runs() == plain);
  CHECK_THAT(refusal(many(2)), ContainsSubstring("(Expand) reads the constant \"many\""));
}

TEST_CASE("onnx: weights that a file takes apart and joins are those that PyTorch had") {
  constexpr int64_t kWidth = 40, kRows = 4 * kWidth;
  const Doubles w = tensor({kRows, kI}, 1), r = tensor({kRows, kWidth}, 2), b = tensor({kRows}, 3);
  Network whole{{}, {initializer("w", w), initializer("r", r), initializer("b", b)}};
  for (const char* name : {"w", "r", "b"}) {
    const std::string n = name;
    const std::vector<int64_t> order{0, 3, 1, 2};  // input, output, forget, candidate
    Strings parts;
    for (const int64_t gate : order) {
      const std::string g = n + "gate" + std::to_string(gate);
      parts.push_back(g);
      whole.nodes.push_back(constant(g + "from", {gate * kWidth}));
      whole.nodes.push_back(constant(g + "to", {(gate + 1) * kWidth}));
      whole.nodes.push_back(node("Slice", {n, g + "from", g + "to", n + "axis"}, {g}));
    }
    whole.nodes.insert(whole.nodes.begin(), constant(n + "axis", {0}));
    whole.nodes.push_back(node("Concat", parts, {n + "joined"}, int_attribute("axis", 0)));
    if (n != "b") whole.nodes.push_back(node("Unsqueeze", {n + "joined", n + "axis"}, {n + "1"}));
  }
  whole.nodes.push_back(node("Concat", {"bjoined", "bjoined"}, {"bb"}, int_attribute("axis", 0)));
  whole.nodes.push_back(node("Unsqueeze", {"bb", "baxis"}, {"b1"}));
  whole.nodes.push_back(node("LSTM", {"x", "w1", "r1", "b1"}, {"y"}, int_attribute("layout", 1)));
  const std::string text = whole.bytes();
  const OnnxModel model = parse(text);
  const wide::Node& node = model.graph().nodes()[0];
  const auto values_of = [&](const char* operand) {
    return catalog::to_doubles(model.parameters(0).at(model.graph().name(node.operand(operand))))
        .values;
  };
  CHECK(values_of("input_weight") == w.values);
  CHECK(values_of("hidden_weight") == r.values);
  CHECK(values_of("input_bias") == b.values);
  CHECK(values_of("hidden_bias") == b.values);
}

TEST_CASE("onnx: recurrent layers that are no primitive's are refused by name") {
  const Strings weights{"W", "R", "B"};
  const auto and_more = [&](const Strings& more) {
    Strings all = weights;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto with_input = [](Network network, const std::string& input) {
    network.inputs.push_back(input);
    return network;
  };
  CHECK(refusal(layer(weights)) == "nothing was thrown");
  const std::string named = "onnx: a file: node \"node_y\" (LSTM) ";
  const auto says = [&](const std::string& why) { return ContainsSubstring(named + why); };
  CHECK_THAT(refusal(layer(and_more({"", "", "", "P"}), "", {filled("P", {1, 3 * kH})})),
             says("has peepholes, expected gates that read no cell state"));
  CHECK_THAT(refusal(layer(weights, float_attribute("clip", 1))),
             says("has attribute \"clip\", which is not supported"));
  CHECK_THAT(refusal(layer(weights, int_attribute("input_forget", 1))),
             says("has one gate for input and forget, expected two"));
  CHECK_THAT(refusal(layer(weights, texts_attribute("activations", {"Sigmoid", "Relu", "Tanh"}))),
             says("has other activations than its usual ones, expected Sigmoid, Tanh, Tanh"));
  CHECK_THAT(refusal(layer(weights, texts_attribute("activations", {"Sigmoid"}))),
             says("has other activations"));
  CHECK_THAT(refusal(layer(weights, text_attribute("activations", "Tanh"))),
             says("has attribute \"activations\", expected texts"));
  CHECK_THAT(refusal(layer(weights, text_attribute("direction", "both"))),
             says("has direction both, expected forward, reverse or bidirectional"));
  CHECK_THAT(refusal(layer(weights, "", {}, "GRU")),
             ContainsSubstring("(GRU) has linear_before_reset 0, expected 1"));
  CHECK_THAT(refusal(layer(weights, int_attribute("linear_before_reset", 1), {}, "GRU")),
             ContainsSubstring("(GRU) has R [1, 16, 4], expected [1, 3 H, H]"));

  // Lengths.
  CHECK_THAT(refusal(layer(and_more({"l"}), "", {ints("l", {2}, {kT, kT - 1})})),
             says("has \"l\" as input 4, expected one number in all of it"));
  CHECK_THAT(refusal(layer(and_more({"l"}), "", {ints("l", {2}, {4, 4})})),
             says("has sequences of other lengths than its 5 steps, expected as many of all"));
  CHECK_THAT(refusal(with_input(layer(and_more({"l"})), value("l", {-1}, 6))),
             says("reads lengths of sequences that are computed, expected as many steps of all"));

  // States.
  CHECK_THAT(refusal(layer(and_more({"", "h", "h"}), "", {filled("h", {1, 1, kH}, 0.5f)})),
             says("begins with a constant other than 0 as input 5"));
  CHECK_THAT(refusal(with_input(layer(and_more({"", "h"})), value("h", {-1, 1, kH}))),
             says("begins with one state that is computed and one that is not"));
  CHECK_THAT(refusal(with_input(layer(and_more({"", "h", "h"})), value("h", {-1, 1, kH + 1}))),
             says("begins with an input 5 that is not [batch, 1, 4]"));
  Network repeated = with_input(layer(and_more({"", "h1", "h1"})), value("h", {-1, 1, 1}));
  repeated.nodes.insert(repeated.nodes.begin(),
                        {constant("s", {1, 1, kH}), node("Expand", {"h", "s"}, {"h1"})});
  CHECK(refusal(repeated) == "nothing was thrown");  // by a copy
  CHECK_THAT(refusal({{node("LSTM", {"x", "W", "R"}, {"y", "", "c"}, int_attribute("layout", 1))},
                      {},
                      {"c"},
                      {},
                      10}),
             says("reads or writes cell states of fp16, expected fp32"));

  // Weights and shapes.
  CHECK_THAT(refusal(with_input(layer({"w", "R"}), value("w", {-1, 16, kI}))),
             says("computes with \"w\" as input 1, expected a constant"));
  CHECK_THAT(refusal(layer({"W", "R", "S"}, "", {filled("S", {1, 16})})),
             says("has B [1, 16], expected [1, 32]"));
  CHECK_THAT(refusal(layer({"S", "R"}, "", {filled("S", {1, 16, 4})})),
             says("has W [1, 16, 4], expected [1, 16, 3]"));
  CHECK_THAT(refusal(layer(weights, text_attribute("direction", "bidirectional"))),
             says("has R [1, 16, 4], expected [2, 4 H, H]"));
  CHECK_THAT(refusal({{constant("s", {0, -1}), node("Reshape", {"x", "s"}, {"flat"}),
                       node("LSTM", {"flat", "W", "R"}, {"y"})},
                      {}}),
             says("reads 2 axes, expected sequences of 3"));
  CHECK_THAT(refusal(layer(weights, int_attribute("hidden_size", 5))),
             says("has hidden_size 5, expected R's 4"));

  // The batch must be where the layout has it, and in front of what leaves the graph.
  CHECK_THAT(refusal({{node("LSTM", {"x", "W", "R"}, {"y"})}, {}}),
             says("reads sequences with the batch elsewhere than on axis 1"));
  CHECK_THAT(
      refusal({{transpose("x", "x1", {1, 0, 2}), node("LSTM", {"x1", "W", "R"}, {"y"})}, {}}),
      ContainsSubstring("output \"y\" has its batch elsewhere than in front"));
}
