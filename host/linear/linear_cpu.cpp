// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear on the CPU: blocks of outputs are handed to the threads, all members' at once (`wide`) or
// one member's at a time (`sequential`). Both compute every block alike, so they give the same
// bits; they differ in how well small members fill the threads.
#include <algorithm>

#include "host/core/activation_cpu.hpp"
#include "host/core/parallel.hpp"
#include "host/core/pointer.hpp"
#include "host/core/vectorised.hpp"
#include "host/linear/linear_cpu_block.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_run.hpp"
#include "host/linear/quantized_codes.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

int64_t blocks_in_row(const LinearProblem& problem) {
  return (problem.out_features - 1) / cpu::kBlockColumns + 1;
}

void finish_block(const LinearProblem& problem, const LinearArguments& arguments, int64_t member,
                  int64_t row, int64_t column, const cpu::LinearBlock& block,
                  float (&sums)[cpu::kBlockRows][cpu::kBlockColumns]) {
  using Row = float[cpu::kBlockColumns];
  const Epilogue& epilogue = problem.epilogue;
  const auto load = [&](const ConstTensorView& operand, int64_t offset, Row& values) {
    decode_row(operand.dtype, advanced(operand.data, offset, dtype_bytes(operand.dtype)), values,
               block.columns);
  };
  Row factors, bias = {}, residual = {};
  std::fill_n(factors, block.columns, 1.0f);
  if (epilogue.scale == OutputScale::per_output) {
    load(arguments.scale, member * problem.scale_member_stride + column, factors);
  } else if (epilogue.scale == OutputScale::per_member) {
    const auto* scale = static_cast<const float*>(arguments.scale.data);
    std::fill_n(factors, block.columns, scale[member * problem.scale_member_stride]);
  }
  if (epilogue.has_bias) {
    load(arguments.bias, member * problem.bias_member_stride + column, bias);
  }
  const bool is_activated = epilogue.residual == Residual::before_activation;
  for (int r = 0; r < block.rows; ++r) {
    if (epilogue.residual != Residual::none) {
      const RowStrides& strides = problem.residual;
      load(arguments.residual, member * strides.member + (row + r) * strides.row + column,
           residual);
    }
    for (int c = 0; c < block.columns; ++c) {
      float value = sums[r][c] * (epilogue.alpha * factors[c]);
      if (epilogue.has_bias) value += bias[c];  // adding 0 would turn -0 into +0
      if (is_activated) value += residual[c];
      sums[r][c] = value;
    }
    activate_cpu(epilogue.activation, sums[r], block.columns);
    for (int c = 0; c < block.columns && epilogue.residual == Residual::after_activation; ++c) {
      sums[r][c] += residual[c];
    }
    const int64_t offset = member * problem.y.member + (row + r) * problem.y.row + column;
    encode_row(*problem.y_dtype, sums[r],
               advanced(arguments.y.data, offset, dtype_bytes(*problem.y_dtype)), block.columns);
  }
}

/// A block's outputs of a member's blob.
struct QuantizedBlock {
  QuantizedWeight weight;
  const uint8_t* blob;
  int64_t first_output;
};
static_assert(cpu::kBlockDepth % kQuantizedTile == 0);

void decode_quantized_block(const void* weight, int row, int64_t first, int64_t count, float* out) {
  const auto& block = *static_cast<const QuantizedBlock*>(weight);
  decode_quantized_row(block.weight, block.blob, block.first_output + row, first, count, out);
}

}  // namespace

/// Columns inside rows.
int64_t linear_cpu_blocks(const LinearProblem& problem) {
  return ((problem.batch - 1) / cpu::kBlockRows + 1) * blocks_in_row(problem);
}

void run_linear_cpu_block(const LinearProblem& problem, const LinearArguments& arguments,
                          int64_t member, int64_t index, const void* const* x_rows) {
  const int64_t row = index / blocks_in_row(problem) * cpu::kBlockRows;
  const int64_t column = index % blocks_in_row(problem) * cpu::kBlockColumns;
  const Dtype dtype = problem.dtype;
  const int64_t bytes = dtype_bytes(dtype);
  float sums[cpu::kBlockRows][cpu::kBlockColumns];
  cpu::LinearBlock block;
  const Dtype weight_dtype = is_quantized(problem) ? Dtype::uint8 : dtype;
  const void* weight =
      advanced(arguments.weight.data, member * problem.weight.member, dtype_bytes(weight_dtype));
  const QuantizedBlock quantized{linear_quantized_weight(problem),
                                 static_cast<const uint8_t*>(weight), column};
  if (is_quantized(problem)) {
    block.weight = &quantized;
    block.decode_weight = decode_quantized_block;
  } else {
    block.weight = advanced(weight, column * problem.weight.row, bytes);
  }
  block.weight_stride = problem.weight.row;
  block.dtype = dtype;
  block.rows = static_cast<int>(std::min<int64_t>(cpu::kBlockRows, problem.batch - row));
  const void* x = advanced(arguments.x.data, member * problem.x.member, bytes);
  for (int r = 0; r < block.rows; ++r) {
    block.x[r] = x_rows == nullptr ? advanced(x, (row + r) * problem.x.row, bytes) : x_rows[r];
  }
  block.columns =
      static_cast<int>(std::min<int64_t>(cpu::kBlockColumns, problem.out_features - column));
  block.depth = problem.in_features;
  block.sums = sums;
  cpu::best_linear_block()(block);

  call_vectorised([&] { finish_block(problem, arguments, member, row, column, block, sums); });
}

void run_linear_cpu(const Context& context, const LinearProblem& problem,
                    const LinearArguments& arguments, CpuOrder order) {
  const int64_t per_member = linear_cpu_blocks(problem);
  if (order == CpuOrder::all_members) {
    parallel_for(context, problem.num_members * per_member, [&](int64_t task) {
      run_linear_cpu_block(problem, arguments, task / per_member, task % per_member);
    });
    return;
  }
  for (int64_t member = 0; member < problem.num_members; ++member) {
    parallel_for(context, per_member,
                 [&](int64_t task) { run_linear_cpu_block(problem, arguments, member, task); });
  }
}

}  // namespace wide
