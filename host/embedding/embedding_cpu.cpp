// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's gather: rows of y in order, a memcpy each, or decoded, or added up in floats.
// `wide` spreads all rows of all members over the threads at once, `sequential` the rows of one
// member after another.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "host/core/parallel.hpp"
#include "host/core/row_cpu.hpp"
#include "host/core/vectorised.hpp"
#include "host/embedding/embedding_run.hpp"
#include "host/embedding/quantized_rows.hpp"
#include "kernels/embedding/embedding_params.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int64_t kBytesPerTask = 1 << 16;  // some ten microseconds of copying

int64_t load_index(const void* from, Dtype dtype, int64_t index) {
  return dtype == Dtype::int64 ? static_cast<const int64_t*>(from)[index]
                               : static_cast<const int32_t*>(from)[index];
}

class Gather {
 public:
  Gather(const EmbeddingProblem& problem, const EmbeddingArguments& arguments,
         kernels::EmbeddingReport* report)
      : p_(problem), a_(arguments), report_(report), row_bytes_(p_.dim * dtype_bytes(p_.dtype)) {}

  int64_t row_bytes() const { return row_bytes_; }

  int64_t id_at(int64_t position, int64_t member) const {
    const int64_t b = position / p_.seq;
    return load_index(a_.ids.data, p_.id_dtype,
                      b * p_.ids_batch_stride + member * p_.ids_member_stride + position % p_.seq);
  }

  void copy_row(int64_t position, int64_t member) const {
    char* to = target(position, member);
    const int64_t id = id_at(position, member);
    if (id < 0 || id >= p_.vocab) {
      std::memset(to, 0xff, static_cast<size_t>(row_bytes_));
      note(static_cast<uint64_t>(position * p_.num_members + member));
      return;
    }
    if (id == p_.padding_id) {
      std::memset(to, 0, static_cast<size_t>(row_bytes_));
    } else if (p_.table_format == WeightFormat::packed) {
      std::memcpy(to, table_row(id, member), static_cast<size_t>(row_bytes_));
    } else {
      for_each_chunk([&](int64_t first, int64_t count) {
        float buffer[cpu::kRowChunk];
        write_chunk(to, first, read_chunk(id, member, first, count, buffer), count);
      });
    }
  }

  void add_bag(int64_t bag, int64_t member) const {
    const int64_t place = member * p_.offsets_member_stride + bag;
    const int64_t begin = load_index(a_.offsets.data, p_.id_dtype, place),
                  end = load_index(a_.offsets.data, p_.id_dtype, place + 1);
    const auto id_of = [&](int64_t l) {
      return load_index(a_.ids.data, p_.id_dtype, member * p_.ids_member_stride + l);
    };
    bool is_broken = begin < 0 || end > p_.seq || begin > end;
    int64_t num_rows = 0;
    for (int64_t l = begin; !is_broken && l < end; ++l) {
      const int64_t id = id_of(l);
      is_broken = id < 0 || id >= p_.vocab;
      if (id != p_.padding_id) ++num_rows;
    }
    char* to = target(bag, member);
    if (is_broken) {
      std::memset(to, 0xff, static_cast<size_t>(row_bytes_));
      return;
    }
    const float factor =
        p_.bag == Bag::mean && num_rows > 0 ? 1.0f / static_cast<float>(num_rows) : 1.0f;
    for_each_chunk([&](int64_t first, int64_t count) {
      float sums[cpu::kRowChunk] = {}, buffer[cpu::kRowChunk];
      for (int64_t l = begin; l < end; ++l) {
        if (id_of(l) == p_.padding_id) continue;
        const float* row = read_chunk(id_of(l), member, first, count, buffer);
        for (int64_t d = 0; d < count; ++d) sums[d] += row[d];
      }
      for (int64_t d = 0; d < count; ++d) sums[d] *= factor;
      write_chunk(to, first, sums, count);
    });
  }

 private:
  char* target(int64_t row, int64_t member) const {
    return static_cast<char*>(a_.y.data) +
           (row * p_.y.row + member * p_.y.member) * dtype_bytes(p_.dtype);
  }

  const char* table_row(int64_t id, int64_t member) const {
    return static_cast<const char*>(a_.table.data) +
           (member * p_.table.member + id * p_.table.row) * dtype_bytes(a_.table.dtype);
  }

  /// f(first, count): the elements of a row, as many at a time as fit on the stack.
  template <class F>
  void for_each_chunk(const F& f) const {
    for (int64_t first = 0; first < p_.dim; first += cpu::kRowChunk) {
      f(first, std::min(cpu::kRowChunk, p_.dim - first));
    }
  }

  /// Elements [first, first + count) of a table's row, where they lie or in `buffer`.
  const float* read_chunk(int64_t id, int64_t member, int64_t first, int64_t count,
                          float* buffer) const {
    const char* from = table_row(id, member);
    if (p_.table_format != WeightFormat::packed) {
      decode_table_row(p_.table_format, reinterpret_cast<const uint8_t*>(from), p_.dim, first,
                       {buffer, static_cast<size_t>(count)});
      return buffer;
    }
    const float* values = nullptr;
    call_vectorised([&] { values = cpu::chunk_of(p_.dtype, from, first, count, buffer); });
    return values;
  }

  void write_chunk(char* row, int64_t first, const float* values, int64_t count) const {
    call_vectorised(
        [&] { encode_row(p_.dtype, values, row + first * dtype_bytes(p_.dtype), count); });
  }

  void note(uint64_t place) const {
    if (report_ == nullptr) return;
    std::atomic_ref<uint64_t> lowest(report_->place);
    uint64_t seen = lowest.load(std::memory_order_relaxed);
    while (place < seen && !lowest.compare_exchange_weak(seen, place, std::memory_order_relaxed)) {
    }
  }

  const EmbeddingProblem& p_;
  const EmbeddingArguments& a_;
  kernels::EmbeddingReport* report_;
  int64_t row_bytes_;
};

}  // namespace

void run_embedding_cpu(const Context& context, const EmbeddingProblem& problem,
                       EmbeddingStrategy strategy, const EmbeddingArguments& arguments,
                       const Execution& execution) {
  kernels::EmbeddingReport* report = nullptr;
  if (problem.checked) {
    report = static_cast<kernels::EmbeddingReport*>(execution.workspace.data);
    *report = {};
  }
  const Gather gather(problem, arguments, report);
  const bool has_bags = problem.bag != Bag::none;
  const int64_t rows = has_bags ? problem.batch : problem.batch * problem.seq;
  const int64_t rows_read = has_bags ? 1 + problem.seq / std::max<int64_t>(1, rows) : 1;
  const bool is_wide = strategy == EmbeddingStrategy::wide;
  const int64_t members_at_once = is_wide ? problem.num_members : 1;
  const int64_t step = std::max<int64_t>(
      1, kBytesPerTask / std::max<int64_t>(1, gather.row_bytes() * rows_read * members_at_once));
  for (int64_t first = 0; first < problem.num_members; first += members_at_once) {
    parallel_for(context, (rows + step - 1) / step, [&](int64_t task) {
      const int64_t end = std::min(rows, (task + 1) * step);
      for (int64_t row = task * step; row < end; ++row) {
        for (int64_t n = first; n < first + members_at_once; ++n) {
          if (has_bags) {
            gather.add_bag(row, n);
          } else {
            gather.copy_row(row, n);
          }
        }
      }
    });
  }
  if (report != nullptr && report->place != report->kNone) {
    const auto place = static_cast<int64_t>(report->place);
    report->id = gather.id_at(place / problem.num_members, place % problem.num_members);
  }
}

}  // namespace wide
