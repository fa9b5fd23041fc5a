// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/model/random_routing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "host/model/routed.hpp"
#include "kernels/common/philox.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

/// In [0, 1), of element `i` of an input of its own.
double random_unit(uint64_t seed, int64_t i, uint32_t input) {
  const auto words =
      kernels::philox4x32(seed, static_cast<uint64_t>(i), ~uint64_t{0} - uint64_t{input});
  return words.word[0] * 0x1p-32;
}

/// An input of the plan, and its values as stored.
std::vector<double> drawn_input(const ModelOperand& operand, double factor, uint64_t seed,
                                uint32_t number, std::vector<std::byte>& bytes) {
  const int64_t count = num_elements(operand.shape);
  bytes.resize(static_cast<size_t>(count * dtype_bytes(operand.dtype)));
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const double value = factor * random_unit(seed, i, number);
    store_element(bytes.data(), operand.dtype, i,
                  is_floating(operand.dtype) ? value : std::floor(value));
    values.push_back(load_element(bytes.data(), operand.dtype, i));
  }
  return values;
}

double gate_of(GateFunction function, std::span<const double> scores,
               std::span<const int64_t> chosen, int64_t member) {
  const auto power = [&](int64_t i) { return std::exp(scores[static_cast<size_t>(i)]); };
  double sum = 0;
  switch (function) {
    case GateFunction::softmax:
      for (const int64_t i : chosen) sum += power(i);
      return power(member) / sum;
    case GateFunction::softmax_all:
      for (const double score : scores) sum += std::exp(score);
      return power(member) / sum;
    case GateFunction::sigmoid:
      return 1 / (1 + 1 / power(member));
    case GateFunction::none:
      break;
  }
  return scores[static_cast<size_t>(member)];
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

/// The members with a row's largest scores, and their gates.
void choose_members(const ModelProblem& problem, std::span<const double> scores,
                    RandomRouting& routing) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(problem.choices));
  for (const int64_t member : order) {
    routing.members.push_back(member - problem.first_id);
    routing.gates.push_back(gate_of(problem.gate, scores, order, member));
  }
}

}  // namespace

RandomRouting random_routing(const ModelPlan& plan, uint64_t seed) {
  const ModelProblem& problem = plan.problem();
  RandomRouting routing;
  if (!problem.is_routed) return routing;
  const auto inputs = plan.inputs().subspan(plan.graph().inputs().size());
  routing.inputs.resize(inputs.size());
  if (problem.router == Router::scores) {
    const std::vector<double> scores = drawn_input(inputs[0], 1, seed, 0, routing.inputs[0]);
    const auto of_row = static_cast<size_t>(scores_of(problem));
    for (int64_t row = 0; row < problem.batch; ++row) {
      choose_members(problem, std::span(scores).subspan(static_cast<size_t>(row) * of_row, of_row),
                     routing);
    }
    return routing;
  }
  const auto ids = static_cast<double>(problem.first_id + problem.num_members);
  for (const double id : drawn_input(inputs[0], ids, seed, 0, routing.inputs[0])) {
    routing.members.push_back(static_cast<int64_t>(id) - problem.first_id);
  }
  routing.gates.assign(routing.members.size(), 1);
  if (problem.router == Router::gated_ids) {
    routing.gates = drawn_input(inputs[1], 1, seed, 1, routing.inputs[1]);
  }
  return routing;
}

RandomRouting random_routing_by_scores(const ModelPlan& plan, uint64_t seed) {
  const ModelProblem& problem = plan.problem();
  const auto members = static_cast<size_t>(problem.num_members);
  const bool has_scores = problem.router == Router::scores;
  RandomRouting routing;
  const ModelOperand scores{.name = "scores",
                            .dtype = has_scores ? plan.inputs().back().dtype : Dtype::fp32,
                            .shape = {problem.batch, problem.num_members}};
  const std::vector<double> values = drawn_input(scores, 4, seed, 0, routing.inputs.emplace_back());
  for (int64_t row = 0; row < problem.batch; ++row) {
    choose_members(problem, std::span(values).subspan(static_cast<size_t>(row) * members, members),
                   routing);
  }
  if (has_scores) return routing;
  routing.inputs = {bytes_of(routing.members)};
  std::vector<float> gates;
  for (double& gate : routing.gates) {
    gates.push_back(problem.router == Router::ids ? 1.0f : static_cast<float>(gate));
    gate = static_cast<double>(gates.back());
  }
  if (problem.router == Router::gated_ids) routing.inputs.push_back(bytes_of(gates));
  return routing;
}

MixtureSums::MixtureSums(const RandomRouting& routing, const ModelPlan& plan)
    : routing_(routing), choices_(plan.problem().choices), outputs_(plan.outputs()) {
  for (const ModelOperand& output : outputs_) {
    sums_.emplace_back(static_cast<size_t>(num_elements(output.shape)), 0.0);
  }
}

template <class Visit>
void MixtureSums::for_each(size_t k, int64_t member, const Visit& visit) const {
  const auto length = std::ssize(sums_[k]) / outputs_[k].shape[0];
  for (int64_t r = 0; r < std::ssize(routing_.members); ++r) {
    if (routing_.members[static_cast<size_t>(r)] != member) continue;
    const int64_t first = r / choices_ * length;
    for (int64_t i = first; i < first + length; ++i) {
      visit(i, routing_.gates[static_cast<size_t>(r)]);
    }
  }
}

void MixtureSums::add(size_t k, int64_t member, const std::vector<std::byte>& alone) {
  for_each(k, member, [&](int64_t i, double gate) {
    sums_[k][static_cast<size_t>(i)] += gate * load_element(alone.data(), outputs_[k].dtype, i);
  });
}

double MixtureSums::error(size_t k, int64_t member, const std::vector<std::byte>& all) const {
  double scale = 0, error = 0;
  for_each(k, member, [&](int64_t i, double) {
    const double expected = sums_[k][static_cast<size_t>(i)];
    const double difference = std::abs(load_element(all.data(), outputs_[k].dtype, i) - expected);
    scale = std::max(scale, std::abs(expected));
    error = std::isfinite(difference) ? std::max(error, difference)
                                      : std::numeric_limits<double>::infinity();
  });
  return error == 0 ? 0 : error / scale;
}

}  // namespace wide
