// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rows over the threads of the CPU; members on a CUDA device are staged through the host, one at a
// time. Scales and codes are found as linear's are.
#include "host/embedding/quantized_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/parallel.hpp"
#include "host/linear/quantized_codes.hpp"
#include "wide/convert.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr int64_t kRowsPerTask = 64;
bool is_on_cpu(const Context& context) {
  return context.device().type == DeviceType::cpu;
}

/// body(v): the rows of one table, from several threads.
template <class Body>
void for_each_row(const Context& host, int64_t vocab, const Body& body) {
  parallel_for(host, (vocab + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    const int64_t end = std::min(vocab, (task + 1) * kRowsPerTask);
    for (int64_t v = task * kRowsPerTask; v < end; ++v) body(v);
  });
}

void require_member(const ConstTensorView& member, size_t index) {
  const bool is_known =
      member.dtype == Dtype::fp32 || member.dtype == Dtype::fp16 || member.dtype == Dtype::bf16;
  WIDE_REQUIRE(is_known, "embedding: member " + std::to_string(index) + " is " +
                             std::string(dtype_name(member.dtype)) +
                             ", expected fp32, fp16 or bf16");
}

}  // namespace

void encode_table_row(WeightFormat format, std::span<const float> row, uint8_t* out) {
  const int64_t bytes = quantized_row_bytes(static_cast<int64_t>(row.size()));
  const float scale = quantized_scale(format, row);
  std::memset(out, 0, static_cast<size_t>(bytes));
  for (size_t d = 0; d < row.size(); ++d) {
    out[d] = static_cast<uint8_t>(std::isnan(scale) ? code_of_value(format, 0)
                                                    : quantized_code(format, row[d], scale));
  }
  detail::store_at(out + bytes - 2, 0, float_to_bf16(scale));
}

void decode_table_row(WeightFormat format, const uint8_t* row, std::span<float> out) {
  decode_table_row(format, row, static_cast<int64_t>(out.size()), 0, out);
}

void decode_table_row(WeightFormat format, const uint8_t* row, int64_t dim, int64_t first,
                      std::span<float> out) {
  const uint8_t* behind = row + quantized_row_bytes(dim);
  const float scale = bf16_to_float(detail::load_at<uint16_t>(behind - 2, 0));
  const auto& values = values_of_codes(format);
  for (size_t d = 0; d < out.size(); ++d)
    out[d] = scale * values[row[first + static_cast<int64_t>(d)]];
}

void quantize_tables(const Context& context, WeightFormat format,
                     std::span<const ConstTensorView> members, const TensorView& table,
                     Stream stream) {
  const Context host = is_on_cpu(context) ? context : Context::cpu();
  const int64_t vocab = table.shape[1], row_bytes = table.shape[2];
  for (size_t n = 0; n < members.size(); ++n) {
    require_member(members[n], n);
    const int64_t dim = members[n].shape[1];
    const Shape one{1, vocab, dim};
    Tensor dense(context, members[n].dtype, one), fetched(host, members[n].dtype, one);
    pack(operands::embedding_table, members.subspan(n, 1), dense, stream);
    copy(dense, fetched, stream);
    context.synchronize(stream);
    Tensor encoded(host, Dtype::uint8, {1, vocab, row_bytes});
    for_each_row(host, vocab, [&](int64_t v) {
      std::vector<float> row(static_cast<size_t>(dim));
      const char* from =
          static_cast<const char*>(fetched.data()) + v * dim * dtype_bytes(fetched.dtype());
      decode_row(fetched.dtype(), from, row.data(), dim);
      encode_table_row(format, row, static_cast<uint8_t*>(encoded.data()) + v * row_bytes);
    });
    copy(encoded, table.narrow(0, static_cast<int64_t>(n), 1), stream);
    context.synchronize(stream);
  }
}

void dequantize_tables(const Context& context, WeightFormat format, const ConstTensorView& table,
                       std::span<const TensorView> members, Stream stream) {
  const Context host = is_on_cpu(context) ? context : Context::cpu();
  const int64_t vocab = table.shape[1], row_bytes = table.shape[2];
  for (size_t n = 0; n < members.size(); ++n) {
    require_member(members[n], n);
    const int64_t dim = members[n].shape[1];
    const Shape one{1, vocab, dim};
    Tensor encoded(host, Dtype::uint8, {1, vocab, row_bytes});
    copy(table.narrow(0, static_cast<int64_t>(n), 1), encoded, stream);
    context.synchronize(stream);
    Tensor decoded(host, members[n].dtype, one), sent(context, members[n].dtype, one);
    for_each_row(host, vocab, [&](int64_t v) {
      std::vector<float> row(static_cast<size_t>(dim));
      decode_table_row(format, static_cast<const uint8_t*>(encoded.data()) + v * row_bytes, row);
      char* to = static_cast<char*>(decoded.data()) + v * dim * dtype_bytes(decoded.dtype());
      encode_row(decoded.dtype(), row.data(), to, dim);
    });
    copy(decoded, sent, stream);
    unpack(operands::embedding_table, sent, members.subspan(n, 1), stream);
    context.synchronize(stream);
  }
}

}  // namespace wide
