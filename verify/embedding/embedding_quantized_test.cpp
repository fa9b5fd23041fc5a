// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quantised rows of embedding: what they hold, and what becomes of it on the way to y.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/embedding/quantized_rows.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/tensors.hpp"
#include "wide/convert.hpp"
#include "wide/embedding.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::upload;

namespace {

constexpr WeightFormat kQuantized[] = {WeightFormat::fp8_e4m3, WeightFormat::int8};

std::vector<std::string> strategies(const Context& context) {
  if (context.device().type == DeviceType::cpu) return {"sequential", "wide"};
  return {"sequential", "indexed", "gather"};
}

std::vector<float> quantized(WeightFormat format, const std::vector<float>& row) {
  std::vector<uint8_t> bytes(
      static_cast<size_t>(quantized_row_bytes(static_cast<int64_t>(row.size()))));
  encode_table_row(format, row, bytes.data());
  std::vector<float> back(row.size());
  decode_table_row(format, bytes.data(), back);
  return back;
}

}  // namespace

TEST_CASE("embedding: quantised rows worked out by hand") {
  // 127 steps of a power of two are stored as they are; codes are biased by 128; the scale, 1/4,
  // is the row's last two bytes.
  const std::vector<float> row{31.75f, -31.75f, 0, 0.25f, -16};
  std::vector<uint8_t> bytes(16);
  encode_table_row(WeightFormat::int8, row, bytes.data());
  CHECK(bytes == std::vector<uint8_t>{255, 1, 128, 129, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3e});
  CHECK(quantized(WeightFormat::int8, row) == row);
  const std::vector<float> e4m3{448, -0.5f, 3, 0};
  CHECK(quantized(WeightFormat::fp8_e4m3, e4m3) == e4m3);
  for (const WeightFormat format : kQuantized) {
    CHECK(quantized(format, {0, 0, 0}) == std::vector<float>{0, 0, 0});
    for (const float value : quantized(format, {1, std::numeric_limits<float>::infinity()})) {
      CHECK(std::isnan(value));
    }
  }
  CHECK(quantized_row_bytes(14) == 16);
  CHECK(quantized_row_bytes(15) == 32);
}

TEST_CASE("embedding: quantising a row costs what its format says") {
  for (const WeightFormat format : kQuantized) {
    for (const int64_t dim : {1, 7, 64, 300}) {
      std::vector<float> row;
      for (const double value : test::uniform(dim, -3, 3, 9))
        row.push_back(static_cast<float>(value));
      float largest = 0;
      for (const float value : row) largest = std::max(largest, std::fabs(value));
      const std::vector<float> stored = quantized(format, row);
      for (size_t d = 0; d < row.size(); ++d) {
        // Half a step, and the scale's own rounding where it clips the largest.
        const float step = format == WeightFormat::int8 ? largest / 127 * 0.51f
                                                        : std::fabs(row[d]) / 16 + largest / 2e4f;
        INFO(weight_format_name(format) << " " << row[d] << " is " << stored[d]);
        CHECK(std::fabs(stored[d] - row[d]) <= step + largest / 256);
      }
    }
  }
}

TEST_CASE("embedding: quantised tables are looked up as they are stored, and restored") {
  for (const Context& context : test::devices_at_hand()) {
    for (const WeightFormat format : kQuantized) {
      for (const int64_t dim : {1, 5, 16, 33, 64}) {
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16}) {
          constexpr int64_t vocab = 5, seq = 7, members = 6;
          EmbeddingProblem problem{.num_members = members, .batch = 1, .seq = seq, .vocab = vocab};
          problem.dim = dim;
          problem.dtype = dtype;
          problem.id_dtype = Dtype::int32;
          problem.table_format = format;
          problem.padding_id = 3;
          const EmbeddingPlan plan = make_embedding_plan(context, problem);
          CHECK(plan.weight_format() == weight_format_name(format));
          std::vector<Tensor> tables, back;
          std::vector<ConstTensorView> views;
          std::vector<TensorView> targets;
          for (int64_t n = 0; n < members; ++n) {
            const auto seed = static_cast<uint64_t>(n);
            views.push_back(tables.emplace_back(upload(context, Dtype::fp32, {vocab, dim},
                                                       test::uniform(vocab * dim, -1, 1, seed))));
            targets.push_back(back.emplace_back(context, Dtype::fp32, Shape{vocab, dim}));
          }
          Tensor packed(context, Dtype::uint8, {members, vocab, quantized_row_bytes(dim)});
          const OwnedStream stream(context);
          plan.prepare_weights(views, packed, stream.get());
          plan.restore_weights(packed, targets, stream.get());
          Tensor ids = upload(context, Dtype::int32, {1, seq}, {4, 0, 3, -1, 1, 2, 4});
          const int64_t id_of[] = {4, 0, 3, -1, 1, 2, 4};
          Tensor y(context, dtype, {1, seq, members * dim});
          for (const std::string& strategy : strategies(context)) {
            const EmbeddingArguments arguments{ids, packed, y, {}};
            make_embedding_plan(context, describe_embedding(arguments, problem), {strategy})
                .run(arguments, {stream.get()});
            context.synchronize(stream.get());
            const std::vector<double> got = download(context, y);
            int64_t wrong = 0;
            for (int64_t n = 0; n < members; ++n) {
              const std::vector<double> table = download(context, back[static_cast<size_t>(n)]);
              for (int64_t i = 0; i < seq * dim; ++i) {
                const int64_t t = i / dim, d = i % dim;
                const double value = got[static_cast<size_t>((t * members + n) * dim + d)];
                if (id_of[t] < 0) {
                  wrong += !std::isnan(value);
                } else if (id_of[t] == 3) {
                  wrong += value != 0;
                } else {
                  const double expected = table[static_cast<size_t>(id_of[t] * dim + d)];
                  wrong += !(std::fabs(value - expected) <=
                             (dtype == Dtype::fp32 ? 0 : 0x1p-11 * std::fabs(expected)));
                }
              }
            }
            INFO(to_string(context.device()) << " " << strategy << " " << weight_format_name(format)
                                             << " dim " << dim << " " << dtype_name(dtype));
            CHECK(wrong == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("embedding: bags of quantised rows are sums of what is stored, in the ids' order") {
  for (const Context& context : test::devices_at_hand()) {
    for (const WeightFormat format : kQuantized) {
      for (const int64_t dim : {5, 16, 33, 600}) {
        constexpr int64_t vocab = 6, members = 3, bags = 3;
        const std::vector<int64_t> id_of{5, 0, 3, 1, 1, 2, 4, 5, 0, 0}, first_of{0, 1, 9, 10};
        EmbeddingProblem like;
        like.table_format = format;
        like.dim = dim;
        like.bag = Bag::sum;
        like.padding_id = 3;
        std::vector<uint8_t> bytes;
        std::vector<std::vector<float>> rows;
        for (int64_t i = 0; i < members * vocab; ++i) {
          std::vector<float> row;
          for (const double value : test::uniform(dim, -1, 1, static_cast<uint64_t>(i)))
            row.push_back(static_cast<float>(value));
          const auto at = static_cast<int64_t>(bytes.size());
          bytes.resize(bytes.size() + static_cast<size_t>(quantized_row_bytes(dim)));
          encode_table_row(format, row, bytes.data() + at);
          rows.push_back(quantized(format, row));
        }
        const Shape shape{members, vocab, quantized_row_bytes(dim)};
        Tensor table(context, Dtype::uint8, shape);
        const OwnedStream stream(context);
        copy(ConstTensorView(bytes.data(), Dtype::uint8, shape, Device{}), table, stream.get());
        Tensor ids = upload(context, Dtype::int64, {10}, {id_of.begin(), id_of.end()});
        Tensor offsets =
            upload(context, Dtype::int64, {bags + 1}, {first_of.begin(), first_of.end()});
        Tensor y(context, Dtype::fp32, {bags, members * dim});
        const EmbeddingArguments arguments{ids, table, y, offsets};
        const char* strategy = context.device().type == DeviceType::cpu ? "wide" : "bag";
        make_embedding_plan(context, describe_embedding(arguments, like), {strategy})
            .run(arguments, {stream.get()});
        context.synchronize(stream.get());
        const std::vector<double> got = download(context, y);
        int64_t wrong = 0;
        for (int64_t i = 0; i < bags * members * dim; ++i) {
          const auto bag = static_cast<size_t>(i / (members * dim));
          const int64_t n = i / dim % members;
          float sum = 0;
          for (int64_t l = first_of[bag]; l < first_of[bag + 1]; ++l) {
            const int64_t id = id_of[static_cast<size_t>(l)];
            const auto row = static_cast<size_t>(n * vocab + id);
            if (id != 3) sum += rows[row][static_cast<size_t>(i % dim)];
          }
          wrong += got[static_cast<size_t>(i)] != static_cast<double>(sum);
        }
        INFO(to_string(context.device()) << " " << weight_format_name(format) << " dim " << dim);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("embedding: quantised tables that do not fit are refused") {
  const Context cpu = Context::cpu();
  EmbeddingProblem like;
  like.table_format = WeightFormat::int8;
  like.dim = 5;
  Tensor ids(cpu, Dtype::int64, {2, 3}), y(cpu, Dtype::fp32, {2, 3, 10}),
      table(cpu, Dtype::uint8, {2, 4, 16}), narrow(cpu, Dtype::uint8, {2, 4, 8}),
      floats(cpu, Dtype::fp32, {2, 4, 16}), fp8(cpu, Dtype::fp8_e4m3, {2, 3, 10}),
      bytes(cpu, Dtype::uint8, {2 * 4 * 16 + 1});
  CHECK_NOTHROW(describe_embedding({ids, table, y, {}}, like));
  CHECK_THROWS_MATCHES(describe_embedding({ids, narrow, y, {}}, like), Error,
                       Message("embedding: table is [2, 4, 8], expected [num_members, vocab, "
                               "quantized_row_bytes(dim)] = [2, 4, 16]"));
  CHECK_THROWS_MATCHES(describe_embedding({ids, floats, y, {}}, like), Error,
                       Message("embedding: table is fp32, expected dtype = uint8"));
  CHECK_THROWS_MATCHES(describe_embedding({ids, table, fp8, {}}, like), Error,
                       Message("embedding: dtype is fp8_e4m3, expected fp32, fp16 or bf16 for "
                               "quantised tables and bags"));
  const TensorView odd(static_cast<char*>(bytes.data()) + 1, Dtype::uint8, {2, 4, 16}, Device{});
  CHECK_THROWS_MATCHES(describe_embedding({ids, odd, y, {}}, like), Error,
                       Message("embedding: table has strides [64, 16, 1] or an address that are "
                               "not multiples of 16 bytes, expected aligned rows"));
  EmbeddingProblem bad = like;
  bad.dim = 17;
  CHECK_THROWS_MATCHES(describe_embedding({ids, table, y, {}}, bad), Error,
                       Message("embedding: dim is 17, expected 0 up to the bytes of a row of "
                               "table [2, 4, 16]"));
  bad = like;
  bad.table_format = WeightFormat::int4;
  CHECK_THROWS_MATCHES(
      describe_embedding({ids, table, y, {}}, bad), Error,
      Message("embedding: table_format is int4, expected packed, fp8_e4m3 or int8"));
  const EmbeddingPlan plan =
      make_embedding_plan(cpu, describe_embedding({ids, table, y, {}}, like));
  const Tensor member(cpu, Dtype::fp32, {4, 5}), ints(cpu, Dtype::int32, {4, 5});
  const ConstTensorView one[] = {member}, wrong[] = {ints, ints};
  CHECK_THROWS_MATCHES(plan.prepare_weights(one, table, Stream::cpu()), Error,
                       Message("embedding: 1 member, expected num_members = 2"));
  CHECK_THROWS_MATCHES(plan.prepare_weights(wrong, table, Stream::cpu()), Error,
                       Message("embedding: member 0 is int32, expected fp32, fp16 or bf16"));
}
