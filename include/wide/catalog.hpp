// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The vocabulary in which a primitive describes itself to bench and verify: its axes, sweeps and
// strategies as data, one problem with operands in place as an object. No timer, no CUDA, and
// nothing here knows a primitive; the primitives fill it in host/<family>/<primitive>_spec.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "wide/context.hpp"
#include "wide/dtype.hpp"
#include "wide/plan.hpp"
#include "wide/tensor.hpp"
#include "wide/tuning.hpp"

namespace wide {
class Graph;
}

namespace wide::catalog {

using AxisValue = std::variant<int64_t, std::string>;
std::string to_string(const AxisValue& value);

/// An axis and its default value.
struct AxisInfo {
  std::string_view name;  ///< as on the command line and in JSON: "n", "batch", "d", "dtype"
  std::string_view summary;
  AxisValue default_value;
  std::vector<std::string_view> words;  ///< the legal words; empty for an integer axis
  int64_t min = 0;                      ///< smallest legal integer
  /// What tests use for a small odd size, a larger one, and one above the kernels' tiles; the last
  /// replaces missing ones. Empty: any primes.
  std::vector<int64_t> odd_sizes{};
};

/// Named list of values.
struct Axis {
  std::string name;
  std::vector<AxisValue> values;
};

/// Set of axes; the cases are their product, the last axis running fastest.
struct Sweep {
  std::string_view name;  ///< "quick", "full" or "ci"
  std::vector<Axis> axes;
};

/// One point: a value for every axis of the primitive, in the spec's order.
class Case {
 public:
  struct Entry {
    std::string name;
    AxisValue value;
    bool is_default = false;  ///< not named by the sweep or the user; left out when printed
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  Case() = default;
  Case(std::string op, std::vector<Entry> entries)
      : op_(std::move(op)), entries_(std::move(entries)) {}

  const std::string& op() const { return op_; }
  std::span<const Entry> entries() const { return entries_; }
  /// Throw invalid_argument where there is no such axis, or it holds the other kind of value.
  int64_t integer(std::string_view axis) const;
  const std::string& word(std::string_view axis) const;
  Dtype dtype() const;  ///< of the axis "dtype"
  /// "n=4 batch=16 d=256 dtype=fp32"
  std::string to_string() const;
  friend bool operator==(const Case&, const Case&) = default;

 private:
  std::string op_;
  std::vector<Entry> entries_;
};

/// Minimum work of the whole wide call, whatever the strategy.
struct Cost {
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;
  double items = 0;  ///< examples that members receive; 0: n * batch of the case's axes
  double bytes() const { return bytes_read + bytes_written; }
};

enum class StrategyKind : uint8_t {
  sequential,    ///< loops over members inside one wide call
  vendor,        ///< a vendor library's batched call
  hand_written,  ///< kernels of this repository
};
std::string_view to_string(StrategyKind kind);

/// Limits of a hand-written CUDA strategy on aligned, packed operands, as counted by the simulated
/// GPU: exceeding them is a defect. This is the performance gate where there is no GPU.
struct Traffic {
  /// Bytes requested from global memory over the operands' minimum; what a block requests after
  /// another one did is served by a cache and counted separately.
  double streamed = 1.05;
  double rereads = 0;         ///< the same for what another block requested before
  double bank_conflicts = 0;  ///< share of shared memory passes lost to conflicts
  /// Bytes determine the time: hardly more is requested of each large operand than it has, by the
  /// same measure for all such kernels (verify/catalog/traffic_test.cpp), on odd sizes, too.
  bool is_memory_bound = false;
};

/// A named way to run a primitive on one kind of device.
struct StrategyInfo {
  std::string_view name;
  DeviceType device = DeviceType::cuda;
  StrategyKind kind = StrategyKind::hand_written;
  std::string_view summary;
  Traffic traffic{};
  /// Names of all policies that may be asked for, if any: some of them run a problem.
  std::vector<std::string_view> policies{};
  bool keeps_infinities = true;  ///< else results of infinite operands may be NaN
  /// Of cases with channels last, by a kernel of their own; absent: as with channels first.
  std::optional<Traffic> traffic_channels_last{};
};

/// Fills after `specials` apply only to floats around zero: what has to keep its sign, such as a
/// variance, is uniform whatever the fill.
enum class Fill : uint8_t {
  uniform,     ///< floats uniform in [-1, 1], rounded to the dtype
  integers,    ///< small ones, so sparse that every partial sum is exact, and so must results be
  specials,    ///< uniform with a few NaNs and infinities, which must reach the results that the
               ///< reference says and no others
  normal,      ///< with uniform's bound as standard deviation
  trig,        ///< sines of the values' indices
  zeros,       ///< nothing but zeros: fast to compute, proves nothing
  cancelling,  ///< near-pairs (a, -a) in the first operand, pairs of equals in the others
  tiny,        ///< the first operand is subnormal or slightly larger
  wide_range,  ///< magnitudes from 2^-10 to 2^10 (2^-6 to 2^6 where bits are 16 or fewer) in the
               ///< first operand
  positive,    ///< uniform in [0, 1]: sums of one sign, whose errors add up if rounding is biased
};

/// How a workload's operands are laid out and filled. The defaults are what is timed; the rest is
/// for tests.
struct WorkloadOptions {
  uint64_t seed = 42;
  Fill fill = Fill::uniform;
  /// Contents of member i are those of member_ids[i]; empty: 0, 1, 2, ... Content depends on
  /// (seed, operand, id) only, so that members can be permuted and repeated.
  std::vector<int64_t> member_ids;
  /// All floating operands of this member are NaN, its ids out of range; -1: of none.
  int64_t poisoned_member = -1;
  int64_t misalign_elements = 0;  ///< operands start this many elements after a 256-byte boundary
  int64_t row_padding = 0;        ///< this many elements (NaN) between rows of every operand
};

/// A strategy ready to run. `run` only enqueues: no allocation, no synchronisation.
struct Prepared {
  std::function<void(const Execution&)> run;
  int64_t workspace_bytes = 0;
  std::string strategy;  ///< the one that "auto" chose, if asked for
  std::string policy;    ///< empty where the strategy has none
  std::string explain;
};

/// N separate single-member calls on separate contiguous operands, ready to run one by one.
struct PreparedMembers {
  std::function<void(int64_t member, const Execution&)> run;
  int64_t workspace_bytes = 0;
  std::string strategy{}, policy{}, explain{};  ///< of one call, where each is one plan's
  /// What all calls read, and what becomes of their results; absent: nothing.
  std::function<void(const Execution&)> before{}, after{};

  void run_before(const Execution& execution) const {
    if (before) before(execution);
  }
  void run_after(const Execution& execution) const {
    if (after) after(execution);
  }
  /// One after another on one stream.
  void run_all(int64_t num_members, const Execution& execution) const {
    run_before(execution);
    for (int64_t i = 0; i < num_members; ++i) run(i, execution);
    run_after(execution);
  }
};

/// Whose output: the wide call's packed one, or the baseline's separate ones.
enum class OutputOf : uint8_t { strategy, baseline };

/// The output member by member, each densely packed.
struct MemberOutputs {
  struct Member {
    int64_t rows = 0;
    int64_t row_length = 0;
    std::vector<std::byte> bytes;  ///< [rows, row_length]
    int64_t num_elements() const { return rows * row_length; }
    friend bool operator==(const Member&, const Member&) = default;
  };
  Dtype dtype = Dtype::fp32;
  std::vector<Member> members;
};

/// An input as a strategy receives it: packed, on its device.
struct WorkloadInput {
  std::string name;  ///< "weight"; the second of a name, in the order of arguments, is "weight.1"
  ConstTensorView tensor;
};

/// One problem with operands in place on one device.
class Workload {
 public:
  virtual ~Workload() = default;

  /// Why this strategy (or "auto") cannot run here; empty where it can.
  virtual std::string unsupported_reason(std::string_view strategy) const = 0;
  /// Builds plans, packs weights: everything that must not be timed. Throws what the plan throws.
  virtual Prepared prepare(const PlanOptions& options) = 0;
  Prepared prepare(std::string_view strategy) {
    return prepare(PlanOptions{.strategy = std::string(strategy)});
  }

  /// Why there is no baseline here; empty where there is.
  virtual std::string baseline_unsupported_reason() const { return ""; }
  virtual PreparedMembers prepare_members() = 0;

  virtual int64_t num_members() const = 0;
  /// Members of the output: all, or 1 where they are combined; one more has what is nobody's.
  virtual int64_t num_outputs() const { return num_members(); }
  virtual Cost cost() const = 0;
  /// Bytes of all operands that one call touches, for cache considerations.
  virtual int64_t footprint_bytes() const = 0;

  /// Valid for the workload's life.
  virtual std::vector<WorkloadInput> input_views() const = 0;
  /// Fills outputs with 0xFF bytes (NaN), gaps included.
  virtual void poison_outputs(OutputOf which, Stream stream) = 0;
  /// Waits for `stream`, then reads the outputs back.
  virtual MemberOutputs read_outputs(OutputOf which, Stream stream) = 0;
  /// Waits for `stream`; says which guard band or input was written to; empty where none was.
  virtual std::string damage(Stream stream) = 0;

  /// The shape of a member's output.
  virtual int64_t rows(int64_t member) const = 0;
  virtual int64_t row_length(int64_t member) const = 0;
  /// One row of one member's output in fp64 from the operands as rounded to their dtype, and for
  /// each value the largest error |got - value| that passes. Shares no code with any strategy.
  virtual void reference_row(int64_t member, int64_t row, std::span<double> values,
                             std::span<double> tolerances) const = 0;
  /// Each block of this many rows shares cached state. Once one row of a block is computed, the
  /// others may be computed concurrently. 0: all rows of the member.
  virtual int64_t reference_rows_together() const { return 0; }
  /// Limit on a member's sum of squared errors relative to its sum of squared outputs; infinite:
  /// none. Bounds on single errors grow with a sum's length, and would let long sums of a lower
  /// precision pass.
  virtual double mean_square_limit() const { return std::numeric_limits<double>::infinity(); }
  /// Operations of one reference_row, the longest, for bounding the time that verification takes.
  virtual double reference_row_flops() const = 0;
};

struct PrimitiveSpec {
  std::string_view name;
  std::string_view summary;
  /// Raised when what is computed or counted changes: older results no longer compare.
  int version = 1;
  std::vector<AxisInfo> axes;
  std::vector<StrategyInfo> strategies;
  std::vector<Sweep> sweeps;
  bool joins_members = false;  ///< one output combines all members
  std::string_view tolerance_formula;
  /// The largest share of zeros among honest outputs: where more are expected, a check proves
  /// little, since zeros alone would pass it.
  double trusted_zeros = 0.3;
  /// Why the problem cannot exist ("12 heads do not divide 256"); empty where it can.
  std::function<std::string(const Case&)> impossible_reason = [](const Case&) {
    return std::string();
  };
  /// The case's key in a tuning cache; empty for models, whose steps have their own keys.
  std::function<TuningKey(const Case&)> tuning_key{};
  std::function<std::unique_ptr<Workload>(const Context&, const Case&, const WorkloadOptions&)>
      make_workload;
};

/// Every primitive of the library, in the order in which tools list them.
std::span<const PrimitiveSpec* const> primitives();
/// Finds primitives, and models under their names: "model:resnet18". Throws invalid_argument with
/// the nearest names.
const PrimitiveSpec& find_primitive(std::string_view name);
/// Models, measured and checked like primitives: the named ones and those that were added.
std::vector<const PrimitiveSpec*> models();
/// Makes a graph available as "model:NAME". Throws invalid_argument where the name is
/// taken.
const PrimitiveSpec& add_model(const std::string& name, Graph graph);
/// The graph of a model's case. Throws invalid_argument for a primitive's.
Graph model_graph(const Case& point);
/// Throws invalid_argument with the known names.
const Sweep& find_sweep(const PrimitiveSpec& spec, std::string_view name);
/// A case from "axis", value pairs over the spec's defaults. Throws invalid_argument for unknown
/// axes and illegal values, with the nearest names.
Case make_case(const PrimitiveSpec& spec,
               std::span<const std::pair<std::string, AxisValue>> values);

/// "unknown op "linaer", did you mean linear?", or all known names where none is near.
std::string unknown_name_message(std::string_view what, std::string_view name,
                                 std::span<const std::string_view> known);

}  // namespace wide::catalog
