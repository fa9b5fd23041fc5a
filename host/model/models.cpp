// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The named architectures, by the public builder.
#include "wide/models.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/nearest.hpp"
#include "wide/layers.hpp"

namespace wide {

namespace {

namespace L = layers;

int64_t or_else(int64_t size, int64_t usual) {
  return size == 0 ? usual : size;
}

Graph two_layers(const char* name, const ModelSizes& sizes, int64_t ends, int64_t width) {
  GraphBuilder g(name, sizes.dtype);
  Value x = g.input("x", {kBatch, ends});
  x = L::relu(g, "act", L::linear(g, "fc1", x, or_else(sizes.width, width)));
  g.output("y", L::linear(g, "fc2", x, ends));
  return std::move(g).build();
}

Graph mlp(const ModelSizes& sizes) {
  return two_layers("mlp", sizes, 64, 128);
}
Graph mlp256(const ModelSizes& sizes) {
  return two_layers("mlp256", sizes, 256, 512);
}

Graph deep_mlp(const ModelSizes& sizes) {
  GraphBuilder g("deep_mlp", sizes.dtype);
  const int64_t width = or_else(sizes.width, 512), count = or_else(sizes.layers, 8);
  Value x = g.input("x", {kBatch, width});
  for (int64_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    x = L::linear(g, "fc" + number, x, width);
    if (i + 1 < count) x = L::relu(g, "act" + number, x);
  }
  g.output("y", x);
  return std::move(g).build();
}

Graph convnet(const ModelSizes& sizes) {
  GraphBuilder g("convnet", sizes.dtype);
  const int64_t width = or_else(sizes.width, 32), image = or_else(sizes.image, 32);
  Value x = g.input("x", {kBatch, 3, image, image});
  for (int64_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    x = L::conv(g, "conv" + number, x, width << i, {.padding = {1, 1}});
    x = L::relu(g, "act" + number, L::batchnorm(g, "bn" + number, x));
    if (i < 2) x = L::max_pool(g, "pool" + number, x, {.kernel = 2});
  }
  x = L::flatten(g, "flatten", L::global_average_pool(g, "gap", x));
  g.output("y", L::linear(g, "fc", x, or_else(sizes.classes, 10)));
  return std::move(g).build();
}

/// Two 3x3 convolutions with a skip connection, which has a 1x1 one where sizes change.
Value basic_block(GraphBuilder& g, const std::string& name, Value x, int64_t channels,
                  int64_t stride) {
  Value shortcut = x;
  Value y = L::conv(g, name + ".conv1", x, channels,
                    {.stride = {stride, stride}, .padding = {1, 1}, .has_bias = false});
  y = L::relu(g, name + ".relu1", L::batchnorm(g, name + ".bn1", y));
  y = L::conv(g, name + ".conv2", y, channels, {.padding = {1, 1}, .has_bias = false});
  y = L::batchnorm(g, name + ".bn2", y);
  if (stride != 1 || g.type(x).shape[1] != channels) {
    shortcut = L::conv(g, name + ".downsample.0", x, channels,
                       {.kernel = {1, 1}, .stride = {stride, stride}, .has_bias = false});
    shortcut = L::batchnorm(g, name + ".downsample.1", shortcut);
  }
  return L::relu(g, name + ".relu2", L::add(g, name + ".add", y, shortcut));
}

Graph resblock(const ModelSizes& sizes) {
  GraphBuilder g("resblock", sizes.dtype);
  const int64_t width = or_else(sizes.width, 64), image = or_else(sizes.image, 32);
  const Value x = g.input("x", {kBatch, width, image, image});
  g.output("y", basic_block(g, "block", x, width, 1));
  return std::move(g).build();
}

Graph resnet18(const ModelSizes& sizes) {
  GraphBuilder g("resnet18", sizes.dtype);
  const int64_t width = or_else(sizes.width, 64), image = or_else(sizes.image, 224);
  Value x = g.input("x", {kBatch, 3, image, image});
  x = L::conv(g, "conv1", x, width,
              {.kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}, .has_bias = false});
  x = L::relu(g, "relu", L::batchnorm(g, "bn1", x));
  x = L::max_pool(g, "maxpool", x, {.kernel = 3, .stride = 2, .padding = 1});
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t block = 0; block < 2; ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      x = basic_block(g, name, x, width << stage, stage > 0 && block == 0 ? 2 : 1);
    }
  }
  x = L::flatten(g, "flatten", L::global_average_pool(g, "avgpool", x));
  g.output("y", L::linear(g, "fc", x, or_else(sizes.classes, 1000)));
  return std::move(g).build();
}

/// Two convolutions, each normalised and activated.
Value double_conv(GraphBuilder& g, const std::string& name, Value x, int64_t channels) {
  for (const char* number : {"1", "2"}) {
    x = L::conv(g, name + ".conv" + number, x, channels, {.padding = {1, 1}, .has_bias = false});
    x = L::relu(g, name + ".relu" + number, L::batchnorm(g, name + ".bn" + number, x));
  }
  return x;
}

Graph unet(const ModelSizes& sizes) {
  GraphBuilder g("unet", sizes.dtype);
  const int64_t width = or_else(sizes.width, 32), image = or_else(sizes.image, 128),
                levels = or_else(sizes.layers, 3);
  constexpr int64_t kMostLevels = 16;
  WIDE_REQUIRE(levels <= kMostLevels, "model: unet: layers is " + std::to_string(levels) +
                                          ", expected at most " + std::to_string(kMostLevels));
  WIDE_REQUIRE(image % (int64_t{1} << levels) == 0,
               "model: unet: image is " + std::to_string(image) + ", expected a multiple of 2^" +
                   std::to_string(levels));
  Value x = g.input("x", {kBatch, 3, image, image});
  std::vector<Value> skips;
  for (int64_t i = 0; i < levels; ++i) {
    const std::string name = "down" + std::to_string(i);
    skips.push_back(double_conv(g, name, x, width << i));
    x = L::max_pool(g, name + ".pool", skips.back(), {.kernel = 2});
  }
  x = double_conv(g, "bottom", x, width << levels);
  for (int64_t i = levels; i-- > 0;) {
    const std::string name = "up" + std::to_string(i);
    x = L::conv_transpose(g, name + ".transposed", x, width << i,
                          {.kernel = {2, 2}, .stride = {2, 2}});
    x = L::concat(g, name + ".concat", {skips[static_cast<size_t>(i)], x}, 1);
    x = double_conv(g, name, x, width << i);
  }
  g.output("y", L::conv(g, "head", x, or_else(sizes.classes, 2), {.kernel = {1, 1}}));
  return std::move(g).build();
}

/// Attention and two linear layers, each with a skip connection; norms after these, as in BERT, or
/// before.
Value encoder_layer(GraphBuilder& g, const std::string& name, Value x, int64_t heads,
                    bool norm_first, Value key_lengths) {
  const int64_t width = g.type(x).shape[2];
  const auto attend = [&](Value at) {
    return L::attention(g, name + ".self_attn", at, heads, {.key_lengths = key_lengths});
  };
  const auto feed_forward = [&](Value at) {
    at = L::gelu(g, name + ".gelu", L::linear(g, name + ".linear1", at, 4 * width));
    return L::linear(g, name + ".linear2", at, width);
  };
  if (norm_first) {
    x = L::add(g, name + ".add1", x, attend(L::layernorm(g, name + ".norm1", x)));
    return L::add(g, name + ".add2", x, feed_forward(L::layernorm(g, name + ".norm2", x)));
  }
  x = L::layernorm(g, name + ".norm1", L::add(g, name + ".add1", x, attend(x)));
  return L::layernorm(g, name + ".norm2", L::add(g, name + ".add2", x, feed_forward(x)));
}

Graph bert(const ModelSizes& sizes) {
  GraphBuilder g("bert", sizes.dtype);
  const int64_t width = or_else(sizes.width, 256), seq = or_else(sizes.seq, 128);
  const Value ids = g.shared_input("ids", {kBatch, seq}, Dtype::int64);
  const Value lengths = g.shared_input("lengths", {kBatch}, Dtype::int32);
  Value x = L::embedding(g, "token", ids, or_else(sizes.vocab, 30522), width);
  x = L::add(g, "add", x, g.parameter("position.weight", {seq, width}));
  x = L::layernorm(g, "norm", x);
  for (int64_t i = 0; i < or_else(sizes.layers, 4); ++i) {
    x = encoder_layer(g, "layers." + std::to_string(i), x, or_else(sizes.heads, 4), false, lengths);
  }
  const Value first = L::slice(g, "first", x, 1, 0, 1);
  x = L::linear(g, "pooler", L::flatten(g, "flatten", first), width);
  x = L::pointwise(g, "tanh", x, PointwiseFunction::tanh);
  g.output("y", L::linear(g, "classifier", x, or_else(sizes.classes, 2)));
  return std::move(g).build();
}

Graph vit(const ModelSizes& sizes) {
  GraphBuilder g("vit", sizes.dtype);
  const int64_t width = or_else(sizes.width, 192), image = or_else(sizes.image, 224);
  const int64_t patch = 16, side = image / patch, patches = side * side;
  WIDE_REQUIRE(image % patch == 0 && side >= 1,
               "model: vit: image is " + std::to_string(image) + ", expected a multiple of 16");
  Value x = g.input("x", {kBatch, 3, image, image});
  x = L::conv(g, "patch", x, width,
              {.kernel = {patch, patch},
               .stride = {patch, patch},
               .layout = ChannelLayout::channels_last,  // tokens by their features
               .x_layout = ChannelLayout::channels_first});
  x = L::reshape(g, "tokens", x, {kBatch, patches, width});
  x = L::concat(g, "concat", {g.parameter("class_token", {1, width}), x}, 1);
  x = L::add(g, "add", x, g.parameter("position.weight", {patches + 1, width}));
  for (int64_t i = 0; i < or_else(sizes.layers, 12); ++i) {
    x = encoder_layer(g, "layers." + std::to_string(i), x, or_else(sizes.heads, 3), true, {});
  }
  x = L::layernorm(g, "norm", x);
  x = L::flatten(g, "flatten", L::slice(g, "first", x, 1, 0, 1));
  g.output("y", L::linear(g, "head", x, or_else(sizes.classes, 1000)));
  return std::move(g).build();
}

/// A step of a recurrent policy: from observations, through a layer and an LSTM, whose states come
/// from the previous step and go to the next, to actions' logits and a value.
Graph agent(const ModelSizes& sizes) {
  GraphBuilder g("agent", sizes.dtype);
  const int64_t width = or_else(sizes.width, 128);
  const Value seen = g.input("observation", {kBatch, 64});
  const Value hidden = g.input("hidden", {kBatch, width});
  const Value cell = g.input("cell", {kBatch, width}, Dtype::fp32);
  Value x = L::relu(g, "act", L::linear(g, "encoder", seen, width));
  x = L::reshape(g, "step", x, {kBatch, 1, width});
  const L::RecurrentStates next = L::recurrent(g, "lstm", x, width, RecurrentCell::lstm,
                                               {.first_hidden = hidden, .first_cell = cell});
  g.output("policy", L::linear(g, "policy_head", next.hidden, or_else(sizes.classes, 16)));
  g.output("value", L::linear(g, "value_head", next.hidden, 1));
  g.output("next_hidden", next.hidden);
  g.output("next_cell", next.cell);
  return std::move(g).build();
}

constexpr std::array<NamedModel, 10> kModels{{
    {"mlp", "linear 64-128-64 with a relu", mlp, {"width"}},
    {"mlp256", "linear 256-512-256 with a relu", mlp256, {"width"}},
    {"deep_mlp", "8 linear layers of 512 with relus", deep_mlp, {"layers", "width"}},
    {"agent",
     "a step of a recurrent policy: linear, an LSTM of 128, actions and a value",
     agent,
     {"width", "classes"}},
    {"convnet",
     "3 convolutions with batchnorms and pools, 32x32 images",
     convnet,
     {"width", "image", "classes"}},
    {"resblock", "a residual block of 64 channels, 32x32", resblock, {"width", "image"}},
    {"resnet18", "ResNet-18, 224x224 images", resnet18, {"width", "image", "classes"}},
    {"unet",
     "a U-Net of 3 levels from 32 channels on, 128x128 images, a score for each pixel",
     unet,
     {"layers", "width", "image", "classes"}},
    {"bert",
     "an encoder of 4 layers of 256 with its classifier, 128 positions",
     bert,
     {"layers", "width", "heads", "seq", "classes", "vocab"}},
    {"vit",
     "a vision transformer of 12 layers of 192, 224x224 images",
     vit,
     {"layers", "width", "heads", "image", "classes"}},
}};

void check_sizes(const NamedModel& model, const ModelSizes& sizes) {
  // Larger ones would take minutes to build, or exceed 64 bits.
  constexpr int64_t kMaxLayers = 1 << 14, kMost = 1 << 24;
  const auto check = [&](const char* what, int64_t size, int64_t most) {
    const std::string got =
        "model: " + std::string(model.name) + ": " + what + " is " + std::to_string(size);
    WIDE_REQUIRE(size >= 0 && size <= most,
                 got + ", expected 1 to " + std::to_string(most) + ", or 0 for the model's own");
    WIDE_REQUIRE(size == 0 || model.has_size(what),
                 got + ", expected 0, as it " + idle_size_text(what, model));
  };
  check("layers", sizes.layers, kMaxLayers);
  check("width", sizes.width, kMost);
  check("heads", sizes.heads, kMost);
  check("seq", sizes.seq, kMost);
  check("image", sizes.image, kMost);
  check("classes", sizes.classes, kMost);
  check("vocab", sizes.vocab, kMost);
}

}  // namespace

std::span<const NamedModel> named_models() {
  return kModels;
}

bool NamedModel::has_size(std::string_view size) const {
  return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
}

std::string idle_size_text(std::string_view size, const NamedModel& model) {
  std::string owners;
  for (const NamedModel& owner : kModels) {
    if (owner.has_size(size)) owners += (owners.empty() ? "" : ", ") + std::string(owner.name);
  }
  return "has no effect here: it is of " + owners + ", not of " + std::string(model.name);
}

Graph make_named_model(std::string_view name, const ModelSizes& sizes) {
  std::vector<std::string_view> names;
  for (const NamedModel& model : kModels) {
    if (model.name == name) {
      check_sizes(model, sizes);
      return model.make(sizes);
    }
    names.push_back(model.name);
  }
  throw_invalid_argument("model: there is no model \"" + std::string(name) + "\"" +
                         expected_name(name, names));
}

}  // namespace wide
