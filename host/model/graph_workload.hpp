// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What workloads of a graph share: its outputs, side by side, against the graph in double.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/model/graph_reference.hpp"
#include "host/operand.hpp"
#include "wide/graph.hpp"

namespace wide::catalog {

/// The values that a reader of this input expects: ids below the table's rows, lengths from 1 to
/// all positions.
Distribution distribution_of(const Graph& graph, Value input);

class GraphWorkload : public PackedWorkload {
 public:
  int64_t num_outputs() const override;
  void poison_outputs(OutputOf which, Stream stream) override;
  MemberOutputs read_outputs(OutputOf which, Stream stream) override;
  /// One output has its own rows; a row of several is their parts of a row of the batch, one after
  /// another.
  int64_t rows(int64_t member) const override;
  int64_t row_length(int64_t member) const override;
  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override;
  int64_t reference_rows_together() const override;
  double reference_row_flops() const override;

 protected:
  using Values = std::map<std::string, Doubles>;
  GraphWorkload(const Context& context, int64_t num_members, const WorkloadOptions& options,
                std::shared_ptr<const Graph> graph, int64_t batch)
      : PackedWorkload(context, num_members, options), graph_(std::move(graph)), batch_(batch) {}

  const Graph& graph() const { return *graph_; }
  int64_t batch() const { return batch_; }
  /// In the order of the graph's outputs; each has to be added.
  const std::vector<Operand*>& outputs() const { return outputs_; }
  Operand& add_output(Operand& output);
  /// A value of all members as models have it: `shape` is a member's, in front of whose axis
  /// `member_axis` members stand; -1: one for all. The name must live as long as this.
  Operand& add_value(std::string_view name, Dtype dtype, const Shape& shape, int member_axis,
                     const Distribution& distribution);

  /// One row of the batch, by the inputs' names.
  virtual Values inputs_of(int64_t member, int64_t batch_row) const = 0;
  virtual Values parameters_of(int64_t member) const = 0;

  /// One output's part of a row of the batch.
  struct Evaluated {
    std::vector<double> values;
    double tolerance = 0;
  };
  /// What the outputs of a member should be, but for their own rounding.
  virtual std::vector<Evaluated> expected(int64_t member, int64_t batch_row) const {
    return evaluated(member, batch_row);
  }
  const std::vector<Evaluated>& evaluated(int64_t member, int64_t batch_row) const;

 private:
  double rounding() const;
  int64_t per_batch_row(const Operand& operand, int64_t member) const;
  MemberOutputs joined(const std::vector<MemberOutputs>& parts) const;

  std::shared_ptr<const Graph> graph_;
  int64_t batch_;
  std::vector<Operand*> outputs_;
  mutable std::map<std::pair<int64_t, int64_t>, std::vector<Evaluated>> cache_;
};

}  // namespace wide::catalog
