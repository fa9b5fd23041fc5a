// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The one list of primitives. Explicit: an object that registered itself would be dropped from a
// static library by the linker.
#include "wide/catalog.hpp"

#include <array>

#include "host/core/check.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

std::span<const PrimitiveSpec* const> primitives() {
  static const std::array list{
      &linear_spec(),         &ragged_linear_spec(),   &routed_linear_spec(), &routing_spec(),
      &top_k_spec(),          &embedding_spec(),       &layernorm_spec(),     &rmsnorm_spec(),
      &chain_spec(),          &batchnorm1d_spec(),     &batchnorm2d_spec(),   &groupnorm_spec(),
      &instancenorm1d_spec(), &instancenorm2d_spec(),  &conv1d_spec(),        &conv2d_spec(),
      &conv3d_spec(),         &flash_attention_spec(), &attention_spec(),     &mlp_spec(),
      &routed_mlp_spec(),     &recurrent_spec(),       &pointwise_spec(),     &softmax_spec(),
      &binary_spec(),         &dropout_spec(),         &pooling_spec(),       &interpolate_spec(),
      &ensemble_spec()};
  return list;
}

const PrimitiveSpec& find_primitive(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PrimitiveSpec* spec : primitives()) {
    if (spec->name == name) return *spec;
    names.push_back(spec->name);
  }
  constexpr std::string_view kModel = "model:";
  const bool is_model = name.starts_with(kModel);
  if (is_model) names.clear();
  for (const PrimitiveSpec* spec : models()) {
    if (spec->name == name) return *spec;
    names.push_back(is_model ? spec->name.substr(kModel.size()) : spec->name);
  }
  if (is_model)
    throw_invalid_argument(unknown_name_message("model", name.substr(kModel.size()), names));
  throw_invalid_argument(unknown_name_message("op", name, names));
}

}  // namespace wide::catalog
