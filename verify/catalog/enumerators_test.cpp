// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Enumerators by their names, and numbers that were cast to an enumeration and are none of it, as
// from a file: every plan refuses them by name.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "wide/catalog.hpp"
#include "wide/wide.hpp"

using namespace wide;
using Catch::Matchers::Message;

namespace {

/// No enumeration has so many.
template <class Enum>
void spoil(Enum& value) {
  value = static_cast<Enum>(99);
}

template <class Make, class Problem, class Change>
void check_refused(const Make& make, Problem problem, const std::string& field, int last,
                   const Change& change) {
  CHECK_NOTHROW(make(Context::cpu(), problem, PlanOptions{}));
  change(problem);
  CHECK_THROWS_MATCHES(
      make(Context::cpu(), problem, PlanOptions{}), Error,
      Message(field + " is enumerator 99, expected one in [0, " + std::to_string(last) + "]"));
}

enum class Season : uint8_t { spring, summer, autumn };

constexpr std::string_view season_name(Season season) {
  switch (season) {
    case Season::spring:
      return "spring";
    case Season::summer:
      return "summer";
    case Season::autumn:
      return "autumn";
  }
  return "?";
}

}  // namespace

TEST_CASE("enumerators: all that have a name, in order, and by it") {
  constexpr auto kAllSeasons = enumerators<Season, season_name>();
  CHECK(kAllSeasons == std::array{Season::spring, Season::summer, Season::autumn});
  CHECK(parse_enumerator("autumn", kAllSeasons, season_name) == Season::autumn);
  CHECK_FALSE(parse_enumerator("?", kAllSeasons, season_name));
}

TEST_CASE("enumerators: the axis whose words are in an order of its own lacks none") {
  const auto& axes = catalog::find_primitive("chain").axes;
  const auto norm = std::ranges::find(axes, "norm", &catalog::AxisInfo::name);
  REQUIRE(norm != axes.end());
  CHECK(norm->words.size() == kAllChainNorms.size());
  for (const ChainNorm each : kAllChainNorms)
    CHECK(std::ranges::count(norm->words, chain_norm_name(each)) == 1);
}

TEST_CASE("enumerators: products and what follows them") {
  const LinearProblem linear{.num_members = 2, .batch = 3, .in_features = 4, .out_features = 5};
  const auto refuse = [&](const char* field, int last, auto change) {
    check_refused(make_linear_plan, linear, field, last, change);
  };
  refuse("linear: activation", 4, [](LinearProblem& p) { spoil(p.epilogue.activation); });
  refuse("linear: scale", 2, [](LinearProblem& p) { spoil(p.epilogue.scale); });
  refuse("linear: residual", 2, [](LinearProblem& p) { spoil(p.epilogue.residual); });
  refuse("linear: weight_format", 5, [](LinearProblem& p) { spoil(p.weight_format); });

  RaggedLinearProblem ragged;
  ragged.members.resize(1);
  check_refused(make_ragged_linear_plan, ragged, "ragged_linear: activation", 4,
                [](RaggedLinearProblem& p) { spoil(p.epilogue.activation); });
  const RoutedLinearProblem routed{.num_members = 2, .num_rows = 3};
  check_refused(make_routed_linear_plan, routed, "routed_linear: residual", 2,
                [](RoutedLinearProblem& p) { spoil(p.epilogue.residual); });
  const MlpProblem mlp{.num_members = 2, .batch = 3, .widths = {4, 5, 6}};
  check_refused(make_mlp_plan, mlp, "mlp: activation", 4,
                [](MlpProblem& p) { spoil(p.activation); });
  check_refused(make_mlp_plan, mlp, "mlp: last_activation", 4,
                [](MlpProblem& p) { spoil(p.last_activation); });
  const RoutedMlpProblem routed_mlp{.num_members = 2, .num_rows = 3, .widths = {4, 5, 6}};
  check_refused(make_routed_mlp_plan, routed_mlp, "routed_mlp: activation", 4,
                [](RoutedMlpProblem& p) { spoil(p.activation); });
  check_refused(make_routed_mlp_plan, routed_mlp, "routed_mlp: last_activation", 4,
                [](RoutedMlpProblem& p) { spoil(p.last_activation); });

  ConvProblem conv{.num_members = 2, .batch = 1, .in_channels = 2, .out_channels = 2};
  conv.input = {5, 5};
  const auto refuse_conv = [&](const char* field, int last, auto change) {
    check_refused(make_conv_plan, conv, field, last, change);
  };
  refuse_conv("conv: activation", 4, [](ConvProblem& p) { spoil(p.epilogue.activation); });
  refuse_conv("conv: layout", 1, [](ConvProblem& p) { spoil(p.layout); });
  refuse_conv("conv: x_layout", 1, [](ConvProblem& p) { p.x_layout = ChannelLayout(99); });
}

TEST_CASE("enumerators: rows and elements") {
  const PointwiseProblem pointwise{.num_members = 2, .rows = 3, .features = 4};
  check_refused(make_pointwise_plan, pointwise, "pointwise: function", 11,
                [](PointwiseProblem& p) { spoil(p.function); });
  const BinaryProblem binary{.num_members = 2, .rows = 3, .features = 4};
  check_refused(make_binary_plan, binary, "binary: function", 3,
                [](BinaryProblem& p) { spoil(p.function); });
  check_refused(make_binary_plan, binary, "binary: broadcast", 3,
                [](BinaryProblem& p) { spoil(p.broadcast); });
  check_refused(make_binary_plan, binary, "binary: activation", 4,
                [](BinaryProblem& p) { spoil(p.activation); });
  const EnsembleProblem ensemble{.num_members = 2, .rows = 3, .features = 4};
  check_refused(make_ensemble_plan, ensemble, "ensemble: function", 4,
                [](EnsembleProblem& p) { spoil(p.function); });
  const TopKProblem top_k{.num_members = 4, .rows = 3, .choices = 2};
  check_refused(make_top_k_plan, top_k, "top_k: gate", 3, [](TopKProblem& p) { spoil(p.gate); });
  const ChainProblem chain{.num_members = 2, .rows = 3, .features = 4};
  check_refused(make_chain_plan, chain, "chain: activation", 4,
                [](ChainProblem& p) { spoil(p.activation); });
  check_refused(make_chain_plan, chain, "chain: norm", 2, [](ChainProblem& p) { spoil(p.norm); });
}

TEST_CASE("enumerators: channels, sequences, tables and tensors") {
  PoolingProblem pooling{.num_members = 2, .batch = 1, .channels = 2, .height = 4, .width = 4};
  check_refused(make_pooling_plan, pooling, "pooling: mode", 2,
                [](PoolingProblem& p) { spoil(p.mode); });
  check_refused(make_pooling_plan, pooling, "pooling: layout", 1,
                [](PoolingProblem& p) { spoil(p.layout); });
  const InterpolateProblem interpolate{.num_members = 2, .batch = 1, .channels = 2, .width = 4};
  check_refused(make_interpolate_plan, interpolate, "interpolate: coordinates", 3,
                [](InterpolateProblem& p) { spoil(p.coordinates); });
  check_refused(make_interpolate_plan, interpolate, "interpolate: layout", 1,
                [](InterpolateProblem& p) { spoil(p.layout); });
  const BatchnormProblem batchnorm{.num_members = 2, .batch = 2, .channels = 2, .width = 4};
  check_refused(make_batchnorm_plan, batchnorm, "batchnorm: mode", 1,
                [](BatchnormProblem& p) { spoil(p.mode); });
  const RecurrentProblem recurrent{
      .num_members = 2, .batch = 1, .steps = 2, .in_features = 3, .hidden = 4};
  check_refused(make_recurrent_plan, recurrent, "recurrent: cell", 1,
                [](RecurrentProblem& p) { spoil(p.cell); });
  const FlashAttentionProblem attention{
      .num_members = 2, .batch = 1, .seq = 2, .heads = 1, .head_dim = 4};
  check_refused(make_flash_attention_plan, attention, "flash_attention: key_lengths", 2,
                [](FlashAttentionProblem& p) { spoil(p.key_lengths); });
  const EmbeddingProblem embedding{.num_members = 2, .batch = 1, .seq = 2, .vocab = 3, .dim = 4};
  check_refused(make_embedding_plan, embedding, "embedding: dtype", 7,
                [](EmbeddingProblem& p) { spoil(p.dtype); });
  check_refused(make_embedding_plan, embedding, "embedding: bag", 2,
                [](EmbeddingProblem& p) { spoil(p.bag); });
  check_refused(make_embedding_plan, embedding, "embedding: table_format", 5,
                [](EmbeddingProblem& p) { spoil(p.table_format); });
  CHECK_THROWS_MATCHES(Tensor(Context::cpu(), Dtype(99), {4}), Error,
                       Message("tensor: dtype is enumerator 99, expected one in [0, 7]"));
}
