// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Graphs: what builders refuse, and say; what graphs look like as text; what passes make of them;
// where members may stand.
#include "wide/graph.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "host/model/layout.hpp"
#include "host/model/memory.hpp"
#include "host/model/passes.hpp"
#include "verify/model/graph_case.hpp"
#include "verify/support/known_devices.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/models.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::error_of;

namespace {

/// "conv1 linear2 ..": operations in their order.
std::string operations(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    text += (text.empty() ? "" : " ") + std::string(operation_name(graph, node));
  }
  return text;
}

Graph after(const Graph& graph, const ModelOptions& options, Notes& notes) {
  return run_passes(graph, options, notes);
}

}  // namespace

TEST_CASE("graph: what cannot be is refused with the node's name, what was got and expected") {
  const Shape image{kBatch, 6, 8, 8}, rows{kBatch, 10, 12};
  struct Wrong {
    const char* message;
    std::function<void(GraphBuilder&)> build;
    ErrorCode code = ErrorCode::invalid_argument;
  };
  const std::vector<Wrong> all{
      {"input x is [3, 4], expected a shape that begins with the batch, -1 (kBatch, WIDE_BATCH)",
       [](auto& g) {
         (void)g.input("x", {3, 4});
       }},
      {"there is such an input",
       [&](auto& g) { (void)g.input("x", rows), (void)g.input("x", rows); }},
      {"input x is [B, 0], expected extents of at least 1 after the batch",
       [](auto& g) {
         (void)g.input("x", {kBatch, 0});
       }},
      {"parameter w is [4, 0]",
       [](auto& g) {
         (void)g.parameter("w", {4, 0});
       }},
      {"expected at most 5 axes",
       [](auto& g) {
         (void)g.input("x", {kBatch, 1, 1, 1, 1, 1});
       }},
      {"fc: weight is [5, 11], expected [*, 12]",
       [&](auto& g) {
         const Value x = g.input("x", rows);
         (void)g.append("fc", LinearOp{}, {{"x", x}, {"weight", g.parameter("w", {5, 11})}});
       }},
      {"fc: weight is absent",
       [&](auto& g) {
         (void)g.append("fc", LinearOp{}, {{"x", g.input("x", rows)}});
       }},
      {"fc: bias is [4], expected [5]",
       [&](auto& g) {
         const Value x = g.input("x", rows);
         (void)g.append(
             "fc", LinearOp{},
             {{"x", x}, {"weight", g.parameter("w", {5, 12})}, {"bias", g.parameter("b", {4})}});
       }},
      {"fc: operand slope is unknown",
       [&](auto& g) {
         const Value x = g.input("x", rows);
         (void)g.append(
             "fc", LinearOp{},
             {{"x", x}, {"weight", g.parameter("w", {5, 12})}, {"slope", g.parameter("b", {5})}});
       }},
      {"fc: residual is absent",
       [&](auto& g) {
         const Value x = g.input("x", rows);
         (void)g.append("fc", LinearOp{.residual = Residual::after_activation},
                        {{"x", x}, {"weight", g.parameter("w", {5, 12})}});
       }},
      {"conv: groups is 4, expected a divisor of in_channels = 6",
       [&](auto& g) { (void)layers::conv(g, "conv", g.input("x", image), 8, {.groups = 4}); }},
      {"conv: the kernel [8, 6, 9, 9] is larger than the padded x [B, 6, 8, 8]",
       [&](auto& g) {
         (void)layers::conv(g, "conv", g.input("x", image), 8, {.kernel = {9, 9}});
       }},
      {"conv: stride, dilation or padding is impossible",
       [&](auto& g) {
         (void)layers::conv(g, "conv", g.input("x", image), 8, {.stride = {0, 1}});
       }},
      {"attn: heads is 5, expected a divisor of 12",
       [&](auto& g) { (void)layers::attention(g, "attn", g.input("x", rows), 5); }},
      {"emb: ids is fp32, expected int32 or int64",
       [&](auto& g) {
         (void)layers::embedding(g, "emb", g.input("x", {kBatch, 3}), 9, 4);
       }},
      {"add: other is fp32 [B, 6, 8, 8], expected fp32 [B, 10, 12]",
       [&](auto& g) { (void)layers::add(g, "add", g.input("x", rows), g.input("y", image)); }},
      {"add: other is fp32 [10], expected the dtype of x and one element",
       [&](auto& g) { (void)layers::add(g, "add", g.input("x", rows), g.parameter("p", {10})); }},
      {"pool: a window is larger than x",
       [&](auto& g) { (void)layers::max_pool(g, "pool", g.input("x", image), {.kernel = 9}); }},
      {"norm: groups is 4",
       [&](auto& g) { (void)layers::groupnorm(g, "norm", g.input("x", image), 4); }},
      {"drop: probability is 1.5",
       [&](auto& g) { (void)layers::dropout(g, "drop", g.input("x", rows), 1.5f); }},
      {"drop: probability is [2], expected [1]",
       [&](auto& g) {
         const Value two = g.parameter("p", {2});
         (void)g.append("drop", DropoutOp{}, {{"x", g.input("x", rows)}, {"probability", two}});
       }},
      {"cat: axis is 0, expected one of [B, 10, 12] after the batch",
       [&](auto& g) {
         const Value x = g.input("x", rows);
         (void)layers::concat(g, "cat", {x, x}, 0);
       }},
      {"cat: part1 is fp32 [B, 6, 8, 8], expected the axes of fp32 [B, 10, 12]",
       [&](auto& g) {
         (void)layers::concat(g, "cat", {g.input("x", rows), g.input("y", image)}, 1);
       }},
      {"cut: elements [8, 13) of axis 2",
       [&](auto& g) { (void)layers::slice(g, "cut", g.input("x", rows), 2, 8, 5); }},
      {"view: shape is [B, 11], expected the elements of [B, 10, 12]",
       [&](auto& g) {
         (void)layers::reshape(g, "view", g.input("x", rows), {kBatch, 11});
       }},
      {"view: reshapes [B, 10, 12] to [10, B, 12]: the batch must stay in front",
       [&](auto& g) {
         (void)layers::reshape(g, "view", g.input("x", rows), {10, kBatch, 12});
       },
       ErrorCode::unsupported},
      {"view: shape is [B, 120, B], expected extents of at least 0 after the batch",
       [&](auto& g) {
         (void)layers::reshape(g, "view", g.input("x", rows), {kBatch, 120, -1});
       }},
      {"view: shape is [12, -1], expected extents of at least 0",
       [&](auto& g) {
         (void)layers::reshape(g, "view", g.parameter("p", {3, 4}), {12, -1});
       }},
      {"cut: elements [9223372036854775807, 9223372036854775807 + 1) of axis 2",
       [&](auto& g) {
         (void)layers::slice(g, "cut", g.input("x", rows), 2, std::numeric_limits<int64_t>::max(),
                             1);
       }},
      {"turn: order is [1, 0, 2], expected the batch of [B, 10, 12] to stay in front",
       [&](auto& g) {
         (void)g.append("turn", TransposeOp{.order = {1, 0, 2}}, {{"x", g.input("x", rows)}});
       }},
      {"turn: order is [0, 0], expected the axes of [3, 4], each once",
       [&](auto& g) {
         (void)g.append("turn", TransposeOp{.order = {0, 0}}, {{"x", g.parameter("p", {3, 4})}});
       }},
      {"node act, expected another name",
       [&](auto& g) {
         const Value x = g.input("x", rows);
         (void)layers::relu(g, "act", x), (void)layers::relu(g, "act", x);
       }},
      {"output y is x, an input or a parameter",
       [&](auto& g) { g.output("y", g.input("x", rows)); }},
      {"there is such an output",
       [&](auto& g) {
         const Value y = layers::relu(g, "act", g.input("x", rows));
         g.output("y", y), g.output("y", y);
       }},
      {"late: x is the ensemble mean",
       [&](auto& g) {
         const Value x = layers::relu(g, "act", g.input("x", rows));
         (void)layers::relu(g, "late", layers::ensemble(g, "mean", x, EnsembleFunction::mean));
       },
       ErrorCode::unsupported},
      {"net has no output", [&](auto& g) {
         (void)layers::relu(g, "act", g.input("x", rows));
         (void)std::move(g).build();
       }}};
  for (const Wrong& wrong : all) {
    CAPTURE(wrong.message);
    CHECK_THAT(error_of(wrong.build, wrong.code), ContainsSubstring(wrong.message));
  }
}

TEST_CASE("graph: what a batchnorm leaves of a layer is checked before it is computed") {
  const auto refused = [](const char* message,
                          const std::vector<std::pair<std::string, Shape>>& all,
                          FoldBatchnormOp op = {}, Dtype dtype = Dtype::fp32) {
    CAPTURE(message);
    CHECK_THAT(error_of([&](GraphBuilder& g) {
                 std::vector<Operand> operands;
                 for (const auto& [name, shape] : all) {
                   const bool is_statistic = name.starts_with("running");
                   operands.push_back(
                       {name, g.parameter(name, shape, is_statistic ? Dtype::fp32 : dtype)});
                 }
                 (void)g.append("fold", op, operands);
               }),
               ContainsSubstring(message));
  };
  using All = std::vector<std::pair<std::string, Shape>>;
  const All good{{"weight", {8, 3}}, {"gamma", {8}}, {"running_variance", {8}}};
  refused("nothing was thrown", good);
  refused("nothing was thrown", {{"weight", {8, 3, 5, 5}}, {"running_variance", {8}}});
  refused("nothing was thrown",
          {{"gamma", {8}}, {"beta", {8}}, {"running_mean", {8}}, {"running_variance", {8}}});
  refused("fold: gamma is [1], expected [8]",
          {{"weight", {8, 3}}, {"gamma", {1}}, {"running_variance", {8}}});
  refused("fold: weight is [7, 3], expected as many outputs as running_variance has channels = 8",
          {{"weight", {7, 3}}, {"running_variance", {8}}});
  refused("fold: weight is [], expected as many outputs",
          {{"weight", {}}, {"running_variance", {8}}});
  for (const char* name : {"bias", "beta", "gamma", "running_mean"}) {
    All all{{"running_mean", {8}}, {"running_variance", {8}}};
    std::erase_if(all, [&](const auto& one) { return one.first == name; });
    all.push_back({name, {9}});
    refused((std::string("fold: ") + name + " is [9], expected [8]").c_str(), all);
  }
  refused("fold: running_mean is absent, expected one where no weight is",
          {{"running_variance", {8}}});
  refused("fold: gamma is int32, expected fp32, fp16 or bf16", good, {}, Dtype::int32);
  refused("fold: dtype is uint8, expected fp32, fp16 or bf16", good, {.dtype = Dtype::uint8});
  CHECK_THAT(error_of([](GraphBuilder& g) {
               (void)g.append("fold", FoldBatchnormOp{},
                              {{"weight", g.input("x", {kBatch, 8})},
                               {"running_variance", g.parameter("v", {8})}});
             }),
             ContainsSubstring("fold: weight is [B, 8], expected as many outputs"));
  CHECK_THAT(error_of([](GraphBuilder& g) {
               (void)g.append("sum", BinaryOp{}, {{"other", g.parameter("p", {8})}});
             }),
             ContainsSubstring("sum: x is absent, expected one"));
}

TEST_CASE("graph: a text for every reader") {
  const Graph graph = make_named_model("resblock", {.width = 4, .image = 6});
  const std::string list = to_string(graph, GraphStyle::list);
  CHECK_THAT(list, ContainsSubstring("[input]  x: fp32 [B, 4, 6, 6]\n") &&
                       ContainsSubstring("[module] block.conv1 = conv2d(x; padding=1x1): fp32") &&
                       ContainsSubstring("[func]   block.add = binary(block.bn2, other=x; "
                                         "function=add): fp32 [B, 4, 6, 6]\n") &&
                       ContainsSubstring("[output] y = block.relu2"));
  CHECK_THAT(to_string(graph, GraphStyle::tree),
             ContainsSubstring("resblock\n  block\n    conv1: conv2d -> fp32 [B, 4, 6, 6]\n"));
  CHECK_THAT(
      to_string(graph, GraphStyle::table),
      ContainsSubstring("block.bn1    batchnorm2d                fp32 [B, 4, 6, 6]          16\n"));
  CHECK_THAT(to_string(graph, GraphStyle::dot),
             ContainsSubstring("label=\"block.add\\nbinary\\nfp32 [B, 4, 6, 6]\"") &&
                 ContainsSubstring("[label=\"other\"];"));
  CHECK_THAT(to_string(graph, GraphStyle::json),
             ContainsSubstring("\"operation\": \"conv2d\"") &&
                 ContainsSubstring("\"running_variance\": \"block.bn1.running_var\""));
}

TEST_CASE("graph: layers become the operations that they are called") {
  GraphBuilder g("net");
  const Value x = g.input("x", {kBatch, 3, 8, 8});
  const PoolingWindow window{.kernel = 3, .stride = 2, .padding = 1};
  (void)layers::max_pool(g, "max", x, window);
  (void)layers::average_pool(g, "average", x, window, false);
  (void)layers::adaptive_average_pool(g, "parts", x, 4, 2);
  (void)layers::global_average_pool(g, "all", x);
  (void)layers::binary(g, "quotient", x, x, BinaryFunction::divide);
  (void)layers::add(g, "sum", x, x);
  (void)layers::pointwise(g, "prelu", x, PointwiseFunction::prelu, {.num_slopes = 8});
  (void)layers::pointwise(g, "clamp", x, PointwiseFunction::clamp,
                          {.slope = 2, .alpha = 3, .beta = 4, .low = 5, .high = 6});
  (void)layers::interpolate(g, "between", x, 8, 9, CoordinateMode::align_corners);
  using enum PoolingMode;
  const std::vector<Operation> expected{
      PoolingOp{.mode = max, .rows = window, .columns = window},
      PoolingOp{.mode = average, .rows = window, .columns = window, .counts_padding = false},
      PoolingOp{.mode = adaptive_average, .out_height = 4, .out_width = 2},
      PoolingOp{.mode = adaptive_average, .out_height = 1, .out_width = 1},
      BinaryOp{.function = BinaryFunction::divide},
      BinaryOp{.function = BinaryFunction::add},
      PointwiseOp{.function = PointwiseFunction::prelu},
      PointwiseOp{PointwiseFunction::clamp, 2, 3, 4, 5, 6},
      InterpolateOp{8, 9, CoordinateMode::align_corners}};
  REQUIRE(g.graph().nodes().size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(g.graph().nodes()[i].name);
    CHECK(g.graph().nodes()[i].operation == expected[i]);
  }
  CHECK(g.type(g.graph().find_parameter("prelu.weight")).shape == Shape{8});
}

TEST_CASE("graph: passes fold, fuse and drop, and say so") {
  Notes notes;
  const Graph resblock = make_named_model("resblock", {.width = 4, .image = 6});
  CHECK(operations(resblock) == "conv2d batchnorm2d pointwise conv2d batchnorm2d binary pointwise");
  CHECK(operations(after(resblock, {}, notes)) ==
        "fold_batchnorm fold_batchnorm conv2d fold_batchnorm fold_batchnorm conv2d");
  CHECK(notes == Notes{"block.bn1: folded into block.conv1", "block.bn2: folded into block.conv2",
                       "block.relu1: fused into block.conv1", "block.add: fused into block.conv2",
                       "block.relu2: fused into block.conv2"});
  CHECK(operations(after(resblock, {.fuses_epilogues = false}, notes)) ==
        "fold_batchnorm fold_batchnorm conv2d pointwise fold_batchnorm fold_batchnorm conv2d "
        "binary pointwise");
  CHECK(operations(after(resblock, {.folds_batchnorm = false}, notes)) == operations(resblock));

  GraphBuilder g("net");
  Value x = g.input("x", {kBatch, 8});
  Value h = layers::linear(g, "fc1", x, 8, {.has_bias = false});
  h = layers::add(g, "bias", h, g.parameter("b", {8}));
  h = layers::dropout(g, "drop", layers::gelu(g, "gelu", h), 0.5f);
  h = layers::add(g, "sum", h, x);  // behind the activation
  (void)layers::relu(g, "dead", layers::linear(g, "unread", h, 3));
  const Value normed = layers::layernorm(g, "norm", layers::add(g, "twice", h, x));
  g.output("y", normed);
  g.output("h", h);
  notes.clear();
  const Graph fused = after(std::move(g).build(), {}, notes);
  CHECK(operations(fused) == "linear layernorm");
  CHECK(fused.find_parameter("unread.weight").is_absent());
  const auto& linear = std::get<LinearOp>(fused.nodes()[0].operation);
  CHECK(linear.activation == Activation::gelu);
  CHECK(linear.residual == Residual::after_activation);
  CHECK(!fused.nodes()[0].operand("bias").is_absent());
  CHECK(!fused.nodes()[1].operand("residual").is_absent());
}

TEST_CASE(
    "graph: layers become an mlp where that pays, and where nobody wants them by themselves") {
  const Graph graph = make_named_model("mlp");
  DeviceInfo device = test::kH200;
  device.shared_bytes_per_block = device.shared_bytes_per_multiprocessor = 227 * 1024;
  const VerifiedStrategy fused[] = {{"mlp", "fused", 90}};
  const auto fuse = [&](std::span<const VerifiedStrategy> verified,
                        const std::vector<std::pair<std::string, std::string>>& strategies) {
    Notes notes;
    ModelOptions options;
    options.strategies = {strategies.begin(), strategies.end()};
    return operations(
        fuse_mlps(device, verified, after(graph, {}, notes), {2, 3, {}}, options, notes));
  };
  CHECK(fuse(fused, {}) == "pack_mlp mlp");
  CHECK(fuse({}, {}) == "linear linear");
  CHECK(fuse({}, {{"mlp", "layerwise"}}) == "pack_mlp mlp");
  CHECK(fuse(fused, {{"conv", "direct"}}) == "pack_mlp mlp");
  // Who names a strategy for the layers gets it, unless mlp's is named, too.
  CHECK(fuse(fused, {{"linear", "simt"}}) == "linear linear");
  CHECK(fuse(fused, {{"all", "sequential"}}) == "linear linear");
  CHECK(fuse(fused, {{"linear", "simt"}, {"mlp", "fused"}}) == "pack_mlp mlp");
  CHECK(fuse(fused, {{"all", "sequential"}, {"mlp", "fused"}}) == "pack_mlp mlp");
}

TEST_CASE("graph: a value that two nodes read is not fused away") {
  GraphBuilder g("net");
  const Value x = g.input("x", {kBatch, 8});
  const Value h = layers::linear(g, "fc", x, 8);
  g.output("a", layers::relu(g, "relu", h));
  g.output("b", layers::gelu(g, "gelu", h));
  Notes notes;
  CHECK(operations(after(std::move(g).build(), {}, notes)) == "linear pointwise pointwise");
  CHECK(notes.empty());
}

TEST_CASE("graph: members stand where every node can have them") {
  GraphBuilder g("net");
  const Value x = g.input("x", {kBatch, 5, 6});
  const Value h = layers::layernorm(g, "norm", x);
  const Value flat = layers::flatten(g, "flat", h);  // over positions: only if members are in front
  const Value y = layers::linear(g, "fc", flat, 3);
  g.output("y", y);
  const Graph graph = std::move(g).build();
  const std::vector<bool> none(static_cast<size_t>(graph.num_values()), false);
  const std::vector<int> axes = choose_member_axes(graph, none);
  const auto axis = [&](Value v) { return axes[static_cast<size_t>(v.index)]; };
  CHECK(axis(x) == 2);
  CHECK(axis(h) == 0);
  CHECK(axis(flat) == 0);
  CHECK(axis(y) == 1);

  CHECK(reshaped_axes({kBatch, 4, 3, 3}, {kBatch, 36}, 1) == 0b10);
  CHECK(reshaped_axes({kBatch, 4, 9}, {kBatch, 36}, 2) == 0);
  CHECK(reshaped_axes({kBatch, 7, 7, 8}, {kBatch, 49, 8}, 3) == 0b100);
  CHECK(reshaped_axes({kBatch, 8, 1, 1}, {kBatch, 1, 1, 8}, 1) == 0b1110);
  CHECK(reshaped_axes({kBatch, 36}, {kBatch, 1, 6, 6}, 1) == 0b110);
}

TEST_CASE("graph: memory is shared by what never lives at one time, and by nothing else") {
  // Every placing of random lifetimes, checked pair by pair.
  uint64_t state = 11;
  const auto next = [&](int64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>(state >> 33) % below;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lives;
    int64_t most = 0;
    for (int i = 0; i < 12; ++i) {
      const int64_t first = next(20);
      lives.push_back({next(5000), first, first + next(6)});
    }
    const Packing packing = pack_lifetimes(lives, true);
    for (size_t a = 0; a < lives.size(); ++a) {
      REQUIRE(packing.offsets[a] % 256 == 0);
      REQUIRE(packing.offsets[a] + lives[a].bytes <= packing.bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool meet = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
        const bool overlap = packing.offsets[a] < packing.offsets[b] + lives[b].bytes &&
                             packing.offsets[b] < packing.offsets[a] + lives[a].bytes;
        REQUIRE(!(meet && overlap));
      }
    }
    for (int64_t t = 0; t < 26; ++t) {
      int64_t now = 0;
      for (const Lifetime& life : lives) {
        if (life.first <= t && t <= life.last) now += (life.bytes + 255) / 256 * 256;
      }
      most = std::max(most, now);
    }
    CHECK(packing.bytes <= most * 3 / 2);
    CHECK(pack_lifetimes(lives, false).bytes >= packing.bytes);
  }
}

TEST_CASE("graph: layers with numbers that no plan takes are refused as they are appended") {
  GraphBuilder g("net");
  const Value x = g.input("x", {kBatch, 8, 4, 4});
  const Value rows = layers::flatten(g, "rows", x);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK_THROWS_WITH(
      layers::linear(g, "big", rows, kMost),
      ContainsSubstring("graph: parameter big.weight is [9223372036854775807, 128] of fp32, "
                        "expected fewer bytes than 64 bits count"));
  CHECK_THROWS_WITH(g.input("wide", {kBatch, kMost, 2}), ContainsSubstring("input wide is"));
  CHECK_THROWS_WITH(layers::reshape(g, "shape", rows, {kBatch, kMost, kMost}),
                    ContainsSubstring("expected the elements of"));
  for (const float epsilon :
       {-1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::string name = "norm" + std::to_string(epsilon);
    const auto refused = ContainsSubstring("expected a finite number >= 0");
    CHECK_THROWS_WITH(layers::layernorm(g, name + "l", rows, epsilon), refused);
    CHECK_THROWS_WITH(layers::rmsnorm(g, name + "r", rows, epsilon), refused);
    CHECK_THROWS_WITH(layers::batchnorm(g, name + "b", x, epsilon), refused);
    CHECK_THROWS_WITH(layers::groupnorm(g, name + "g", x, 2, epsilon), refused);
    CHECK_THROWS_WITH(layers::instancenorm(g, name + "i", x, epsilon), refused);
  }
  CHECK_THROWS_WITH(GraphBuilder("whole", Dtype::int32),
                    ContainsSubstring("dtype is int32, expected fp32, fp16 or bf16"));
}

TEST_CASE("graph: a value of another builder is refused, one made by number is not") {
  GraphBuilder g("net"), other("other");
  const Value x = g.input("x", {kBatch, 8}), foreign = other.input("x", {kBatch, 8});
  const auto refused = [](const std::string& what) {
    return ContainsSubstring(what + " is another GraphBuilder's, expected one of net's");
  };
  CHECK_THROWS_WITH(layers::linear(g, "fc", foreign, 4), refused("graph: value 0"));
  CHECK_THROWS_WITH(g.append("act", PointwiseOp{}, {{"x", foreign}}), refused("act: x: value 0"));
  CHECK_THROWS_WITH(g.output("y", layers::relu(other, "act", foreign)), refused("y: value 1"));
  CHECK(layers::relu(g, "act", Value{x.index}) == Value{1});
}

TEST_CASE("graph: what throws leaves nothing behind, and may be tried again") {
  GraphBuilder g("net");
  CHECK_THROWS_AS(g.input("x", {kBatch, 0, 5}), Error);
  const Value x = g.input("x", {kBatch, 3, 5}), wrong = g.input("wrong", {kBatch, 7});
  const Value taken = g.parameter("both.weight_hh_l0_reverse", {32, 8});
  const auto leaves_nothing = [&](const auto& build) {
    const auto size = [&] { return std::pair(g.graph().nodes().size(), g.graph().num_values()); };
    const auto before = size();
    CHECK_THROWS_AS(build(), Error);
    CHECK(size() == before);
    CHECK(g.graph().parameters().size() == 1);
  };
  leaves_nothing([&] { layers::lstm(g, "lstm", x, 8, {.first_hidden = wrong}); });
  leaves_nothing([&] { layers::attention(g, "attention", x, 4); });
  leaves_nothing([&] { layers::bidirectional(g, "both", x, 8, RecurrentCell::lstm); });
  leaves_nothing([&] { (void)g.append_two("one", PointwiseOp{}, {{"x", x}}); });
  {
    const GraphBuilder::Rollback rollback(g);  // without an exception it does nothing
    layers::lstm(g, "lstm", x, 8);
  }
  layers::attention(g, "attention", x, 5);
  layers::bidirectional(g, "more", x, 8, RecurrentCell::lstm);
  g.append("one", PointwiseOp{}, {{"x", x}});
  CHECK(operations(g.graph()) == "recurrent attention recurrent recurrent concat pointwise");
  CHECK(g.graph().parameters().size() == 1 + 4 + 4 + 8);
  CHECK(g.graph().find_parameter("both.weight_hh_l0_reverse") == taken);
}
