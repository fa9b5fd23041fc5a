// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/model/graph_workload.hpp"

#include <algorithm>
#include <cmath>

#include "host/model/input_numbers.hpp"
#include "wide/convert.hpp"

namespace wide::catalog {

namespace {

constexpr int kNoisy = 3;  // evaluations whose spread is the tolerance

}  // namespace

Distribution distribution_of(const Graph& graph, Value input) {
  if (is_floating(graph.type(input).dtype)) return Distribution::uniform();
  const InputNumbers numbers = input_numbers(graph, input);
  return {Distribution::Kind::ids, static_cast<double>(numbers.first),
          static_cast<double>(numbers.last), 1};
}

Operand& GraphWorkload::add_output(Operand& output) {
  outputs_.push_back(&output);
  return output;
}

Operand& GraphWorkload::add_value(std::string_view name, Dtype dtype, const Shape& shape,
                                  int member_axis, const Distribution& distribution) {
  const bool is_stacked = member_axis == 0;
  const PackedOperand packing{
      name, is_stacked ? PackedOperand::Kind::stacked : PackedOperand::Kind::joined,
      std::max(member_axis, 0), 1, kMaxRank};
  return add_operand(packing, dtype, shape, distribution, member_axis < 0);
}

int64_t GraphWorkload::num_outputs() const {
  int64_t most = 0;  // an output may be one for all members
  for (const Operand* output : outputs_) most = std::max(most, output->num_tensors());
  return most;
}

void GraphWorkload::poison_outputs(OutputOf which, Stream stream) {
  for (Operand* output : outputs_) output->poison(which, stream);
}

MemberOutputs GraphWorkload::read_outputs(OutputOf which, Stream stream) {
  std::vector<MemberOutputs> parts;
  for (const Operand* output : outputs_) parts.push_back(output->read(which, stream));
  return parts.size() == 1 ? std::move(parts[0]) : joined(parts);
}

int64_t GraphWorkload::rows(int64_t member) const {
  return outputs_.size() == 1 ? PackedWorkload::rows(member) : batch_;
}

int64_t GraphWorkload::row_length(int64_t member) const {
  if (outputs_.size() == 1) return PackedWorkload::row_length(member);
  int64_t length = 0;
  for (const Operand* output : outputs_) length += per_batch_row(*output, member);
  return length;
}

void GraphWorkload::reference_row(int64_t member, int64_t row, std::span<double> values,
                                  std::span<double> tolerances) const {
  const int64_t rows_of_batch = rows(member) / batch_;
  const std::vector<Evaluated> all = expected(member, row / rows_of_batch);
  const auto first = static_cast<size_t>(row % rows_of_batch) * values.size();
  size_t i = 0;
  for (size_t k = 0; k < all.size(); ++k) {
    const double rounding_of_y = unit_roundoff(graph_->type(graph_->outputs()[k].value).dtype);
    const auto from = all[k].values.begin() + static_cast<ptrdiff_t>(first);
    const auto count = std::min(all[k].values.size() - first, values.size() - i);
    for (size_t e = 0; e < count; ++e, ++i) {
      values[i] = from[static_cast<ptrdiff_t>(e)];
      tolerances[i] = all[k].tolerance + rounding_of_y * std::abs(values[i]);
    }
  }
}

int64_t GraphWorkload::reference_rows_together() const {
  return std::max<int64_t>(rows(0) / std::max<int64_t>(batch_, 1), 1);
}

double GraphWorkload::reference_row_flops() const {
  return (kNoisy + 1) * graph_flops(*graph_) * static_cast<double>(batch_) /
         static_cast<double>(std::max<int64_t>(rows(0), 1));
}

/// The unit roundoff of the coarsest dtype that a value of the graph is rounded to.
double GraphWorkload::rounding() const {
  double most = 0;
  for (const Node& node : graph_->nodes()) {
    for (const Value value : node.outputs)
      most = std::max(most, unit_roundoff(graph_->type(value).dtype));
  }
  return most;
}

int64_t GraphWorkload::per_batch_row(const Operand& operand, int64_t member) const {
  return num_elements(operand.member_shape(member)) / batch_;
}

/// Outputs side by side in every row of the batch, in fp32 where their dtypes differ.
MemberOutputs GraphWorkload::joined(const std::vector<MemberOutputs>& parts) const {
  const bool is_one_dtype = std::all_of(
      parts.begin(), parts.end(), [&](const auto& part) { return part.dtype == parts[0].dtype; });
  MemberOutputs all{is_one_dtype ? parts[0].dtype : Dtype::fp32, {}};
  for (int64_t m = 0; m < num_outputs(); ++m) {
    const int64_t length = row_length(m);
    MemberOutputs::Member& to = all.members.emplace_back(MemberOutputs::Member{batch_, length, {}});
    to.bytes.resize(static_cast<size_t>(to.num_elements() * dtype_bytes(all.dtype)));
    int64_t first = 0;
    for (const MemberOutputs& part : parts) {
      const size_t index = std::min(static_cast<size_t>(m), part.members.size() - 1);
      const MemberOutputs::Member& from = part.members[index];
      const int64_t count = from.num_elements() / batch_;
      for (int64_t i = 0; i < from.num_elements(); ++i) {
        store_element(to.bytes.data(), all.dtype, i / count * length + first + i % count,
                      load_element(from.bytes.data(), part.dtype, i));
      }
      first += count;
    }
  }
  return all;
}

/// One row of a member's batch, output by output, and how far noise of the rounding's size moves
/// each.
const std::vector<GraphWorkload::Evaluated>& GraphWorkload::evaluated(int64_t member,
                                                                      int64_t batch_row) const {
  const auto key = std::pair(member, batch_row);
  if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
  const Values inputs = inputs_of(member, batch_row), parameters = parameters_of(member);
  const auto exact = evaluate_graph(*graph_, inputs, parameters);
  std::vector<Evaluated> results;
  for (const wide::Operand& output : graph_->outputs()) {
    results.push_back({exact.at(output.name).values, 0});
  }
  for (int i = 1; i <= kNoisy; ++i) {
    const RoundingNoise noise{0x1p-24, rounding(), static_cast<uint64_t>(i)};
    const auto noisy = evaluate_graph(*graph_, inputs, parameters, noise);
    for (size_t k = 0; k < results.size(); ++k) {
      Evaluated& result = results[k];
      const std::vector<double>& values = noisy.at(graph_->outputs()[k].name).values;
      for (size_t e = 0; e < values.size(); ++e) {
        result.tolerance = std::max(result.tolerance, 8 * std::abs(values[e] - result.values[e]));
      }
    }
  }
  return cache_[key] = std::move(results);
}

}  // namespace wide::catalog
