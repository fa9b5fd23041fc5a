// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quantising and back, strip by strip over the threads of the CPU. Members on a CUDA device are
// staged through the host, one at a time: weights are quantised once and read many times.
#include "wide/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/parallel.hpp"
#include "host/core/plan_checks.hpp"
#include "host/linear/quantized_codes.hpp"
#include "wide/convert.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

constexpr std::string_view kQuantizeName = "quantize";

Shape member_shape(const QuantizedWeight& weight) {
  return {weight.out_features, weight.in_features};
}

void check_blobs(const QuantizedWeight& weight, const ConstTensorView& blobs, size_t num_members,
                 Device device) {
  require_dtype(kQuantizeName, "blobs", blobs, Dtype::uint8);
  require_shape(kQuantizeName, "blobs", blobs, "[num_members, member_bytes]",
                {static_cast<int64_t>(num_members), quantized_bytes(weight)});
  if (blobs.num_elements() == 0) return;
  require_device(kQuantizeName, "blobs", blobs, device);
  WIDE_REQUIRE(blobs.strides.back() == 1, "quantize: blobs has strides " +
                                              to_string(blobs.strides) +
                                              ", expected bytes side by side: stride 1");
}

void check_member(const QuantizedWeight& weight, const ConstTensorView& member, size_t index,
                  Device device) {
  const std::string name = "member " + std::to_string(index);
  require_shape(kQuantizeName, name, member, "[out, in]", member_shape(weight));
  WIDE_REQUIRE(
      member.dtype == Dtype::fp32 || member.dtype == Dtype::fp16 || member.dtype == Dtype::bf16,
      "quantize: " + name + " is " + std::string(dtype_name(member.dtype)) +
          ", expected fp32, fp16 or bf16");
  require_device(kQuantizeName, name, member, device);
}

bool is_on_cpu(const Context& context) {
  return context.device().type == DeviceType::cpu;
}

/// Threads for the work, and memory that they can access.
Context host_of(const Context& context) {
  return is_on_cpu(context) ? context : Context::cpu();
}

/// The member, densely packed, on the host.
Tensor fetch_member(const Context& context, const Context& host, const ConstTensorView& member,
                    Stream stream) {
  const Shape one{1, member.shape[0], member.shape[1]};
  Tensor dense(context, member.dtype, one);
  pack(operands::linear_weight, std::span(&member, 1), dense, stream);
  if (is_on_cpu(context)) return dense;
  Tensor fetched(host, member.dtype, one);
  copy(dense, fetched, stream);
  context.synchronize(stream);
  return fetched;
}

/// The reverse.
void send_member(const Context& context, const Tensor& dense, const TensorView& member,
                 Stream stream) {
  if (is_on_cpu(context)) {
    return unpack(operands::linear_weight, dense, std::span(&member, 1), stream);
  }
  Tensor sent(context, dense.dtype(), dense.shape());
  copy(dense, sent, stream);
  unpack(operands::linear_weight, sent, std::span(&member, 1), stream);
  context.synchronize(stream);
}

Tensor fetch_bytes(const Context& context, const Context& host, const ConstTensorView& blob,
                   Stream stream) {
  Tensor fetched(host, Dtype::uint8, blob.shape);
  copy(blob, fetched, stream);
  context.synchronize(stream);
  return fetched;
}

/// Row `index` of blobs, as one blob.
template <class View>
View blob_of(const View& blobs, size_t index) {
  View row = blobs.narrow(0, static_cast<int64_t>(index), 1);
  return View(row.data, Dtype::uint8, {blobs.shape.back()}, blobs.device);
}

void encode_member(const Context& host, const QuantizedWeight& weight, const Tensor& dense,
                   uint8_t* blob) {
  const int64_t out = weight.out_features, in = weight.in_features;
  const int64_t strip_bytes = quantized_strip_bytes(weight);
  parallel_for(host, (out + kQuantizedStrip - 1) / kQuantizedStrip, [&](int64_t strip) {
    const int64_t first = strip * kQuantizedStrip;
    std::vector<float> rows(
        static_cast<size_t>(std::min<int64_t>(kQuantizedStrip, out - first) * in));
    decode_row(dense.dtype(),
               static_cast<const char*>(dense.data()) + first * in * dtype_bytes(dense.dtype()),
               rows.data(), static_cast<int64_t>(rows.size()));
    encode_quantized_strip(weight, rows, blob + strip * strip_bytes);
  });
}

int64_t strips_of(const QuantizedWeight& weight) {
  return (weight.out_features + kQuantizedStrip - 1) / kQuantizedStrip;
}

void require_storable(const QuantizedWeight& weight) {
  require_enumerator(kQuantizeName, "format", weight.format, kAllWeightFormats.back());
  WIDE_REQUIRE(weight.format != WeightFormat::packed,
               "quantize: format is packed, expected a quantised one");
  WIDE_REQUIRE(
      weight.group_size == 64 || weight.group_size == 128,
      "quantize: group_size is " + std::to_string(weight.group_size) + ", expected 64 or 128");
  WIDE_REQUIRE(
      weight.out_features >= 0 && weight.in_features >= 0,
      "quantize: weight is " + to_string(member_shape(weight)) + ", expected [out, in] >= 0");
  // Both rounded up, in fp32, take more: whatever fits that way fits as a blob, and as a strip.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
  WIDE_REQUIRE(weight.out_features <= kMost && weight.in_features <= kMost,
               "quantize: weight is " + to_string(member_shape(weight)) +
                   ", expected sizes that fit in 63 bits");
  const int64_t strips = std::max<int64_t>(strips_of(weight), 1);
  const int64_t inputs = (weight.in_features + 127) / 128 * 128;
  (void)checked_bytes({strips * kQuantizedStrip, inputs}, 4);
}

}  // namespace

int64_t quantized_strip_bytes(const QuantizedWeight& weight) {
  require_storable(weight);
  const int64_t groups = (weight.in_features + weight.group_size - 1) / weight.group_size;
  return groups * kQuantizedScaleBytes +
         quantized_tiles(weight) * quantized_tile_bytes(weight.format);
}

int64_t quantized_bytes(const QuantizedWeight& weight) {
  const int64_t strip_bytes = quantized_strip_bytes(weight);
  return strips_of(weight) * strip_bytes;
}

void quantize_weights(const Context& context, const QuantizedWeight& weight,
                      std::span<const ConstTensorView> members, const TensorView& blobs,
                      Stream stream) {
  check_blobs(weight, blobs, members.size(), context.device());
  for (size_t i = 0; i < members.size(); ++i) check_member(weight, members[i], i, context.device());
  if (blobs.num_elements() == 0) return;
  const Context host = host_of(context);
  for (size_t i = 0; i < members.size(); ++i) {
    const Tensor dense = fetch_member(context, host, members[i], stream);
    const TensorView blob = blob_of(blobs, i);
    if (is_on_cpu(context)) {
      encode_member(host, weight, dense, static_cast<uint8_t*>(blob.data));
      continue;
    }
    Tensor bytes(host, Dtype::uint8, blob.shape);
    encode_member(host, weight, dense, static_cast<uint8_t*>(bytes.data()));
    copy(bytes, blob, stream);
    context.synchronize(stream);
  }
}

void dequantize_weights(const Context& context, const QuantizedWeight& weight,
                        const ConstTensorView& blobs, std::span<const TensorView> members,
                        Stream stream) {
  check_blobs(weight, blobs, members.size(), context.device());
  for (size_t i = 0; i < members.size(); ++i) check_member(weight, members[i], i, context.device());
  if (blobs.num_elements() == 0) return;
  const Context host = host_of(context);
  const int64_t out = weight.out_features, in = weight.in_features;
  for (size_t i = 0; i < members.size(); ++i) {
    const Tensor bytes = fetch_bytes(context, host, blob_of(blobs, i), stream);
    Tensor dense(host, members[i].dtype, {1, out, in});
    parallel_for(host, out, [&](int64_t row) {
      std::vector<float> values(static_cast<size_t>(in));
      decode_quantized_row(weight, static_cast<const uint8_t*>(bytes.data()), row, 0, in,
                           values.data());
      encode_row(dense.dtype(), values.data(),
                 static_cast<char*>(dense.data()) + row * in * dtype_bytes(dense.dtype()), in);
    });
    send_member(context, dense, members[i], stream);
  }
}

QuantizationError quantization_error(const Context& context, const QuantizedWeight& weight,
                                     const ConstTensorView& member, const ConstTensorView& blob,
                                     Stream stream) {
  const ConstTensorView blobs(blob.data, blob.dtype, {1, blob.num_elements()}, blob.device);
  WIDE_REQUIRE(blob.is_contiguous(), "quantize: blob has strides " + to_string(blob.strides) +
                                         ", expected bytes side by side: stride 1");
  check_blobs(weight, blobs, 1, context.device());
  check_member(weight, member, 0, context.device());
  QuantizationError error;
  error.snr_db = std::numeric_limits<double>::infinity();
  if (blob.num_elements() == 0) return error;
  const Context host = host_of(context);
  const Tensor dense = fetch_member(context, host, member, stream);
  const Tensor bytes = fetch_bytes(context, host, blob_of(blobs, 0), stream);

  const int64_t out = weight.out_features, in = weight.in_features;
  std::vector<float> stored(static_cast<size_t>(in));
  double squares = 0, weights = 0, worst = -1;
  for (int64_t o = 0; o < out; ++o) {
    decode_quantized_row(weight, static_cast<const uint8_t*>(bytes.data()), o, 0, in,
                         stored.data());
    for (int64_t first = 0; first < in; first += weight.group_size) {
      double group = 0;
      for (int64_t k = first; k < std::min(first + weight.group_size, in); ++k) {
        const double exact = load_element(dense.data(), dense.dtype(), o * in + k);
        const double off = static_cast<double>(stored[static_cast<size_t>(k)]) - exact;
        const double distance = std::isfinite(exact) ? std::fabs(off) : std::nan("");
        if (std::isnan(distance) || distance > error.max_abs) error.max_abs = distance;
        group += distance * distance;
        weights += exact * exact;
      }
      squares += group;
      const bool is_worse = std::isnan(group) ? !std::isnan(worst) : group > worst;
      if (!is_worse) continue;
      worst = group, error.worst_output = o, error.worst_group = first / weight.group_size;
    }
  }
  error.rms = std::sqrt(squares / static_cast<double>(out * in));
  if (squares == 0) return error;
  error.relative_frobenius = std::sqrt(squares / weights);
  error.snr_db = -20 * std::log10(error.relative_frobenius);
  return error;
}

}  // namespace wide
