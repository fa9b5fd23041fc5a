// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the specs of linear and related primitives share: the words of an epilogue, the values of
// operands, and sizes that differ from member to member.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "host/operand.hpp"
#include "host/operand_values.hpp"
#include "host/spec.hpp"
#include "wide/convert.hpp"
#include "wide/epilogue.hpp"

namespace wide::catalog {

inline AxisInfo linear_scale_axis() {
  return {"scale", "what fp32 factors the sums get", "no", {"no", "member", "output"}, 0};
}

/// Reads the axes activation, bias, scale and residual.
inline Epilogue epilogue_of_case(const Case& point) {
  Epilogue epilogue;
  epilogue.has_bias = point.word("bias") == "yes";
  epilogue.activation = *parse_activation(point.word("activation"));
  const std::string& scale = point.word("scale");
  epilogue.scale = scale == "member"   ? OutputScale::per_member
                   : scale == "output" ? OutputScale::per_output
                                       : OutputScale::none;
  const std::string& residual = point.word("residual");
  epilogue.residual = residual == "before"  ? Residual::before_activation
                      : residual == "after" ? Residual::after_activation
                                            : Residual::none;
  return epilogue;
}

// Integer fills: products of two values in [-2, 2] are at most 4, or 8 with their scale, so
// 2^digits / 8 of them (less bias and residual) add up exactly, in any order and in the output's
// dtype; longer sums get zeros among x.
inline constexpr double kMaxInteger = 2;
inline constexpr double kMaxScale = 2;

inline Distribution linear_input_distribution(Fill fill, Dtype dtype, const Epilogue& epilogue,
                                              int64_t in_features) {
  if (fill != Fill::integers) return Distribution::uniform();
  const double largest_exact = 1 / unit_roundoff(dtype);
  const double largest_product =
      kMaxInteger * kMaxInteger * (epilogue.scale == OutputScale::none ? 1.0 : kMaxScale);
  const double safe_products = largest_exact / largest_product - 1;
  const double density =
      std::min(1.0, safe_products / static_cast<double>(std::max<int64_t>(in_features, 1)));
  return Distribution::integers(-kMaxInteger, kMaxInteger, density);
}

/// For weights, biases and residuals.
inline Distribution linear_parameter_distribution(Fill fill) {
  return fill == Fill::integers ? Distribution::integers(-kMaxInteger, kMaxInteger)
                                : Distribution::uniform();
}

/// Values around 1; for integer fills powers of two.
inline Distribution linear_scale_distribution(Fill fill) {
  return fill == Fill::integers ? Distribution::integers(1, kMaxScale)
                                : Distribution::uniform(0.5, kMaxScale);
}

/// A size of a member: uniform from `spread` percent below the largest up to it; a multiple of
/// `step`. Drawn by the member's id, as its contents are, so that members can be permuted, repeated
/// and left out.
inline int64_t draw_member_size(int64_t largest, int64_t spread, int64_t step,
                                std::string_view axis, int64_t id) {
  constexpr uint64_t kSeed = 7;
  const double share = to_unit(random_bits(stream_key(kSeed, axis, 0, id), 0));
  const double below = static_cast<double>(largest) * static_cast<double>(spread) / 100 * share;
  const int64_t size = largest - static_cast<int64_t>(below);
  return std::min(largest, std::max<int64_t>((size + step - 1) / step, 1) * step);
}

/// Of members that differ by `spread`.
inline std::vector<Sweep> uneven_sweeps() {
  return {
      {"quick",
       {{"n", ints({8, 32})},
        {"batch", ints({64})},
        {"d", ints({256})},
        {"spread", ints({0, 75})}}},
      {"full",
       {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
        {"batch", ints({8, 32, 128})},
        {"d", ints({128, 256, 512, 768})},
        {"spread", ints({0, 50, 90})}}},
      {"ci",
       {{"n", ints({4, 16})}, {"batch", ints({16})}, {"d", ints({256})}, {"spread", ints({75})}}},
  };
}

}  // namespace wide::catalog
