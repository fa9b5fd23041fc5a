// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/fused/mlp_weights.hpp"

#include <string>
#include <type_traits>

#include "host/core/check.hpp"
#include "host/core/nvtx.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"
#include "host/fused/mlp_problem.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

template <class View>
using ByteOf = std::conditional_t<std::is_same_v<View, TensorView>, char, const char>;

/// A layer's weight and bias, as views of the weights of `count` members from `first` on.
template <class View>
BasicMlpLayer<View> mlp_layer_views(const View& weights, const MlpProblem& p,
                                    const MlpLayerPlace& place, size_t layer, int64_t first,
                                    int64_t count) {
  const int64_t in = p.widths[layer], out = p.widths[layer + 1];
  const int64_t stride = p.num_members == 1 ? p.weights_member_stride : weights.strides[0];
  const auto at = [&](int64_t element) {
    return static_cast<ByteOf<View>*>(weights.data) +
           (first * stride + element) * dtype_bytes(weights.dtype);
  };
  BasicMlpLayer<View> views;
  views.weight = View(at(place.weight), weights.dtype, {count, out, in},
                      Strides{stride, place.row, 1}, weights.device);
  if (p.has_bias) {
    views.bias =
        View(at(place.bias), weights.dtype, {count, out}, Strides{stride, 1}, weights.device);
  }
  return views;
}

void require_weights(std::string_view name, const MlpProblem& p, const ConstTensorView& weights) {
  require_dtype(name, "weights", weights, p.dtype);
  require_shape(name, "weights", weights, "[num_members, elements] of widths " + mlp_widths_text(p),
                {p.num_members, mlp_member_elements(p)});
  require_last_axis_contiguous(name, "weights", weights);
}

template <class View>
void require_members(std::string_view name, const MlpProblem& p,
                     std::span<const BasicMlpMember<View>> members) {
  require_entries(name, "members", members.size(), p.num_members);
  for (size_t n = 0; n < members.size(); ++n) {
    const std::string whose = " of member " + std::to_string(n);
    const auto& layers = members[n].layers;
    WIDE_REQUIRE(layers.size() + 1 == p.widths.size(),
                 name_of(name, "layers" + whose) + " has " +
                     counted(layers.size(), "entry", "entries") + ", expected " +
                     std::to_string(p.widths.size() - 1) + ": widths is " + mlp_widths_text(p));
    for (size_t l = 0; l < layers.size(); ++l) {
      const std::string layer = " of layer " + std::to_string(l) + whose;
      const int64_t in = p.widths[l], out = p.widths[l + 1];
      require_shape(name, "weight" + layer, layers[l].weight, "[out, in]", {out, in});
      WIDE_REQUIRE(layers[l].bias.is_absent() != p.has_bias,
                   name_of(name, "bias" + layer) +
                       (p.has_bias ? " is absent, expected [out]: the plan's problem has one"
                                   : " is present, expected none: the plan's problem has none"));
      if (p.has_bias) require_shape(name, "bias" + layer, layers[l].bias, "[out]", {out});
    }
  }
}

}  // namespace

MlpWeights read_mlp_weights(std::string_view name, const ConstTensorView& weights,
                            const MlpProblem& like) {
  const int64_t elements = mlp_member_elements(like);
  WIDE_REQUIRE(
      weights.rank() == 2 && weights.shape[0] >= 1,
      name_of(name, "weights") + " is " +
          (weights.is_absent() ? "absent" : to_string(weights.shape)) +
          ", expected [num_members, elements] with elements = " + std::to_string(elements));
  MlpWeights read{.num_members = weights.shape[0]};
  require_dtype(name, "weights", weights, like.dtype);
  const Shape expected{read.num_members, elements};
  WIDE_REQUIRE(weights.shape == expected, name_of(name, "weights") + " is " +
                                              to_string(weights.shape) +
                                              ", expected [num_members, elements] of widths " +
                                              mlp_widths_text(like) + " = " + to_string(expected));
  require_last_axis_contiguous(name, "weights", weights);
  require_members_apart(name, "weights", weights);
  WIDE_REQUIRE(weights.alignment() >= kMlpAlignment,
               name_of(name, "weights") + " is aligned to " + std::to_string(weights.alignment()) +
                   " bytes, expected " + std::to_string(kMlpAlignment));
  read.member_stride = read.num_members == 1 ? elements : weights.strides[0];
  return read;
}

BasicMlpLayer<ConstTensorView> mlp_layer_of(const ConstTensorView& weights, const MlpProblem& p,
                                            const MlpLayerPlace& place, size_t layer, int64_t first,
                                            int64_t count) {
  return mlp_layer_views(weights, p, place, layer, first, count);
}

void prepare_mlp_weights(std::string_view name, const MlpProblem& problem,
                         std::span<const MlpMember> members, const TensorView& weights,
                         Stream stream) {
  require_weights(name, problem, weights);
  require_members(name, problem, members);
  const NvtxRange range(("wide::" + std::string(name) + "::prepare_weights").c_str());
  fill_bytes(weights, 0, stream);  // except between members, which is not ours
  std::vector<ConstTensorView> own(members.size());
  const auto pack_each = [&](const PackedOperand& operand, size_t layer, auto field,
                             const TensorView& packed) {
    for (size_t n = 0; n < members.size(); ++n) own[n] = members[n].layers[layer].*field;
    pack(operand, own, packed, stream);
  };
  using Layer = BasicMlpLayer<ConstTensorView>;
  const std::vector<MlpLayerPlace> places = mlp_layer_places(problem);
  for (size_t l = 0; l < places.size(); ++l) {
    const auto views = mlp_layer_views(weights, problem, places[l], l, 0, problem.num_members);
    pack_each(operands::linear_weight, l, &Layer::weight, views.weight);
    if (problem.has_bias) pack_each(operands::linear_bias, l, &Layer::bias, views.bias);
  }
}

void restore_mlp_weights(std::string_view name, const MlpProblem& problem,
                         const ConstTensorView& weights,
                         std::span<const BasicMlpMember<TensorView>> members, Stream stream) {
  require_weights(name, problem, weights);
  require_members(name, problem, members);
  const NvtxRange range(("wide::" + std::string(name) + "::restore_weights").c_str());
  std::vector<TensorView> own(members.size());
  const auto unpack_each = [&](const PackedOperand& operand, size_t layer, auto field,
                               const ConstTensorView& packed) {
    for (size_t n = 0; n < members.size(); ++n) own[n] = members[n].layers[layer].*field;
    unpack(operand, packed, own, stream);
  };
  using Layer = BasicMlpLayer<TensorView>;
  const std::vector<MlpLayerPlace> places = mlp_layer_places(problem);
  for (size_t l = 0; l < places.size(); ++l) {
    const auto views = mlp_layer_views(weights, problem, places[l], l, 0, problem.num_members);
    unpack_each(operands::linear_weight, l, &Layer::weight, views.weight);
    if (problem.has_bias) unpack_each(operands::linear_bias, l, &Layer::bias, views.bias);
  }
}

}  // namespace wide
