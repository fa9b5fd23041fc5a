// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The one list of primitives. Explicit: an object that registered itself would be dropped from a
// static library by the linker.
#include "wide/catalog.hpp"

#include <algorithm>
#include <array>

#include "host/core/check.hpp"

namespace wide::catalog {

const PrimitiveSpec& linear_spec();
const PrimitiveSpec& ragged_linear_spec();
const PrimitiveSpec& embedding_spec();
const PrimitiveSpec& layernorm_spec();
const PrimitiveSpec& rmsnorm_spec();
const PrimitiveSpec& chain_spec();
const PrimitiveSpec& batchnorm1d_spec();
const PrimitiveSpec& batchnorm2d_spec();
const PrimitiveSpec& groupnorm_spec();
const PrimitiveSpec& instancenorm1d_spec();
const PrimitiveSpec& instancenorm2d_spec();
const PrimitiveSpec& conv1d_spec();
const PrimitiveSpec& conv2d_spec();
const PrimitiveSpec& flash_attention_spec();
const PrimitiveSpec& attention_spec();
const PrimitiveSpec& mlp_spec();
const PrimitiveSpec& recurrent_spec();
const PrimitiveSpec& pointwise_spec();
const PrimitiveSpec& softmax_spec();
const PrimitiveSpec& binary_spec();
const PrimitiveSpec& dropout_spec();
const PrimitiveSpec& pooling_spec();
const PrimitiveSpec& ensemble_spec();

std::span<const PrimitiveSpec* const> primitives() {
  static const std::array list{
      &linear_spec(),    &ragged_linear_spec(),   &embedding_spec(),      &layernorm_spec(),
      &rmsnorm_spec(),   &chain_spec(),           &batchnorm1d_spec(),    &batchnorm2d_spec(),
      &groupnorm_spec(), &instancenorm1d_spec(),  &instancenorm2d_spec(), &conv1d_spec(),
      &conv2d_spec(),    &flash_attention_spec(), &attention_spec(),      &mlp_spec(),
      &recurrent_spec(), &pointwise_spec(),       &softmax_spec(),        &binary_spec(),
      &dropout_spec(),   &pooling_spec(),         &ensemble_spec()};
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
