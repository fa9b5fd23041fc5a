// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A graph with N members on one device, with inputs and parameters of its own for each, run and
// judged member by member.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "host/model/graph_reference.hpp"
#include "wide/model.hpp"
#include "wide/models.hpp"

namespace wide::test {

/// What `build` makes.
Graph built(const std::function<void(GraphBuilder&)>& build);

/// A named model that is small enough for plain loops, and for a simulated GPU.
Graph small_model(std::string_view name, Dtype dtype = Dtype::fp32);

/// Why no plan for the CPU can be made; empty where one can.
std::string refusal(const Graph& graph, const ModelProblem& problem,
                    const ModelOptions& options = {});

class ModelRun {
 public:
  ModelRun(const Context& context, const Graph& graph, const ModelProblem& problem,
           const ModelOptions& options = {}, uint64_t seed = 7,
           std::vector<int64_t> member_ids = {});

  const ModelPlan& plan() const { return plan_; }
  Model& model() { return model_; }
  const Context& context() const { return context_; }
  ModelArguments arguments() const { return {inputs_, outputs_}; }
  Execution execution();
  Stream stream() const { return stream_.get(); }

  /// Of a routed model: who runs each row from now on, [batch, choices], as numbers of its members.
  /// Until then they take turns.
  void route(const std::vector<int64_t>& members);
  /// Of a mixture: how much each of these counts from now on; or the scores, [batch, all], that
  /// give both. Until then random ones.
  void weigh(const std::vector<double>& gates);
  void score(const std::vector<double>& scores);
  const std::vector<int64_t>& routed_to() const { return routed_to_; }

  /// Outputs filled with NaN, then written, and read back: by output, then member, each dense.
  using Outputs = std::map<std::string, std::vector<catalog::Doubles>>;
  Outputs run();
  Outputs replay();
  Outputs read();
  void poison();

  /// The largest difference from the reference over the largest value, but no less than
  /// `least_scale`, of any member and output, of a routed model in the member's rows; NaN counts as
  /// infinite.
  double worst_error(const Outputs& outputs, double least_scale = 0) const;
  /// With noise: what rounding of that size makes of it.
  Outputs reference(const catalog::RoundingNoise& noise = {}) const;
  /// Other parameters for a member, as those of `id`.
  void replace(int64_t member, int64_t id);
  MemberParameters parameters_of(int64_t id);

 private:
  int64_t rows_of(int64_t member) const;
  catalog::Doubles input_of(size_t input, int64_t id, int64_t rows) const;
  void join(EnsembleFunction function, std::vector<catalog::Doubles>& members) const;
  bool is_mixture() const;
  void mix(std::vector<catalog::Doubles>& members) const;
  void set_rows();
  std::vector<MemberParameters> all_parameters();

  Context context_, host_;  ///< the device, and what rounds inputs
  Graph graph_;
  uint64_t seed_;
  std::vector<int64_t> input_ids_;  ///< of members: whose inputs they have
  std::vector<int64_t> ids_;        ///< whose parameters
  std::vector<int64_t> routed_to_;  ///< of a routed model's rows: the member, or choices of them
  std::vector<double> gates_;       ///< of these, in a mixture
  std::map<int64_t, OwnedParameters> parameters_;
  ModelPlan plan_;
  Model model_;
  OwnedStream stream_;
  VendorHandles handles_;
  std::vector<Tensor> input_tensors_, output_tensors_;
  std::vector<ConstTensorView> inputs_;
  std::vector<TensorView> outputs_;
  Tensor workspace_;
};

}  // namespace wide::test
