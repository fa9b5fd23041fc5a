// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routing for bench and verify: axes, sweeps, strategies, operands, reference, cost.
//
// Members share the ids, and which numbers a member's rows have depends on the others' rows. What
// must not depend on them is which rows these are: each row has a name, the j-th of a member one
// that follows from the member's own id and j, and a member's output is the names of its rows.
#include <algorithm>
#include <array>

#include "host/operand_values.hpp"
#include "host/plan_workload.hpp"
#include "host/routing/routing_run.hpp"
#include "host/specs.hpp"
#include "wide/routing.hpp"

namespace wide::catalog {

namespace {

int64_t id_of_member(const WorkloadOptions& options, int64_t member) {
  return options.member_ids.empty() ? member : options.member_ids.at(static_cast<size_t>(member));
}

/// Rows of each member, uniform from `spread` percent below `batch` up to it; then those of nobody.
std::vector<int64_t> draw_counts(const Case& point, const WorkloadOptions& options) {
  constexpr uint64_t kSeed = 7;  // a case is one problem, whatever the seed
  const int64_t rows = point.integer("batch");
  const auto below = static_cast<double>(rows) * static_cast<double>(point.integer("spread")) / 100;
  std::vector<int64_t> counts;
  int64_t total = 0;
  for (int64_t m = 0; m < point.integer("n"); ++m) {
    const uint64_t key = stream_key(kSeed, "batch", 0, id_of_member(options, m));
    counts.push_back(rows - static_cast<int64_t>(below * to_unit(random_bits(key, 0))));
    total += counts.back();
  }
  counts.push_back(total * point.integer("dropped") / 100);
  return counts;
}

/// The one place where axis values become a problem.
RoutingProblem problem_of(const Case& point, const WorkloadOptions& options) {
  RoutingProblem p;
  p.num_members = point.integer("n");
  for (const int64_t count : draw_counts(point, options)) p.num_rows += count;
  p.id_dtype = point.dtype();
  return p;
}

/// Of a row of nobody: next to the members' and as far from them as it gets.
int64_t foreign_id(const RoutingProblem& p, uint64_t random) {
  const bool is_int64 = p.id_dtype == Dtype::int64;
  const std::array<int64_t, 4> ids{-1, p.num_members, is_int64 ? INT64_MIN : INT32_MIN,
                                   is_int64 ? INT64_MAX : INT32_MAX};
  return ids[random % ids.size()];
}

void store_ids(const std::vector<int64_t>& ids, Dtype dtype, std::span<std::byte> bytes) {
  for (size_t r = 0; r < ids.size(); ++r) {
    if (dtype == Dtype::int64) {
      detail::store_at(bytes.data(), static_cast<int64_t>(r), ids[r]);
    } else {
      detail::store_at(bytes.data(), static_cast<int64_t>(r), static_cast<int32_t>(ids[r]));
    }
  }
}

class RoutingWorkload final : public PlanWorkload<describe_routing, make_routing_plan> {
 public:
  RoutingWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point, options), options) {
    draw_rows(draw_counts(point, options));
    const int64_t n = like().num_members;
    ids_ = &add_ids();
    // Of one call for all, or of a member's own, which has its two and an order of all rows.
    std::vector<MemberPlace> two, all;
    for (int64_t m = 0; m < n; ++m) {
      two.push_back({{2}, m, {1}});
      all.push_back({{like().num_rows}, 0, {1}});
    }
    first_rows_ =
        &add_ragged_operand("routing first_rows", Dtype::int32, two, Distribution::none());
    order_ = &add_ragged_operand("routing order", Dtype::int32, all, Distribution::none());
  }

  /// A routing of one member over all ids.
  PreparedMembers prepare_members() override {
    std::vector<RoutingPlan> plans;
    std::vector<RoutingArguments> members;
    for (int64_t n = 0; n < num_members(); ++n) {
      members.push_back(member_arguments(n));
      RoutingProblem one = like();
      one.num_members = 1;
      one.first_id = n;
      plans.push_back(make_routing_plan(context(), one, {.strategy = "sequential"}));
    }
    return prepared_members(std::move(plans), std::move(members));
  }

  Cost cost() const override {
    const auto rows = static_cast<double>(like().num_rows);
    Cost cost;
    cost.bytes_read = rows * static_cast<double>(dtype_bytes(like().id_dtype));
    cost.bytes_written = 4 * (rows + static_cast<double>(like().num_members + 1));
    for (const auto& own : rows_) cost.items += static_cast<double>(own.size());
    return cost;
  }
  int64_t footprint_bytes() const override { return static_cast<int64_t>(cost().bytes()); }

  int64_t num_outputs() const override { return num_members(); }
  int64_t rows(int64_t member) const override {
    return static_cast<int64_t>(rows_[static_cast<size_t>(member)].size());
  }
  int64_t row_length(int64_t) const override { return 1; }

  void poison_outputs(OutputOf which, Stream stream) override {
    first_rows_->poison(which, stream);
    order_->poison(which, stream);
  }

  MemberOutputs read_outputs(OutputOf which, Stream stream) override {
    MemberOutputs outputs{Dtype::int32, {}};
    if (which == OutputOf::strategy) {
      add_outputs(outputs, arguments({}), 0, num_members(), stream);
      return outputs;
    }
    for (int64_t n = 0; n < num_members(); ++n)
      add_outputs(outputs, member_arguments(n), n, n + 1, stream);
    return outputs;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const int64_t number = rows_[static_cast<size_t>(member)][static_cast<size_t>(row)];
    values[0] = names_[static_cast<size_t>(number)];
    tolerances[0] = 0;
  }
  double reference_row_flops() const override { return 64; }  // the memory of its results

 private:
  RoutingArguments arguments(const OperandViews&) const override {
    return {ids_->packed(), first_rows_->packed(), order_->packed()};
  }
  RoutingArguments member_arguments(int64_t n) const override {
    return {ids_->member(n), first_rows_->member(n), order_->member(n)};
  }

  /// Whose each row is, in any order, and its name. A poisoned member's rows are nobody's.
  void draw_rows(const std::vector<int64_t>& counts) {
    const int64_t n = like().num_members;
    std::vector<int64_t> owners;
    for (int64_t m = 0; m <= n; ++m) {
      owners.insert(owners.end(), static_cast<size_t>(counts[static_cast<size_t>(m)]), m);
    }
    const uint64_t key = stream_key(options().seed, "routing ids", 0, 0);
    for (size_t r = owners.size(); r > 1; --r) {
      std::swap(owners[r - 1], owners[random_bits(key, r) % r]);
    }
    std::vector<uint64_t> keys, drawn(static_cast<size_t>(n) + 1);
    for (int64_t m = 0; m <= n; ++m) {
      const int64_t id = m < n ? id_of_member(options(), m) : -1;
      keys.push_back(stream_key(options().seed, "routing row", 0, id));
    }
    for (const int64_t m : owners) {
      const auto i = static_cast<size_t>(m);
      const uint64_t random = random_bits(keys[i], drawn[i]++);
      const bool is_routed = m < n && m != options().poisoned_member;
      ids_of_rows_.push_back(is_routed ? m : foreign_id(like(), random));
      names_.push_back(static_cast<int32_t>(random >> 33));
    }
    rows_.resize(static_cast<size_t>(n));
    for (size_t r = 0; r < ids_of_rows_.size(); ++r) {
      const int64_t id = ids_of_rows_[r];
      if (id >= 0 && id < n) rows_[static_cast<size_t>(id)].push_back(static_cast<int64_t>(r));
    }
  }

  Operand& add_ids() {
    Operand::Description description;
    description.packing.name = "routing ids";
    description.dtype = like().id_dtype;
    description.member_shape = {like().num_rows};
    description.is_shared = true;
    description.contents = [this](int64_t, bool, std::span<std::byte> bytes) {
      store_ids(ids_of_rows_, like().id_dtype, bytes);
    };
    return add_operand(std::move(description));
  }

  std::vector<int32_t> read(const TensorView& view, Stream stream) const {
    std::vector<int32_t> values(static_cast<size_t>(view.num_elements()));
    copy(view, TensorView(values.data(), Dtype::int32, view.shape, Device{}), stream);
    context().synchronize(stream);
    return values;
  }

  /// What a call for members [begin, end) has written: -1 throughout where the routing has another
  /// number of a member's rows, or does not end with all rows of nobody, ascending.
  void add_outputs(MemberOutputs& outputs, const RoutingArguments& call, int64_t begin, int64_t end,
                   Stream stream) const {
    const auto first_rows = read(call.first_rows, stream), order = read(call.order, stream);
    std::vector<int32_t> others;
    for (size_t r = 0; r < ids_of_rows_.size(); ++r) {
      const int64_t id = ids_of_rows_[r];
      if (id < begin || id >= end) others.push_back(static_cast<int32_t>(r));
    }
    const int64_t all = like().num_rows, routed = all - static_cast<int64_t>(others.size());
    const bool is_whole = first_rows.back() == routed &&
                          std::equal(others.begin(), others.end(), order.begin() + routed);
    for (int64_t n = begin; n < end; ++n) {
      const int32_t* at = &first_rows[static_cast<size_t>(n - begin)];
      const int64_t count = rows(n);
      const bool is_right = is_whole && at[0] >= 0 && at[1] <= all && at[1] - at[0] == count;
      auto& output = outputs.members.emplace_back();
      output = {count, 1, std::vector<std::byte>(static_cast<size_t>(4 * count))};
      for (int64_t j = 0; j < count; ++j) {
        const int64_t row = is_right ? order[static_cast<size_t>(at[0] + j)] : -1;
        const bool exists = row >= 0 && row < all;
        detail::store_at(output.bytes.data(), j, exists ? names_[static_cast<size_t>(row)] : -1);
      }
    }
  }

  std::vector<int64_t> ids_of_rows_;
  std::vector<int32_t> names_;              ///< of rows
  std::vector<std::vector<int64_t>> rows_;  ///< of members, ascending
  Operand* ids_ = nullptr;
  Operand* first_rows_ = nullptr;
  Operand* order_ = nullptr;
};

std::vector<AxisInfo> axes() {
  return {{"n", "members", int64_t{8}, {}, 1},
          {"batch", "rows of the largest member", int64_t{256}, {}, 0, {5, 67, 1031}},
          {"spread", "percent of the largest that a member may lack", int64_t{75}, {}, 0},
          {"dropped", "rows of nobody, in percent of all members'", int64_t{0}, {}, 0},
          {"dtype", "of ids", "int64", {"int64", "int32"}, 0}};
}

std::vector<Sweep> sweeps() {
  return {{"quick", {{"n", ints({8, 64})}, {"batch", ints({256, 2048})}}},
          {"full",
           {{"n", ints({2, 8, 64, 256})},
            {"batch", ints({16, 128, 1024})},
            {"spread", ints({0, 75, 100})},
            {"dropped", ints({0, 25})}}},
          {"ci", {{"n", ints({4, 16})}, {"batch", ints({512})}, {"dropped", ints({10})}}}};
}

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "routing";
  spec.summary = "which rows of a batch go to which member, by an id for each row";
  spec.axes = axes();
  // Ids are read to be counted, and again to be placed; of 32 rows side by side each member has a
  // few, whose places are a part of a sector.
  spec.strategies = wide_strategies(
      "rows are counted and placed by blocks that need not wait for each other: two launches, one "
      "for few rows",
      {.streamed = 2.9, .rereads = 0.05});
  spec.sweeps = sweeps();
  spec.trusted_zeros = 0.65;  // ids of few members are
  spec.tolerance_formula = "0: rows are as they are";
  spec.impossible_reason = spread_impossible_reason;
  spec.tuning_key = [](const Case& point) { return tuning_key(problem_of(point, {})); };
  spec.make_workload = make_workload<RoutingWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& routing_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
