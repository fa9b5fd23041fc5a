// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The catalogue's entry of each primitive, in the order of host/catalog.cpp.
#pragma once

#include "wide/catalog.hpp"

namespace wide::catalog {

const PrimitiveSpec& linear_spec();
const PrimitiveSpec& ragged_linear_spec();
const PrimitiveSpec& routed_linear_spec();
const PrimitiveSpec& routing_spec();
const PrimitiveSpec& top_k_spec();
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
const PrimitiveSpec& conv3d_spec();
const PrimitiveSpec& flash_attention_spec();
const PrimitiveSpec& attention_spec();
const PrimitiveSpec& mlp_spec();
const PrimitiveSpec& routed_mlp_spec();
const PrimitiveSpec& recurrent_spec();
const PrimitiveSpec& pointwise_spec();
const PrimitiveSpec& softmax_spec();
const PrimitiveSpec& binary_spec();
const PrimitiveSpec& dropout_spec();
const PrimitiveSpec& pooling_spec();
const PrimitiveSpec& interpolate_spec();
const PrimitiveSpec& ensemble_spec();

}  // namespace wide::catalog
