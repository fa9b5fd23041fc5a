// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A model step by step: its graph, members, batch and options, checked together when it is built.
//
//   const Model model = ModelBuilder(context, graph)
//                           .members(parameters)
//                           .with_sample(x)
//                           .compile("fast")
//                           .validate(1e-3)
//                           .build();
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wide/model.hpp"

namespace wide {

class ModelBuilder {
 public:
  ModelBuilder(const Context& context, Graph graph);

  /// N sets of parameters, which must live until build(); those on the device must be complete
  /// then, as for Model. Throws invalid_argument after random_members().
  ModelBuilder& members(std::span<const MemberParameters> parameters);
  /// N members with parameters drawn from `seed`, as random_parameters() makes them. Throws
  /// invalid_argument after members().
  ModelBuilder& random_members(int64_t num_members, uint64_t seed = 42);
  /// A member's own first input, [B, ..]: the batch is its B. Only its type is used. Throws
  /// invalid_argument where it is not of the graph's shape and dtype.
  ModelBuilder& with_sample(const ConstTensorView& x);
  ModelBuilder& batch(int64_t rows);
  /// A preset of model_options(), or the options themselves. Throw invalid_argument for an unknown
  /// preset, and where both are given: options() may begin with those of model_options().
  ModelBuilder& compile(std::string_view preset);
  ModelBuilder& options(const ModelOptions& options);
  /// build() compares each member with itself run alone and throws where one differs by more: see
  /// validate_model().
  ModelBuilder& validate(double tolerance);

  /// Allocates and waits. Throws invalid_argument where members or the batch are missing, and for
  /// a member that fails validation, with its number; else as make_model_plan() and Model.
  Model build();

 private:
  void require_one_source() const;
  void require_members_of(bool is_random) const;
  Context context_;
  Graph graph_;
  std::vector<MemberParameters> members_;
  std::vector<OwnedParameters> owned_;  ///< of random members
  int64_t batch_ = 0;
  ModelOptions options_{};
  std::string preset_;  ///< that options_ come from; empty where there is none
  bool has_options_ = false;
  std::optional<double> tolerance_;
};

}  // namespace wide
