// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A member's weights as MlpLayerPlace describes them, for every primitive that has them: `name` is
// the primitive's, in messages.
#pragma once

#include <span>
#include <string_view>

#include "wide/mlp.hpp"

namespace wide {

/// What an operand `weights` shows.
struct MlpWeights {
  int64_t num_members = 1, member_stride = 0;
  friend bool operator==(const MlpWeights&, const MlpWeights&) = default;
};
/// Throws where it does not fit `like`'s widths and dtype.
MlpWeights read_mlp_weights(std::string_view name, const ConstTensorView& weights,
                            const MlpProblem& like);

/// A layer's weight [count, out, in] and bias [count, out], as views of the weights of `count`
/// members from `first` on. The problem is complete.
BasicMlpLayer<ConstTensorView> mlp_layer_of(const ConstTensorView& weights, const MlpProblem& p,
                                            const MlpLayerPlace& place, size_t layer, int64_t first,
                                            int64_t count);

void prepare_mlp_weights(std::string_view name, const MlpProblem& problem,
                         std::span<const MlpMember> members, const TensorView& weights,
                         Stream stream);
void restore_mlp_weights(std::string_view name, const MlpProblem& problem,
                         const ConstTensorView& weights,
                         std::span<const BasicMlpMember<TensorView>> members, Stream stream);

}  // namespace wide
