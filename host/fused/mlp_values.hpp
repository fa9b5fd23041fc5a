// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What networks of mlp and of its kin are for bench and verify: widths by a case, weights that
// neither make values grow nor vanish.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "host/operand_values.hpp"
#include "host/spec.hpp"
#include "wide/mlp.hpp"
#include "wide/pack.hpp"

namespace wide::catalog {

inline std::vector<int64_t> mlp_widths_of_case(const Case& point) {
  const auto width = [&](const char* axis) {
    return point.integer(axis) == 0 ? point.integer("d") : point.integer(axis);
  };
  std::vector<int64_t> widths(static_cast<size_t>(point.integer("layers")) + 1, width("hidden"));
  widths.front() = width("in");
  widths.back() = width("out");
  return widths;
}

inline std::string mlp_impossible_reason(const Case& point) {
  const std::string reason = tf32_impossible_reason(point);
  if (!reason.empty()) return reason;
  constexpr int64_t kMaxLayers = 64;
  if (point.integer("layers") > kMaxLayers) return "more than 64 layers";
  return "";
}

/// Of a member: weights without their padding, and biases.
inline double mlp_weight_count(const MlpProblem& p) {
  double count = 0;
  for (size_t l = 0; l + 1 < p.widths.size(); ++l) {
    count += static_cast<double>(p.widths[l]) * static_cast<double>(p.widths[l + 1]);
  }
  return count;
}
inline double mlp_bias_count(const MlpProblem& p) {
  double count = 0;
  for (size_t l = 1; l < p.widths.size() && p.has_bias; ++l) {
    count += static_cast<double>(p.widths[l]);
  }
  return count;
}

inline Distribution mlp_input_distribution(Fill fill) {
  return fill == Fill::integers ? Distribution::integers(-2, 2) : Distribution::uniform();
}

/// Whole numbers whose sums stay exact in every dtype however many layers there are: an output is
/// two inputs, from the fifth layer on one, of either sign, and a bias up to 1, so that what begins
/// with 2 is at most 47 after four layers.
inline void draw_whole_weight(uint64_t key, int64_t first, size_t layer, std::span<double> row) {
  for (int64_t i = 0; i < (layer < 4 ? 2 : 1); ++i) {
    const uint64_t bits = random_bits(key, static_cast<uint64_t>(2 * first + i));
    row[(bits >> 1) % row.size()] = bits % 2 == 0 ? 1 : -1;
  }
}

/// Weights such that values neither grow nor vanish from layer to layer: the mean square of sums of
/// either sign stays, of sums of one sign their mean.
inline void draw_weight(Fill fill, uint64_t key, int64_t first, std::span<double> row) {
  const auto in = static_cast<double>(row.size());
  const double spread = fill == Fill::positive ? 2 / in : std::sqrt(6 / in);
  draw_values(shaped(Distribution::uniform(-spread, spread), fill, Dtype::fp32, false), key, first,
              row);
}

/// A member's weights, by number: with zeros where the layout has gaps.
inline void fill_mlp_weights(const MlpProblem& p, const WorkloadOptions& options, int64_t id,
                             bool is_poisoned, std::span<std::byte> bytes) {
  if (is_poisoned) return std::fill(bytes.begin(), bytes.end(), std::byte{0xff});  // NaN
  const uint64_t key = stream_key(options.seed, operands::mlp_weights.name, 0, id);
  const bool is_whole = options.fill == Fill::integers;
  std::vector<double> values(bytes.size() / static_cast<size_t>(dtype_bytes(p.dtype)));
  const std::vector<MlpLayerPlace> places = mlp_layer_places(p);
  for (size_t l = 0; l < places.size(); ++l) {
    const auto in = static_cast<size_t>(p.widths[l]), out = static_cast<size_t>(p.widths[l + 1]);
    const auto part = [&](int64_t first, size_t count) {
      return std::span(values).subspan(static_cast<size_t>(first), count);
    };
    if (p.has_bias) {
      const Distribution uniform = Distribution::uniform(-0.5, 0.5);
      draw_values(is_whole ? Distribution::integers(-1, 1)
                           : shaped(uniform, options.fill, Dtype::fp32, false),
                  key, places[l].bias, part(places[l].bias, out));
    }
    for (size_t o = 0; o < out; ++o) {
      const int64_t first = places[l].weight + static_cast<int64_t>(o) * places[l].row;
      if (is_whole) {
        draw_whole_weight(key, first, l, part(first, in));
      } else {
        draw_weight(options.fill, key, first, part(first, in));
      }
    }
  }
  store_values(values, p.dtype, bytes.data());
}

inline Operand::Description mlp_weights_description(const MlpProblem& problem,
                                                    const WorkloadOptions& of_case) {
  Operand::Description description{.packing = operands::mlp_weights,
                                   .dtype = problem.dtype,
                                   .member_shape = {mlp_member_elements(problem)}};
  description.granule = kMlpAlignment / dtype_bytes(problem.dtype);
  description.contents = [p = problem, options = of_case](int64_t id, bool is_poisoned,
                                                          std::span<std::byte> bytes) {
    fill_mlp_weights(p, options, id, is_poisoned, bytes);
  };
  return description;
}

}  // namespace wide::catalog
