// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Bags of embedding, and ids that stand for nothing.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/embedding.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;
using test::download, test::upload;

namespace {

std::vector<std::string> strategies(const Context& context) {
  if (context.device().type == DeviceType::cpu) return {"sequential", "wide"};
  return {"sequential", "bag"};
}

std::vector<double> run(const Context& context, const EmbeddingArguments& arguments,
                        const EmbeddingProblem& like, const Tensor& y,
                        const std::string& strategy) {
  test::run_plan(context,
                 make_embedding_plan(context, describe_embedding(arguments, like), {strategy}),
                 arguments);
  return download(context, y);
}

/// table[n, v, d] = 100 n + 10 v + d.
std::vector<double> coded_table(int64_t members, int64_t vocab, int64_t dim) {
  std::vector<double> table;
  for (int64_t n = 0; n < members; ++n) {
    for (int64_t v = 0; v < vocab; ++v) {
      for (int64_t d = 0; d < dim; ++d) table.push_back(static_cast<double>(100 * n + 10 * v + d));
    }
  }
  return table;
}

EmbeddingProblem with(Bag bag, bool have_shared_ids) {
  EmbeddingProblem like;
  like.bag = bag;
  like.shared_ids = have_shared_ids;
  return like;
}

}  // namespace

TEST_CASE("embedding: bags worked out by hand: shared and own, empty, repeated ids, padding") {
  for (const Context& context : test::devices_at_hand()) {
    Tensor table = upload(context, Dtype::fp32, {2, 3, 2}, coded_table(2, 3, 2));
    Tensor shared = upload(context, Dtype::int64, {4}, {2, 0, 1, 1});
    Tensor offsets = upload(context, Dtype::int64, {4}, {0, 2, 2, 4});
    Tensor own = upload(context, Dtype::int32, {2, 3}, {0, 1, 2, 2, 2, 2});
    Tensor own_offsets = upload(context, Dtype::int32, {2, 3}, {0, 1, 3, 0, 0, 3});
    Tensor y(context, Dtype::fp32, {3, 4}), two(context, Dtype::fp32, {2, 4});
    for (const std::string& strategy : strategies(context)) {
      INFO(to_string(context.device()) << " " << strategy);
      const EmbeddingArguments with_shared{shared, table, y, offsets};
      CHECK(run(context, with_shared, with(Bag::sum, true), y, strategy) ==
            std::vector<double>{20, 22, 220, 222, 0, 0, 0, 0, 20, 22, 220, 222});
      CHECK(run(context, with_shared, with(Bag::mean, true), y, strategy) ==
            std::vector<double>{10, 11, 110, 111, 0, 0, 0, 0, 10, 11, 110, 111});
      EmbeddingProblem padded = with(Bag::mean, true);
      padded.padding_id = 1;
      CHECK(run(context, with_shared, padded, y, strategy) ==
            std::vector<double>{10, 11, 110, 111, 0, 0, 0, 0, 0, 0, 0, 0});
      padded.padding_id = 0;
      CHECK(run(context, with_shared, padded, y, strategy) ==
            std::vector<double>{20, 21, 120, 121, 0, 0, 0, 0, 10, 11, 110, 111});
      CHECK(run(context, {own, table, two, own_offsets}, with(Bag::sum, false), two, strategy) ==
            std::vector<double>{0, 1, 0, 0, 30, 32, 360, 363});
    }
  }
}

TEST_CASE("embedding: the padding id stands for zeros, whatever its row holds, and is no mistake") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Context& context : test::devices_at_hand()) {
    Tensor table = upload(context, Dtype::fp32, {2, 3, 1}, {1, nan, 3, 4, nan, 6});
    Tensor ids = upload(context, Dtype::int64, {1, 4}, {2, 1, 0, 1});
    Tensor y(context, Dtype::fp32, {1, 4, 2});
    EmbeddingProblem like;
    like.padding_id = 1;
    like.checked = true;
    const bool on_cuda = context.device().type == DeviceType::cuda;
    for (const char* strategy : {"sequential", on_cuda ? "indexed" : "wide", "auto", "gather"}) {
      if (!on_cuda && strategy == std::string("gather")) continue;
      INFO(to_string(context.device()) << " " << strategy);
      const EmbeddingArguments arguments{ids, table, y, {}};
      const EmbeddingPlan plan =
          make_embedding_plan(context, describe_embedding(arguments, like), {strategy});
      const OwnedStream stream(context);
      Tensor scratch(context, Dtype::uint8, {plan.workspace_bytes()});
      const Execution execution{stream.get(), {scratch.data(), scratch.bytes()}};
      plan.run(arguments, execution);
      CHECK_NOTHROW(plan.check(execution));
      CHECK(download(context, y) == std::vector<double>{3, 6, 0, 0, 1, 4, 0, 0});
    }
  }
}

TEST_CASE("embedding: a broken bag is NaN, its neighbours are not") {
  struct Broken {
    std::vector<double> ids, offsets;
  };
  // Bag 1 of three: an id too large, one below zero, an id that is not there, offsets that go back.
  const std::vector<Broken> cases{{{0, 1, 3, 2, 0}, {0, 2, 4, 5}},
                                  {{0, 1, 2, -1, 0}, {0, 2, 4, 5}},
                                  {{0, 1, 2, 2, 0}, {2, 2, 6, 5}},
                                  {{0, 1, 2, 2, 0}, {0, 2, -3, 5}}};
  for (const Context& context : test::devices_at_hand()) {
    Tensor table = upload(context, Dtype::fp32, {2, 3, 5}, coded_table(2, 3, 5));
    Tensor y(context, Dtype::fp32, {3, 10});
    for (const std::string& strategy : strategies(context)) {
      for (const Broken& broken : cases) {
        Tensor ids = upload(context, Dtype::int64, {5}, broken.ids);
        Tensor offsets = upload(context, Dtype::int64, {4}, broken.offsets);
        const auto got = run(context, {ids, table, y, offsets}, with(Bag::mean, true), y, strategy);
        INFO(to_string(context.device()) << " " << strategy << " " << broken.offsets[2]);
        // Where bag 1 ends wrongly, bag 2 begins so.
        const double end = broken.offsets[2];
        for (size_t i = 0; i < 30; ++i) {
          const bool is_broken = i / 10 == 1 || (i / 10 == 2 && (end > 5 || end < 0));
          CHECK(std::isnan(got[i]) == is_broken);
        }
      }
    }
  }
}

TEST_CASE("embedding: bags of every length, dtype, width and alignment, in the ids' order") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      for (const int64_t dim : {1, 8, 20, 33, 136}) {
        for (const int64_t shift : {0, 1}) {
          constexpr int64_t members = 2, vocab = 7;
          const std::vector<double> offset_values{0, 1, 4, 8, 9, 14, 27},
              ids_of{1, 3, 6, 2, 5, 5, 5, 0, 4, 6, 1, 2, 3, 0,
                     0, 1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1};
          const auto bags = static_cast<int64_t>(offset_values.size()) - 1;
          Tensor offsets = upload(context, Dtype::int32, {bags + 1}, offset_values);
          Tensor ids = upload(context, Dtype::int32, {27}, ids_of);
          Tensor storage = upload(context, dtype, {shift + members * vocab * dim},
                                  test::uniform(shift + members * vocab * dim, -1, 1, 3));
          const TensorView table(static_cast<char*>(storage.data()) + shift * dtype_bytes(dtype),
                                 dtype, {members, vocab, dim}, context.device());
          const std::vector<double> stored = download(context, storage);
          Tensor y(context, dtype, {bags, members * dim});
          const auto got = run(context, {ids, table, y, offsets}, with(Bag::sum, true), y,
                               context.device().type == DeviceType::cpu ? "wide" : "bag");
          int64_t wrong = 0;
          for (int64_t i = 0; i < bags * members * dim; ++i) {
            const int64_t bag = i / (members * dim), n = i / dim % members, d = i % dim;
            float sum = 0;
            for (double l = offset_values[static_cast<size_t>(bag)];
                 l < offset_values[static_cast<size_t>(bag) + 1]; ++l) {
              const auto id = static_cast<int64_t>(ids_of[static_cast<size_t>(l)]);
              sum += static_cast<float>(
                  stored[static_cast<size_t>(shift + (n * vocab + id) * dim + d)]);
            }
            const double rounding = unit_roundoff(dtype) * std::fabs(static_cast<double>(sum));
            const double error = std::fabs(got[static_cast<size_t>(i)] - static_cast<double>(sum));
            wrong += dtype == Dtype::fp32 ? error != 0 : !(error <= rounding);
          }
          INFO(to_string(context.device()) << " " << dtype_name(dtype) << " dim " << dim);
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("embedding: what is wrong with bags is named") {
  const Context cpu = Context::cpu();
  Tensor table(cpu, Dtype::fp32, {2, 3, 4}), y(cpu, Dtype::fp32, {3, 8}),
      ids(cpu, Dtype::int64, {5}), offsets(cpu, Dtype::int64, {4}),
      short_ids(cpu, Dtype::int32, {4}), no_offsets(cpu, Dtype::int64, {0}),
      few(cpu, Dtype::int64, {3});
  const EmbeddingProblem sum = with(Bag::sum, true);
  CHECK_NOTHROW(describe_embedding({ids, table, y, offsets}, sum));
  CHECK_THROWS_MATCHES(
      describe_embedding({ids, table, y, few}, sum), Error,
      Message("embedding: y is [3, 8], expected [bags, num_members * dim] = [2, 8]"));
  CHECK_THROWS_MATCHES(describe_embedding({ids, table, y, short_ids}, sum), Error,
                       Message("embedding: offsets is int32, expected dtype = int64"));
  CHECK_THROWS_MATCHES(describe_embedding({ids, table, y, no_offsets}, sum), Error,
                       Message("embedding: offsets is [0], expected one more than there are bags"));
  CHECK_THROWS_MATCHES(
      describe_embedding({ids, table, y, offsets}, with(Bag::sum, false)), Error,
      Message("embedding: ids is [5], expected [num_members, count] with num_members = 2"));
  const TensorView strided(ids.data(), Dtype::int64, {2}, Strides{2}, Device{});
  CHECK_THROWS_MATCHES(describe_embedding({strided, table, y, offsets}, sum), Error,
                       Message("embedding: ids has strides [2], expected a last stride of 1"));
  CHECK_THROWS_MATCHES(describe_embedding({ids, table, y, offsets}, {}), Error,
                       Message("embedding: offsets is present, expected none without bags"));
  EmbeddingProblem bad = sum;
  bad.checked = true;
  CHECK_THROWS_MATCHES(
      describe_embedding({ids, table, y, offsets}, bad), Error,
      Message("embedding: checked is set, expected not with bags: theirs are NaN"));
  bad = sum;
  bad.padding_id = 3;
  CHECK_THROWS_MATCHES(describe_embedding({ids, table, y, offsets}, bad), Error,
                       Message("embedding: padding_id is 3, expected -1 or an id below vocab = 3"));
  bad = sum;
  bad.max_norm = 1;
  CHECK_THROWS_MATCHES(
      describe_embedding({ids, table, y, offsets}, bad), Error,
      Message("embedding: max_norm is 1, expected 0: looking rows up would rewrite rows that "
              "others read; scale them down before prepare_weights()"));
}
