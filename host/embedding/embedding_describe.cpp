// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What operands show of a problem, and which problems are legal.
#include <utility>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/text.hpp"
#include "host/embedding/embedding_problem.hpp"

namespace wide {

namespace {

struct Field {
  const char* name;
  int64_t EmbeddingProblem::*value;
};
constexpr Field kSizes[] = {{"num_members", &EmbeddingProblem::num_members},
                            {"batch", &EmbeddingProblem::batch},
                            {"seq", &EmbeddingProblem::seq},
                            {"vocab", &EmbeddingProblem::vocab},
                            {"dim", &EmbeddingProblem::dim}};

/// Requires sizes whose products, and so offsets, fit in 64 bits.
void require_countable(const EmbeddingProblem& p) {
  const int64_t rows_of_a_batch = p.bag == Bag::none ? p.seq : 1;
  (void)checked_bytes({p.num_members, p.vocab, p.dim}, dtype_bytes(p.dtype));
  (void)checked_bytes({p.num_members, p.vocab, row_elements(p)}, 1);
  (void)checked_bytes({p.batch, rows_of_a_batch, p.num_members, p.dim}, dtype_bytes(p.dtype));
  (void)checked_bytes({p.num_members, p.seq}, dtype_bytes(p.id_dtype));
}

void require_legal(const EmbeddingProblem& p) {
  for (const Field& field : kSizes) {
    const int64_t least = field.value == &EmbeddingProblem::num_members ? 1 : 0;
    require_at_least("embedding", field.name, p.*field.value, least);
  }
  require_enumerator("embedding", "dtype", p.dtype, kAllDtypes.back());
  require_enumerator("embedding", "bag", p.bag, kAllBags.back());
  require_enumerator("embedding", "table_format", p.table_format, kAllWeightFormats.back());
  WIDE_REQUIRE(p.table_format == WeightFormat::packed || p.table_format == WeightFormat::fp8_e4m3 ||
                   p.table_format == WeightFormat::int8,
               "embedding: table_format is " + std::string(weight_format_name(p.table_format)) +
                   ", expected packed, fp8_e4m3 or int8");
  const bool computes = p.table_format != WeightFormat::packed || p.bag != Bag::none;
  WIDE_REQUIRE(
      !computes || p.dtype == Dtype::fp32 || p.dtype == Dtype::fp16 || p.dtype == Dtype::bf16,
      "embedding: dtype is " + std::string(dtype_name(p.dtype)) +
          ", expected fp32, fp16 or bf16 for quantised tables and bags");
  require_padding_id(p.padding_id, p.vocab);
  WIDE_REQUIRE(p.bag == Bag::none || !p.checked,
               "embedding: checked is set, expected not with bags: theirs are NaN");
  if (!(p.max_norm == 0)) {
    throw_unsupported("embedding: max_norm is " + text(p.max_norm) +
                      ", expected 0: looking rows up would rewrite rows that others read; scale "
                      "them down before prepare_weights()");
  }
  WIDE_REQUIRE(p.id_dtype == Dtype::int32 || p.id_dtype == Dtype::int64,
               "embedding: id_dtype is " + std::string(dtype_name(p.id_dtype)) +
                   ", expected int32 or int64");
  require_countable(p);
}

int64_t packed_batch_stride(const EmbeddingProblem& p) {
  if (p.bag != Bag::none) return 0;
  return p.shared_ids ? p.seq : p.num_members * p.seq;
}

}  // namespace

void require_padding_id(int64_t padding_id, int64_t vocab) {
  WIDE_REQUIRE(padding_id >= -1 && padding_id < vocab,
               "embedding: padding_id is " + std::to_string(padding_id) +
                   ", expected -1 or an id below vocab = " + std::to_string(vocab));
}

int64_t row_elements(const EmbeddingProblem& p) {
  return p.table_format == WeightFormat::packed ? p.dim : quantized_row_bytes(p.dim);
}

EmbeddingProblem resolved(EmbeddingProblem p) {
  require_legal(p);
  const bool has_bags = p.bag != Bag::none;
  const int64_t rows = has_bags ? p.batch : p.batch * p.seq, elements = row_elements(p);
  p.y = complete_strides(name_of(kEmbeddingName, "y"), p.y, packed_rows(p.num_members, p.dim), rows,
                         p.num_members, p.dim);
  p.table =
      complete_strides(name_of(kEmbeddingName, "table"), p.table, {elements, p.vocab * elements},
                       p.vocab, p.num_members, p.vocab * elements);
  const auto complete = [&](const char* field, int64_t& stride, bool is_stepped, int64_t steps,
                            int64_t count) {
    const ArgumentName name = name_of(kEmbeddingName, field);
    stride = is_stepped ? complete_stride(name, stride, steps, count) : 0;
  };
  complete("ids_batch_stride", p.ids_batch_stride, !has_bags, p.batch, packed_batch_stride(p));
  complete("ids_member_stride", p.ids_member_stride, !p.shared_ids, p.num_members, p.seq);
  complete("offsets_member_stride", p.offsets_member_stride, has_bags && !p.shared_ids,
           p.num_members, p.batch + 1);
  return p;
}

static std::string text(Bag bag) {
  return text(bag_name(bag));
}
static std::string text(WeightFormat format) {
  return text(weight_format_name(format));
}

constexpr auto kEmbeddingFields = [](const auto& same, const EmbeddingProblem& got,
                                     const EmbeddingProblem& plan) {
  for (const Field& field : kSizes) same(field.name, got.*field.value, plan.*field.value);
  same("dtype", got.dtype, plan.dtype);
  same("id_dtype", got.id_dtype, plan.id_dtype);
  same("stride of y", got.y, plan.y);
  same("stride of table", got.table, plan.table);
  same("batch stride of ids", got.ids_batch_stride, plan.ids_batch_stride);
  same("member stride of ids", got.ids_member_stride, plan.ids_member_stride);
  same("member stride of offsets", got.offsets_member_stride, plan.offsets_member_stride);
  same("shared_ids", got.shared_ids, plan.shared_ids);
  same("checked", got.checked, plan.checked);
  same("table_format", got.table_format, plan.table_format);
  same("bag", got.bag, plan.bag);
  same("padding_id", got.padding_id, plan.padding_id);
  same("max_norm", got.max_norm, plan.max_norm);
};

void require_same(const EmbeddingProblem& got, const EmbeddingProblem& plan) {
  require_same_problem(kEmbeddingName, got, plan, kEmbeddingFields);
}
std::string problem_key(const EmbeddingProblem& complete) {
  return key_of_fields(complete, kEmbeddingFields);
}
TuningKey tuning_key(const EmbeddingProblem& problem) {
  return {std::string(kEmbeddingName), problem_key(resolved(problem))};
}

namespace {

/// [N, V, D], or quantised rows: sizes and strides of the table.
void describe_table(const ConstTensorView& table, int64_t dim, EmbeddingProblem& p) {
  const bool is_packed = p.table_format == WeightFormat::packed;
  WIDE_REQUIRE(table.rank() == 3, "embedding: table is " + to_string(table.shape) +
                                      ", expected [num_members, vocab, dim]");
  p.num_members = table.shape[0];
  p.vocab = table.shape[1];
  p.dim = is_packed ? table.shape[2] : dim;
  if (!is_packed) {
    WIDE_REQUIRE(dim >= 0 && dim <= table.shape[2],
                 "embedding: dim is " + std::to_string(dim) +
                     ", expected 0 up to the bytes of a row of table " + to_string(table.shape));
    require_dtype(kEmbeddingName, "table", table, Dtype::uint8);
    require_shape(kEmbeddingName, "table", table, "[num_members, vocab, quantized_row_bytes(dim)]",
                  {p.num_members, p.vocab, quantized_row_bytes(dim)});
  }
  const int64_t elements = table.shape[2];
  WIDE_REQUIRE(elements <= 1 || table.strides[2] == 1,
               "embedding: table has strides " + to_string(table.strides) +
                   ", expected contiguous rows: a last stride of 1");
  // Strides that nothing steps along are given their packed value, so that equal layouts are equal.
  p.table = {p.vocab <= 1 || elements == 0 ? elements : table.strides[1],
             p.num_members <= 1 || p.vocab * elements == 0 ? p.vocab * elements : table.strides[0]};
  constexpr int64_t kAlignment = 16;
  WIDE_REQUIRE(is_packed || table.span_bytes() == 0 ||
                   ((p.table.row | p.table.member) % kAlignment == 0 &&
                    reinterpret_cast<uintptr_t>(table.data) % kAlignment == 0),
               "embedding: table has strides " + to_string(table.strides) +
                   " or an address that are not multiples of 16 bytes, expected aligned rows");
}

/// [B, T] or [B, N, T].
void describe_ids(const ConstTensorView& ids, EmbeddingProblem& p) {
  const int rank = p.shared_ids ? 2 : 3;
  WIDE_REQUIRE(ids.rank() == rank, "embedding: ids is " + to_string(ids.shape) + ", expected " +
                                       (p.shared_ids ? "[batch, seq], shared by all members"
                                                     : "[batch, num_members, seq]"));
  WIDE_REQUIRE(p.shared_ids || ids.shape[1] == p.num_members,
               "embedding: ids is " + to_string(ids.shape) +
                   ", expected [batch, num_members, seq] with num_members = " +
                   std::to_string(p.num_members));
  p.batch = ids.shape[0];
  p.seq = ids.shape[rank - 1];
  p.id_dtype = ids.dtype;
  WIDE_REQUIRE(p.seq <= 1 || ids.strides[rank - 1] == 1,
               "embedding: ids has strides " + to_string(ids.strides) +
                   ", expected contiguous positions: a last stride of 1");
  p.ids_batch_stride = p.batch <= 1 || p.seq == 0 ? packed_batch_stride(p) : ids.strides[0];
  if (!p.shared_ids) {
    p.ids_member_stride = p.num_members <= 1 || p.seq == 0 ? p.seq : ids.strides[1];
  }
}

/// Ids or offsets of bags, [count] or [N, count]: their count; sets the member stride.
int64_t describe_run(const char* name, const ConstTensorView& view, const EmbeddingProblem& p,
                     int64_t& member_stride) {
  const ArgumentName text = name_of(kEmbeddingName, name);
  const int rank = p.shared_ids ? 1 : 2;
  WIDE_REQUIRE(view.rank() == rank && (p.shared_ids || view.shape[0] == p.num_members),
               text + " is " + to_string(view.shape) + ", expected " +
                   (p.shared_ids ? "[count], shared by all members"
                                 : "[num_members, count] with num_members = " +
                                       std::to_string(p.num_members)));
  const int64_t count = view.shape[rank - 1];
  WIDE_REQUIRE(count <= 1 || view.strides[rank - 1] == 1,
               text + " has strides " + to_string(view.strides) + ", expected a last stride of 1");
  if (!p.shared_ids) member_stride = p.num_members <= 1 || count == 0 ? count : view.strides[0];
  return count;
}

void describe_bags(const EmbeddingArguments& a, EmbeddingProblem& p) {
  p.seq = describe_run("ids", a.ids, p, p.ids_member_stride);
  p.id_dtype = a.ids.dtype;
  const int64_t offsets = describe_run("offsets", a.offsets, p, p.offsets_member_stride);
  WIDE_REQUIRE(offsets >= 1, "embedding: offsets is " + to_string(a.offsets.shape) +
                                 ", expected one more than there are bags");
  p.batch = offsets - 1;
  require_dtype(kEmbeddingName, "offsets", a.offsets, p.id_dtype);
}

}  // namespace

EmbeddingProblem describe_embedding(const EmbeddingArguments& a, const EmbeddingProblem& like) {
  EmbeddingProblem p;
  p.shared_ids = like.shared_ids;
  p.checked = like.checked;
  p.table_format = like.table_format;
  p.bag = like.bag;
  p.padding_id = like.padding_id;
  p.max_norm = like.max_norm;
  describe_table(a.table, like.dim, p);
  const bool has_bags = p.bag != Bag::none, is_packed = p.table_format == WeightFormat::packed;
  p.dtype = is_packed ? a.table.dtype : a.y.dtype;
  WIDE_REQUIRE(has_bags || a.offsets.is_absent(),
               "embedding: offsets is present, expected none without bags");
  if (has_bags) {
    describe_bags(a, p);
  } else {
    describe_ids(a.ids, p);
  }
  require_legal(p);

  const MemberRows y = member_rows(kEmbeddingName, "y", a.y, p.num_members, p.dim);
  WIDE_REQUIRE(y.rows == (has_bags ? p.batch : p.batch * p.seq),
               "embedding: y is " + to_string(a.y.shape) + ", expected " +
                   (has_bags ? "[bags, num_members * dim] = " +
                                   to_string(Shape{p.batch, p.num_members * p.dim})
                             : "[batch, seq, num_members * dim] = " +
                                   to_string(Shape{p.batch, p.seq, p.num_members * p.dim})));
  require_disjoint_rows(kEmbeddingName, "y", y, p.num_members, p.dim);
  p.y = y.strides;
  require_dtype(kEmbeddingName, "y", a.y, p.dtype);
  for (const auto& [view, name] :
       {std::pair{a.ids, "ids"}, {a.table, "table"}, {a.offsets, "offsets"}}) {
    if (view.is_absent()) continue;
    require_device(kEmbeddingName, name, view, a.y.device);
    require_own_memory(kEmbeddingName, "y", a.y, name, view);
  }
  return p;
}

}  // namespace wide
