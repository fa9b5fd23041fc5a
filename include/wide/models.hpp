// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Well-known architectures as graphs, for benchmarks, tests and as examples of the builder.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "wide/graph.hpp"
#include "wide/model.hpp"

namespace wide {

/// Sizes of a model, layers up to 2^14 and others up to 2^24; 0: the model's own. All have a width.
struct ModelSizes {
  Dtype dtype = Dtype::fp32;
  int64_t layers = 0;   ///< of deep_mlp, bert and vit; levels of unet
  int64_t width = 0;    ///< hidden features, or channels of the first layer
  int64_t heads = 0;    ///< of bert and vit
  int64_t seq = 0;      ///< positions of bert
  int64_t image = 0;    ///< height and width of images
  int64_t classes = 0;  ///< of classifiers; unet's of a pixel; or agent's actions
  int64_t vocab = 0;    ///< of bert
};

struct NamedModel {
  std::string_view name;
  std::string_view summary;
  Graph (*make)(const ModelSizes& sizes);
  std::array<std::string_view, 7> sizes{};  ///< those of ModelSizes that it has, by name
  bool has_size(std::string_view size) const;
};

/// mlp (64-128-64), mlp256 (256-512-256), deep_mlp (8 linear layers of 512), agent (a step of a
/// recurrent policy: 64 features, an LSTM of 128 with states in and out, 16 actions and a value),
/// convnet, resblock (64 channels, 32x32), resnet18 (224x224), unet (3 levels from 32 channels
/// on, 128x128), bert (an encoder: 4 layers of 256, 128 positions) and vit (224x224 in patches of
/// 16).
std::span<const NamedModel> named_models();

/// For messages: "has no effect here: it is of bert, not of vit".
std::string idle_size_text(std::string_view size, const NamedModel& model);

/// Throws invalid_argument with the nearest names, and for sizes that the model does not have.
Graph make_named_model(std::string_view name, const ModelSizes& sizes = {});

/// Parameters to try out a graph, drawn for this member from `seed`: weights uniform within
/// +-sqrt(3 / inputs), so that activations keep their size, gammas and variances around 1, biases,
/// betas and means small.
OwnedParameters random_parameters(const Graph& graph, uint64_t seed, int64_t member);

/// Members around one: member 0 is `parameters`, which lie on the CPU; of the others every floating
/// element is multiplied by a factor in [1 - spread, 1 + spread], drawn from `seed`.
OwnedParameters perturbed_parameters(const MemberParameters& parameters, double spread,
                                     uint64_t seed, int64_t member);

}  // namespace wide
