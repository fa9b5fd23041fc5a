// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a model's dropouts draw. Their seeds change within the stream, so that the next pass of
// Monte Carlo dropout waits for nothing but the last one.
#include <numeric>
#include <string>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/model/members.hpp"
#include "host/model/model_state.hpp"
#include "host/model/queued_work.hpp"
#include "host/model/run_checks.hpp"
#include "host/pointwise/dropout_seeds.hpp"

namespace wide {

namespace {

std::byte* at(const ModelPlan::State& plan, Model::State& members, int32_t storage) {
  return static_cast<std::byte*>(members.weights.data()) +
         plan.storages[static_cast<size_t>(storage)].offset;
}

/// Throws invalid_argument for a plan without dropouts.
DropoutSeeds seeds_of(const ModelPlan::State& plan, Model::State& members,
                      const std::string& call) {
  WIDE_REQUIRE(!plan.dropouts.empty(),
               "model: " + call + ": nothing is dropped, expected a plan with drops_out");
  return {at(plan, members, plan.seed_storage), std::ssize(plan.dropouts), plan.stored_members};
}

}  // namespace

void load_probabilities(const ModelPlan::State& plan, Model::State& members, Stream stream) {
  std::vector<std::vector<float>> of_members;
  QueuedWork work(members.context, stream);
  for (const DropoutSlots& dropout : plan.dropouts) {
    if (dropout.probabilities < 0) continue;  // the members' own
    const auto n = static_cast<size_t>(plan.problem.num_members);
    const std::vector<float>& own = of_members.emplace_back(n, dropout.probability);
    const Shape shape{std::ssize(own)};
    copy(ConstTensorView(own.data(), Dtype::fp32, shape, Device{}),
         TensorView(at(plan, members, dropout.probabilities), Dtype::fp32, shape,
                    members.context.device()),
         stream);
  }
  work.wait();
}

void Model::seed_dropout(uint64_t seed, uint64_t sequence, Stream stream) {
  std::vector<uint64_t> seeds(static_cast<size_t>(plan_.problem().num_members));
  std::iota(seeds.begin(), seeds.end(), seed);
  seed_dropout(seeds, sequence, stream);
}

void Model::seed_dropout(std::span<const uint64_t> seeds, uint64_t sequence, Stream stream) {
  const ModelPlan::State& s = plan_.state();
  const DropoutSeeds own = seeds_of(s, *state_, "seed_dropout");
  require_stream(state_->context.device(), stream);
  const auto n = static_cast<size_t>(s.problem.num_members);
  WIDE_REQUIRE(seeds.size() == n, "model: seed_dropout: " + counted(seeds.size(), "seed") +
                                      ", expected one for each member = " + std::to_string(n));
  const uint64_t most = last_dropout_sequence(own.num_dropouts);
  WIDE_REQUIRE(sequence <= most, "model: seed_dropout: sequence is " + std::to_string(sequence) +
                                     ", expected at most " + std::to_string(most) + " with " +
                                     counted(own.num_dropouts, "dropout") + " in the graph");
  const auto lock = state_->lock.for_change();
  set_dropout_seeds(state_->context, own, seeds, sequence, stream);
}

void Model::advance_dropout(Stream stream) {
  const ModelPlan::State& s = plan_.state();
  const DropoutSeeds own = seeds_of(s, *state_, "advance_dropout");
  require_stream(state_->context.device(), stream);
  const auto lock = state_->lock.for_change();
  advance_dropout_seeds(state_->context, own, s.problem.num_members, stream);
}

}  // namespace wide
