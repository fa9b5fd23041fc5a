// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// embedding for bench and verify: axes, sweeps, strategies, operands, reference, cost.
#include <algorithm>
#include <cmath>
#include <limits>

#include "host/embedding/embedding_problem.hpp"
#include "host/embedding/quantized_rows.hpp"
#include "host/operand_values.hpp"
#include "host/plan_workload.hpp"
#include "host/specs.hpp"
#include "wide/convert.hpp"
#include "wide/embedding.hpp"

namespace wide::catalog {

namespace {

EmbeddingProblem problem_of(const Case& point) {
  EmbeddingProblem p;
  p.num_members = point.integer("n");
  p.bag = *parse_bag(point.word("bag"));
  p.batch = point.integer("batch");
  p.seq = point.integer("seq") * (p.bag == Bag::none ? 1 : p.batch);
  p.vocab = point.integer("vocab");
  p.dim = point.integer("dim");
  p.dtype = point.dtype();
  p.id_dtype = *parse_dtype(point.word("id_dtype"));
  p.shared_ids = point.word("ids") == "shared";
  p.table_format = *parse_weight_format(point.word("weights"));
  return p;
}

std::string impossible_reason(const Case& point) {
  const bool computes = point.word("weights") != "packed" || point.word("bag") != "none";
  return computes && is_fp8(point.dtype()) ? "quantised tables and bags give fp32, fp16 or bf16"
                                           : "";
}

Distribution ids_of(const Case& point, int64_t vocab) {
  const std::string& fill = point.word("fill");
  return fill == "zipf"         ? Distribution::zipf_ids(vocab)
         : fill == "duplicates" ? Distribution::few_ids(vocab)
                                : Distribution::ids(vocab);
}

/// Whole numbers for integer fills, in every table format: bags of these have exact sums.
Distribution elements_of(Fill fill) {
  return fill == Fill::integers ? Distribution::integers(-8, 8) : Distribution::uniform();
}

/// A member's quantised table: one blob of bytes.
void fill_table(const EmbeddingProblem& p, const Distribution& from, uint64_t key, bool is_poisoned,
                std::span<std::byte> bytes) {
  const int64_t row_bytes = quantized_row_bytes(p.dim);
  std::vector<double> drawn(static_cast<size_t>(p.dim));
  std::vector<float> row(drawn.size());
  for (int64_t v = 0; v < p.vocab; ++v) {
    draw_values(from, key, v * p.dim, drawn);
    for (size_t d = 0; d < row.size(); ++d) {
      row[d] = is_poisoned ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(drawn[d]);
    }
    encode_table_row(p.table_format, row, reinterpret_cast<uint8_t*>(bytes.data()) + v * row_bytes);
  }
}

/// Bags of T ids each, members' own ones with bounds up to T / 2 earlier or later: some are empty.
/// A poisoned member has none that lie among the ids.
void fill_offsets(const EmbeddingProblem& p, uint64_t key, bool is_poisoned,
                  std::span<std::byte> bytes) {
  const int64_t length = p.batch == 0 ? 0 : p.seq / p.batch;
  for (int64_t b = 0; b <= p.batch; ++b) {
    const bool is_inside = b > 0 && b < p.batch && !p.shared_ids;
    const auto random = static_cast<int64_t>(random_bits(key, static_cast<uint64_t>(b)) >> 1);
    const int64_t jitter = is_inside ? random % (length + 1) - length / 2 : 0;
    const int64_t offset = is_poisoned ? -1 : b * length + jitter;
    store_element(bytes.data(), p.id_dtype, b, static_cast<double>(offset));
  }
}

class EmbeddingWorkload final : public PlanWorkload<describe_embedding, make_embedding_plan> {
 public:
  EmbeddingWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options),
        ids_(add_ids(point)),
        offsets_(like().bag == Bag::none ? nullptr : &add_offsets()),
        table_(add_table()),
        y_(add_operand(operands::embedding_y, like().dtype, y_shape(), Distribution::none())),
        rows_read_(count_rows_read()) {}

  /// Rows that are gathered twice need reading once.
  Cost cost() const override {
    const auto n = static_cast<double>(like().num_members);
    const auto ids =
        static_cast<double>(like().bag == Bag::none ? like().batch * like().seq : like().seq);
    const auto row_bytes =
        static_cast<double>(table_elements() * dtype_bytes(table_.description().dtype));
    const double indices = bytes_of({&ids_, offsets_});
    const bool adds = like().bag != Bag::none;
    return {adds ? n * ids * static_cast<double>(like().dim) : 0, rows_read_ * row_bytes + indices,
            bytes_of({&y_})};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    if (like().bag != Bag::none) return reference_bag(member, row, values, tolerances);
    const auto id = static_cast<int64_t>(ids_.values(member)[static_cast<size_t>(row)]);
    const bool exists = id >= 0 && id < like().vocab;
    const bool is_packed = like().table_format == WeightFormat::packed;
    for (size_t d = 0; d < values.size(); ++d) {
      values[d] = exists ? stored(member, id, d) : std::numeric_limits<double>::quiet_NaN();
      tolerances[d] = is_packed || !exists ? 0
                                           : unit_roundoff(like().dtype) * std::fabs(values[d]) +
                                                 min_subnormal(like().dtype);
    }
  }
  double reference_row_flops() const override {
    const int64_t rows =
        like().bag == Bag::none ? 1 : 1 + like().seq / std::max<int64_t>(1, like().batch);
    return static_cast<double>(like().dim * rows);
  }

 private:
  EmbeddingArguments arguments(const OperandViews& view) const override {
    return {view(ids_), with_rows(view(table_)), view(y_), view(offsets_)};
  }
  /// A member's own ids are all that there are: as if it shared them.
  EmbeddingArguments member_arguments(int64_t n) const override {
    EmbeddingArguments own = arguments(OperandViews(n));
    own.ids = ids_.member(n);
    if (offsets_ != nullptr) own.offsets = offsets_->member(n);
    return own;
  }
  EmbeddingProblem member_like() const override {
    EmbeddingProblem one = PlanWorkload::member_like();
    one.shared_ids = true;
    return one;
  }

  Shape y_shape() const {
    if (like().bag != Bag::none) return {like().batch, like().dim};
    return {like().batch, like().seq, like().dim};
  }
  int64_t table_elements() const {
    return like().table_format == WeightFormat::packed ? like().dim
                                                       : quantized_row_bytes(like().dim);
  }

  Operand& add_ids(const Case& point) {
    const Distribution ids = ids_of(point, like().vocab);
    if (like().bag == Bag::none) {
      return add_operand(operands::embedding_ids, like().id_dtype, {like().batch, like().seq}, ids,
                         like().shared_ids);
    }
    return add_operand(operands::embedding_bag_ids, like().id_dtype, {like().seq}, ids,
                       like().shared_ids);
  }

  Operand& add_offsets() {
    Operand::Description description;
    description.packing = operands::embedding_offsets;
    description.dtype = like().id_dtype;
    description.member_shape = {like().batch + 1};
    description.is_shared = like().shared_ids;
    description.contents = [p = like(), seed = options().seed](int64_t id, bool is_poisoned,
                                                               std::span<std::byte> bytes) {
      fill_offsets(p, stream_key(seed, operands::embedding_offsets.name, 0, id), is_poisoned,
                   bytes);
    };
    return add_operand(std::move(description));
  }

  Operand& add_table() {
    if (like().table_format == WeightFormat::packed) {
      return add_operand(operands::embedding_table, like().dtype, {like().vocab, like().dim},
                         elements_of(options().fill));
    }
    Operand::Description description;
    description.packing = operands::embedding_quantized_table;
    description.dtype = Dtype::uint8;
    description.member_shape = {like().vocab * quantized_row_bytes(like().dim)};
    description.granule = 16;
    const Fill fill = options().fill;
    description.contents = [p = like(), from = shaped(elements_of(fill), fill, Dtype::fp32, false),
                            seed = options().seed](int64_t id, bool is_poisoned,
                                                   std::span<std::byte> bytes) {
      fill_table(p, from, stream_key(seed, operands::embedding_table.name, 0, id), is_poisoned,
                 bytes);
    };
    return add_operand(std::move(description));
  }

  /// Blobs as [N, V, row bytes].
  ConstTensorView with_rows(const TensorView& table) const {
    if (like().table_format == WeightFormat::packed) return table;
    const int64_t row = table_elements();
    return TensorView(table.data, table.dtype, {table.shape[0], like().vocab, row},
                      Strides{table.strides[0], row, 1}, table.device);
  }

  /// Distinct rows, of all members.
  double count_rows_read() const {
    const int64_t sets = like().shared_ids ? 1 : num_members();
    int64_t rows = 0;
    for (int64_t n = 0; n < sets; ++n) {
      std::vector<double> ids(ids_.values(n).begin(), ids_.values(n).end());
      std::sort(ids.begin(), ids.end());
      rows += std::unique(ids.begin(), ids.end()) - ids.begin();
    }
    return static_cast<double>(rows * (num_members() / sets));
  }

  /// An element of a member's table as it is stored.
  double stored(int64_t member, int64_t id, size_t d) const {
    const auto table = table_.values(member);
    const auto row = static_cast<size_t>(id * table_elements());
    if (like().table_format == WeightFormat::packed) return table[row + d];
    const auto last = row + static_cast<size_t>(table_elements());
    const uint32_t scale =
        static_cast<uint32_t>(table[last - 1]) << 8 | static_cast<uint32_t>(table[last - 2]);
    const auto code = static_cast<uint8_t>(table[row + d]);
    const double value = like().table_format == WeightFormat::int8
                             ? code - 128.0
                             : load_element(&code, Dtype::fp8_e4m3, 0);
    return static_cast<double>(bf16_to_float(static_cast<uint16_t>(scale))) * value;
  }

  /// Every addition rounds the sum so far: by u times the sum of magnitudes each, or not at all for
  /// whole numbers.
  void reference_bag(int64_t member, int64_t bag, std::span<double> values,
                     std::span<double> tolerances) const {
    constexpr double u = unit_roundoff(Dtype::fp32);
    const double u_sum = options().fill == Fill::integers ? 0 : u;
    const auto offsets = offsets_->values(member);
    const auto first = static_cast<size_t>(offsets[static_cast<size_t>(bag)]);
    const auto last = static_cast<size_t>(offsets[static_cast<size_t>(bag) + 1]);
    const auto count = static_cast<double>(last - first);
    std::fill(values.begin(), values.end(), 0.0);
    std::fill(tolerances.begin(), tolerances.end(), 0.0);
    const auto ids = ids_.values(member);
    for (size_t l = first; l < last; ++l) {
      for (size_t d = 0; d < values.size(); ++d) {
        const double element = stored(member, static_cast<int64_t>(ids[l]), d);
        values[d] += element;
        tolerances[d] += std::fabs(element);
      }
    }
    const double divisor = like().bag == Bag::mean && count > 0 ? count : 1;
    for (size_t d = 0; d < values.size(); ++d) {
      values[d] /= divisor;
      tolerances[d] = (count * u_sum * tolerances[d]) / divisor +
                      (2 * u + unit_roundoff(like().dtype)) * std::fabs(values[d]) +
                      min_subnormal(like().dtype);
    }
  }

  const Operand& ids_;
  const Operand* offsets_;
  const Operand& table_;
  const Operand& y_;
  double rows_read_;
};

std::vector<AxisInfo> axes() {
  return {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "batch rows B", int64_t{8}, {}, 0},
      {"seq", "ids per batch row T", int64_t{128}, {}, 0},
      {"vocab", "rows per table V", int64_t{1000}, {}, 1},
      {"dim", "elements per row D", int64_t{256}, {}, 0},
      {"dtype",
       "of packed tables and y",
       "fp32",
       {"fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"},
       0},
      {"ids", "one set for all members, or one each", "shared", {"shared", "own"}, 0},
      {"id_dtype", "of ids", "int64", {"int64", "int32"}, 0},
      {"weights",
       "how tables are stored: quantised rows have a scale each",
       "packed",
       {"packed", "fp8_e4m3", "int8"},
       0},
      {"bag", "of T ids each, what becomes of its rows", "none", words_of(kAllBags, bag_name)},
      {"fill",
       "of ids: any, four different ones, or such that the k-th is 1/k as frequent as the first",
       "uniform",
       {"uniform", "duplicates", "zipf"},
       0}};
}

std::vector<StrategyInfo> strategies() {
  using enum DeviceType;
  using enum StrategyKind;
  // Bound by memory, but above the limit for such kernels: ids repeat, and so do rows; in the
  // preset ci 1024 ids of a member refer to 1000 rows. Where ids hardly repeat, packed rows keep
  // the limit, and quantised ones, which begin at any 16 bytes of a sector and end in a scale that
  // is requested separately, 1.25.
  return {{"sequential", cuda, sequential, "indexed's or bag's kernel, one launch per member"},
          {"indexed",
           cuda,
           hand_written,
           "one launch: 16-byte gathers, four rows in flight per group of lanes",
           {.streamed = 1.11, .rereads = 0.23}},
          {"gather",
           cuda,
           hand_written,
           "the same, an id looked at once for four members' rows: ids that they share",
           {.streamed = 1.08, .rereads = 0.23}},
          {"bag",
           cuda,
           hand_written,
           "one launch: bags added up, a group of lanes each, four rows in flight",
           {.streamed = 1.34, .rereads = 0.49}},
          {"sequential", cpu, sequential, "member after member, each threaded"},
          {"wide", cpu, hand_written, "all members' rows over all threads at once"}};
}

std::vector<Sweep> sweeps() {
  const auto sizes = [](std::vector<AxisValue> n) {
    return std::vector<Axis>{{"n", std::move(n)},
                             {"batch", ints({8})},
                             {"vocab", ints({1000})},
                             {"dim", ints({256})},
                             {"seq", ints({128})}};
  };
  return {{"quick", sizes(ints({4, 8, 16, 32}))},
          {"full",
           {{"n", ints({2, 4, 8, 16, 32, 64})},
            {"batch", ints({4, 8, 16, 32})},
            {"vocab", ints({1000, 10000, 50000})},
            {"dim", ints({128, 256, 512})},
            {"seq", ints({64, 128, 256})}}},
          {"ci", sizes(ints({4, 16}))}};
}

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "embedding";
  spec.summary =
      "y[b, t, n, :] = table[n, ids, :], rows of N tables gathered, or bags of them, in one call";
  spec.version = 2;  // rows that are read are counted, not estimated
  spec.axes = axes();
  spec.strategies = strategies();
  spec.sweeps = sweeps();
  spec.tolerance_formula =
      "packed rows 0: they are copied bit for bit; quantised ones u_out |y| + min_subnormal; of "
      "bags of count rows 2^-24 count sum |row| (/ count) + (2^-23 + u_out) |y| + min_subnormal";
  spec.impossible_reason = impossible_reason;
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<EmbeddingWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& embedding_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
