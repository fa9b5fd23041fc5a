// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to kernel parameters.
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/pointer.hpp"
#include "host/embedding/embedding_run.hpp"
#include "kernels/embedding/embedding_indexed.hpp"

namespace wide {

void run_embedding_cuda(const Context& context, const EmbeddingProblem& problem,
                        EmbeddingStrategy strategy, const EmbeddingArguments& arguments,
                        const Execution& execution) {
  const CurrentDevice current(context.device().ordinal);
  const auto stream = native_stream(execution.stream);
  kernels::EmbeddingParams params;
  params.ids = arguments.ids.data;
  params.offsets = arguments.offsets.data;
  params.table = static_cast<const char*>(arguments.table.data);
  params.y = static_cast<char*>(arguments.y.data);
  params.num_members = params.total_members = problem.num_members;
  params.batch = problem.batch;
  params.seq = problem.seq;
  params.vocab = problem.vocab;
  params.dim = problem.dim;
  params.padding_id = problem.padding_id;
  params.ids_batch_stride = problem.ids_batch_stride;
  params.ids_member_stride = problem.ids_member_stride;
  params.offsets_member_stride = problem.offsets_member_stride;
  params.table_member_stride = problem.table.member;
  params.table_row_stride = problem.table.row;
  params.y_row_stride = problem.y.row;
  params.y_member_stride = problem.y.member;
  params.format = problem.table_format;
  params.is_mean = problem.bag == Bag::mean;
  params.element_bytes = static_cast<int>(dtype_bytes(problem.dtype));
  params.table_bytes = problem.table_format == WeightFormat::packed ? params.element_bytes : 1;
  params.id_bytes = static_cast<int>(dtype_bytes(problem.id_dtype));
  if (problem.checked) {
    params.report = static_cast<kernels::EmbeddingReport*>(execution.workspace.data);
    WIDE_CHECK_CUDA(cudaMemsetAsync(params.report, 0xff, sizeof(*params.report), stream));
  }
  const auto launch = [&](const kernels::EmbeddingParams& p) {
    const bool is_gather = strategy == EmbeddingStrategy::gather;
    WIDE_CHECK_CUDA(problem.bag == Bag::none
                        ? kernels::launch_embedding_rows(problem.dtype, p, is_gather, stream)
                        : kernels::launch_embedding_bags(problem.dtype, p, stream));
  };
  if (strategy != EmbeddingStrategy::sequential) {
    launch(params);
  } else {
    kernels::EmbeddingParams one = params;
    one.num_members = 1;
    for (int64_t n = 0; n < problem.num_members; ++n) {
      one.first_member = n;
      one.ids = advanced(params.ids, n * params.ids_member_stride, params.id_bytes);
      one.offsets = advanced(params.offsets, n * params.offsets_member_stride, params.id_bytes);
      one.table = advanced(params.table, n * params.table_member_stride, params.table_bytes);
      one.y = advanced(params.y, n * params.y_member_stride, params.element_bytes);
      launch(one);
    }
  }
  if (problem.checked) WIDE_CHECK_CUDA(kernels::launch_embedding_report(params, stream));
}

}  // namespace wide
