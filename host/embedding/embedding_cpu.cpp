// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's gather: rows of y in order, a memcpy each. `wide` spreads all rows of all
// members over the threads at once, `sequential` one member's rows after the other's.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "host/core/parallel.hpp"
#include "host/embedding/embedding_run.hpp"

namespace wide {

namespace {

constexpr int64_t kBytesPerTask = 1 << 16;  // some ten microseconds of copying

class Gather {
 public:
  Gather(const EmbeddingProblem& problem, const EmbeddingArguments& arguments,
         EmbeddingFinding* finding)
      : p_(problem), a_(arguments), finding_(finding), row_bytes_(p_.dim * dtype_bytes(p_.dtype)) {}

  int64_t row_bytes() const { return row_bytes_; }

  int64_t id_at(int64_t position, int64_t member) const {
    const int64_t b = position / p_.seq;
    const int64_t index =
        b * p_.ids_batch_stride + member * p_.ids_member_stride + position % p_.seq;
    return p_.id_dtype == Dtype::int64 ? static_cast<const int64_t*>(a_.ids.data)[index]
                                       : static_cast<const int32_t*>(a_.ids.data)[index];
  }

  void copy_row(int64_t position, int64_t member) const {
    const int64_t size = dtype_bytes(p_.dtype);
    char* to = static_cast<char*>(a_.y.data) + (position * p_.y.row + member * p_.y.member) * size;
    const int64_t id = id_at(position, member);
    if (id < 0 || id >= p_.vocab) {
      std::memset(to, 0xff, static_cast<size_t>(row_bytes_));
      note(static_cast<uint64_t>(position * p_.num_members + member));
      return;
    }
    const char* from = static_cast<const char*>(a_.table.data) +
                       (member * p_.table.member + id * p_.table.row) * size;
    std::memcpy(to, from, static_cast<size_t>(row_bytes_));
  }

 private:
  void note(uint64_t place) const {
    if (finding_ == nullptr) return;
    std::atomic_ref<uint64_t> lowest(finding_->place);
    uint64_t seen = lowest.load(std::memory_order_relaxed);
    while (place < seen && !lowest.compare_exchange_weak(seen, place, std::memory_order_relaxed)) {
    }
  }

  const EmbeddingProblem& p_;
  const EmbeddingArguments& a_;
  EmbeddingFinding* finding_;
  int64_t row_bytes_;
};

}  // namespace

void run_embedding_cpu(const Context& context, const EmbeddingProblem& problem,
                       EmbeddingStrategy strategy, const EmbeddingArguments& arguments,
                       const Execution& execution) {
  EmbeddingFinding* finding = nullptr;
  if (problem.checked) {
    finding = static_cast<EmbeddingFinding*>(execution.workspace.data);
    *finding = EmbeddingFinding{};
  }
  const Gather gather(problem, arguments, finding);
  const int64_t positions = problem.batch * problem.seq;
  const bool is_wide = strategy == EmbeddingStrategy::wide;
  const int64_t members_at_once = is_wide ? problem.num_members : 1;
  const int64_t step = std::max<int64_t>(
      1, kBytesPerTask / std::max<int64_t>(1, gather.row_bytes() * members_at_once));
  for (int64_t first = 0; first < problem.num_members; first += members_at_once) {
    parallel_for(context, (positions + step - 1) / step, [&](int64_t task) {
      const int64_t end = std::min(positions, (task + 1) * step);
      for (int64_t position = task * step; position < end; ++position) {
        for (int64_t n = first; n < first + members_at_once; ++n) gather.copy_row(position, n);
      }
    });
  }
  if (finding != nullptr && finding->place != ~uint64_t{0}) {
    const auto place = static_cast<int64_t>(finding->place);
    finding->id = gather.id_at(place / problem.num_members, place % problem.num_members);
  }
}

}  // namespace wide
