// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to the problem. num_members is `like`'s, features are read off x; the others must
// fit.
#include <utility>

#include "host/attention/attention_problem.hpp"
#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"

namespace wide {

namespace {

/// Features of one member of an input; [B, T, N*features] or [B, T, N, features].
int64_t features_of(std::string_view argument, const ConstTensorView& view, int64_t num_members) {
  const bool is_packed = view.rank() == 3 && view.shape[2] % num_members == 0;
  const bool is_explicit = view.rank() == 4 && view.shape[2] == num_members;
  WIDE_REQUIRE(is_packed || is_explicit,
               name_of(kAttentionName, argument) + " is " + to_string(view.shape) +
                   ", expected [batch, positions, num_members * features] with num_members = " +
                   std::to_string(num_members) + ", or with members explicit");
  return is_packed ? view.shape[2] / num_members : view.shape[3];
}

RowStrides activation(std::string_view argument, const ConstTensorView& view,
                      const AttentionProblem& p, int64_t seq, int64_t features) {
  WIDE_REQUIRE(features_of(argument, view, p.num_members) == features && view.shape[0] == p.batch &&
                   view.shape[1] == seq,
               name_of(kAttentionName, argument) + " is " + to_string(view.shape) +
                   ", expected [batch, positions, num_members * features] = " +
                   to_string(Shape{p.batch, seq, p.num_members * features}) +
                   ", or with members explicit");
  require_dtype(kAttentionName, argument, view, p.dtype);
  const RowStrides strides =
      member_rows(kAttentionName, argument, view, p.num_members, features).strides;
  WIDE_REQUIRE(strides != RowStrides{}, name_of(kAttentionName, argument) + " has strides " +
                                            to_string(view.strides) +
                                            ", expected positions or members that do not all start "
                                            "at one place");
  return strides;
}

RowStrides weight(std::string_view argument, const ConstTensorView& view, const AttentionProblem& p,
                  int64_t out, int64_t in) {
  require_shape(kAttentionName, argument, view, "[num_members, out, in]", {p.num_members, out, in});
  require_dtype(kAttentionName, argument, view, p.dtype);
  require_last_axis_contiguous(kAttentionName, argument, view);
  return {view.strides[1], p.num_members == 1 ? out * in : view.strides[0]};
}

int64_t bias(std::string_view argument, const ConstTensorView& view, const AttentionProblem& p,
             int64_t out) {
  WIDE_REQUIRE(view.is_absent() != p.has_bias,
               name_of(kAttentionName, argument) +
                   (p.has_bias ? " is absent, expected one: qkv_bias is present"
                               : " is present, expected none: qkv_bias is absent"));
  if (view.is_absent()) return 0;
  require_shape(kAttentionName, argument, view, "[num_members, out]", {p.num_members, out});
  require_dtype(kAttentionName, argument, view, p.dtype);
  require_last_axis_contiguous(kAttentionName, argument, view);
  require_members_apart(kAttentionName, argument, view);
  return view.strides[0];
}

void require_absent(std::string_view argument, const ConstTensorView& view, const char* why) {
  WIDE_REQUIRE(view.is_absent(), name_of(kAttentionName, argument) + " is " +
                                     to_string(view.shape) + ", expected none: " + why);
}

void describe_parameters(const AttentionParameters& a, AttentionProblem& p) {
  const int64_t d = p.features;
  if (p.is_cross) {
    require_absent("qkv_weight", a.qkv_weight, "keys and values have inputs of their own");
    p.q_weight = weight("q_weight", a.q_weight, p, d, d);
    p.k_weight = weight("k_weight", a.k_weight, p, d, p.key_features);
    p.v_weight = weight("v_weight", a.v_weight, p, d, p.value_features);
  } else {
    for (const auto& [name, view] :
         {std::pair{"q_weight", &a.q_weight}, {"k_weight", &a.k_weight}, {"v_weight", &a.v_weight}})
      require_absent(name, *view, "keys and values come from x, as qkv_weight does");
    p.qkv_weight = weight("qkv_weight", a.qkv_weight, p, 3 * d, d);
  }
  p.has_bias = !a.qkv_bias.is_absent();
  p.qkv_bias_member_stride = bias("qkv_bias", a.qkv_bias, p, 3 * d);
  p.out_weight = weight("out_weight", a.out_weight, p, d, d);
  p.out_bias_member_stride = bias("out_bias", a.out_bias, p, d);
}

void describe_key_lengths(const ConstTensorView& lengths, AttentionProblem& p) {
  if (lengths.is_absent()) return;
  const bool is_shared = lengths.rank() == 1;
  p.key_lengths = is_shared ? KeyLengths::shared : KeyLengths::per_member;
  require_dtype(kAttentionName, "key_lengths", lengths, Dtype::int32);
  require_shape(kAttentionName, "key_lengths", lengths,
                is_shared ? "[batch]" : "[num_members, batch]",
                is_shared ? Shape{p.batch} : Shape{p.num_members, p.batch});
  require_last_axis_contiguous(kAttentionName, "key_lengths", lengths);
  if (!is_shared) require_members_apart(kAttentionName, "key_lengths", lengths);
  p.key_lengths_member_stride = is_shared || p.num_members == 1 ? 0 : lengths.strides[0];
}

}  // namespace

AttentionProblem describe_attention(const AttentionArguments& a, const AttentionProblem& like) {
  AttentionProblem p;
  p.num_members = like.num_members;
  p.heads = like.heads;
  p.is_causal = like.is_causal;
  p.needs_weights = like.needs_weights;
  require_at_least(kAttentionName, "num_members", p.num_members, 1);
  p.dtype = a.x.dtype;
  p.features = features_of("x", a.x, p.num_members);
  p.batch = a.x.shape[0];
  p.seq = a.x.shape[1];
  p.x = activation("x", a.x, p, p.seq, p.features);
  p.is_cross = !a.key.is_absent();
  WIDE_REQUIRE(a.value.is_absent() != p.is_cross,
               std::string("attention: value is ") +
                   (p.is_cross ? "absent, expected one as key" : "present, expected none as key"));
  if (p.is_cross) {
    p.key_features = features_of("key", a.key, p.num_members);
    p.value_features = features_of("value", a.value, p.num_members);
    p.kv_seq = a.key.shape[1];
    p.key = activation("key", a.key, p, *p.kv_seq, p.key_features);
    p.value = activation("value", a.value, p, *p.kv_seq, p.value_features);
  }
  describe_parameters(a.parameters, p);
  describe_key_lengths(a.key_lengths, p);
  p.y = activation("y", a.y, p, p.seq, p.features);
  const AttentionParameters& w = a.parameters;
  for (const auto& [name, view] : {std::pair{"x", &a.x},
                                   {"key", &a.key},
                                   {"value", &a.value},
                                   {"qkv_weight", &w.qkv_weight},
                                   {"q_weight", &w.q_weight},
                                   {"k_weight", &w.k_weight},
                                   {"v_weight", &w.v_weight},
                                   {"qkv_bias", &w.qkv_bias},
                                   {"out_weight", &w.out_weight},
                                   {"out_bias", &w.out_bias},
                                   {"key_lengths", &a.key_lengths}}) {
    if (view->is_absent()) continue;
    require_device(kAttentionName, name, *view, a.y.device);
    WIDE_REQUIRE(!may_overlap(*view, a.y),
                 "attention: y overlaps " + std::string(name) + ", expected memory of its own");
  }
  return complete_attention_problem(p);
}

}  // namespace wide
