// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's routing: a stable counting sort of rows by column in three passes, of which the
// first and the last go over chunks of rows, a task each. `wide` has a column for each member and
// one for nobody; `sequential` has one at a time.
#include <algorithm>

#include "host/core/parallel.hpp"
#include "host/routing/routing_run.hpp"

namespace wide {

namespace {

/// Rows of a chunk, chunks, and columns that rows are sorted by at a time.
struct CpuChunks {
  int64_t rows, count, columns;
};

CpuChunks cpu_chunks(const RoutingProblem& p, WideStrategy strategy) {
  constexpr int64_t kMostChunks = 64, kLeastRows = 1 << 13;  // some ten microseconds of counting
  const int64_t columns = strategy == WideStrategy::wide ? p.num_members + 1 : 1;
  const int64_t rows =
      std::max({kLeastRows, columns, (p.num_rows + kMostChunks - 1) / kMostChunks});
  return {rows, (p.num_rows + rows - 1) / rows, columns};
}

/// The place of the number `id - first_id` among `size`; `size` where it is not in there.
template <class Id>
int64_t place_of(Id id, int64_t first_id, int64_t size) {
  const auto above =
      static_cast<uint64_t>(static_cast<int64_t>(id)) - static_cast<uint64_t>(first_id);
  return above < static_cast<uint64_t>(size) ? static_cast<int64_t>(above) : size;
}

/// The sort of all rows into `order`, by counts [chunks, columns].
class CpuSort {
 public:
  CpuSort(const Context& context, int64_t num_rows, const CpuChunks& chunks, int32_t* counts,
          int32_t* order)
      : context_(context), num_rows_(num_rows), chunks_(chunks), counts_(counts), order_(order) {}

  /// Places the rows whose column is below the number of columns from `at` on, and writes where
  /// each column begins. Returns the end.
  template <class ColumnOf>
  int64_t place(int64_t at, int32_t* first_rows, const ColumnOf& column_of) const {
    parallel_for(context_, chunks_.count, [&](int64_t chunk) {
      std::fill_n(counts_ + chunk * chunks_.columns, chunks_.columns, 0);
      each_row(chunk, column_of, [](int64_t, int32_t& count) { ++count; });
    });
    for (int64_t column = 0; column < chunks_.columns; ++column) {
      first_rows[column] = static_cast<int32_t>(at);
      for (int64_t chunk = 0; chunk < chunks_.count; ++chunk) {
        int32_t& count = counts_[chunk * chunks_.columns + column];
        const int32_t size = count;
        count = static_cast<int32_t>(at);
        at += size;
      }
    }
    parallel_for(context_, chunks_.count, [&](int64_t chunk) {
      each_row(chunk, column_of,
               [&](int64_t row, int32_t& next) { order_[next++] = static_cast<int32_t>(row); });
    });
    return at;
  }

 private:
  /// f(row, its column's count of the chunk)
  template <class ColumnOf, class F>
  void each_row(int64_t chunk, const ColumnOf& column_of, const F& f) const {
    int32_t* const own = counts_ + chunk * chunks_.columns;
    const int64_t end = std::min(num_rows_, (chunk + 1) * chunks_.rows);
    for (int64_t row = chunk * chunks_.rows; row < end; ++row) {
      const int64_t column = column_of(row);
      if (column < chunks_.columns) f(row, own[column]);
    }
  }

  const Context& context_;
  int64_t num_rows_;
  CpuChunks chunks_;
  int32_t *counts_, *order_;
};

template <class Id>
void run(const Context& context, const RoutingProblem& p, WideStrategy strategy,
         const RoutingArguments& a, int32_t* counts) {
  const Id* const ids = static_cast<const Id*>(a.ids.data);
  auto* const first_rows = static_cast<int32_t*>(a.first_rows.data);
  const CpuSort sort(context, p.num_rows, cpu_chunks(p, strategy), counts,
                     static_cast<int32_t*>(a.order.data));
  const auto member_of = [&](int64_t row) { return place_of(ids[row], p.first_id, p.num_members); };
  if (strategy == WideStrategy::wide) {
    sort.place(0, first_rows, member_of);
    return;
  }
  int64_t at = 0;
  for (int64_t n = 0; n < p.num_members; ++n) {
    at = sort.place(at, first_rows + n,
                    [&](int64_t row) { return place_of(ids[row], p.first_id + n, 1); });
  }
  sort.place(at, first_rows + p.num_members,
             [&](int64_t row) { return member_of(row) == p.num_members ? 0 : 1; });
}

}  // namespace

int64_t routing_cpu_count_bytes(const RoutingProblem& problem, WideStrategy strategy) {
  const CpuChunks chunks = cpu_chunks(problem, strategy);
  return chunks.count * chunks.columns * 4;
}

void run_routing_cpu(const Context& context, const RoutingProblem& problem, WideStrategy strategy,
                     const RoutingArguments& arguments, void* counts) {
  const auto with = problem.id_dtype == Dtype::int64 ? run<int64_t> : run<int32_t>;
  with(context, problem, strategy, arguments, static_cast<int32_t*>(counts));
}

}  // namespace wide
