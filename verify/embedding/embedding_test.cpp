// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/embedding.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/embedding/embedding_strategy.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/known_devices.hpp"
#include "wide/error.hpp"

using namespace wide;
using Catch::Matchers::Message;

namespace {

template <class T>
Tensor upload(const Context& context, Dtype dtype, const Shape& shape,
              const std::vector<T>& values) {
  Tensor tensor(context, dtype, shape);
  const OwnedStream stream(context);
  copy(ConstTensorView(values.data(), dtype, shape, Device{}), tensor, stream.get());
  context.synchronize(stream.get());
  return tensor;
}

std::vector<float> download(const Context& context, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  const OwnedStream stream(context);
  copy(tensor, TensorView(values.data(), Dtype::fp32, tensor.shape(), Device{}), stream.get());
  context.synchronize(stream.get());
  return values;
}

std::vector<std::string> strategies(const Context& context, bool have_shared_ids = true) {
  if (context.device().type == DeviceType::cpu) return {"sequential", "wide", "auto"};
  if (!have_shared_ids) return {"sequential", "indexed", "auto"};
  return {"sequential", "indexed", "gather", "auto"};
}

/// table[n, v, d] = 100 n + 10 v + d.
std::vector<float> coded_table(int64_t members, int64_t vocab, int64_t dim) {
  std::vector<float> table;
  for (int64_t n = 0; n < members; ++n) {
    for (int64_t v = 0; v < vocab; ++v) {
      for (int64_t d = 0; d < dim; ++d) table.push_back(static_cast<float>(100 * n + 10 * v + d));
    }
  }
  return table;
}

void run(const Context& context, const EmbeddingPlan& plan, const EmbeddingArguments& arguments,
         bool checks = false) {
  const OwnedStream stream(context);
  Tensor workspace(context, Dtype::int32, {plan.workspace_bytes() / 4});
  const Execution execution{stream.get(), {workspace.data(), workspace.bytes()}};
  plan.run(arguments, execution);
  context.synchronize(stream.get());
  if (checks) plan.check(execution);
}

}  // namespace

TEST_CASE("embedding: a case worked out by hand, shared ids and own ids") {
  for (const Context& context : test::devices_at_hand()) {
    Tensor table = upload(context, Dtype::fp32, {2, 3, 2}, coded_table(2, 3, 2));
    Tensor shared = upload<int64_t>(context, Dtype::int64, {1, 2}, {2, 0});
    Tensor own = upload<int32_t>(context, Dtype::int32, {1, 2, 2}, {2, 0, 1, 1});
    Tensor y(context, Dtype::fp32, {1, 2, 4});
    for (const std::string& strategy : strategies(context)) {
      INFO(to_string(context.device()) << " " << strategy);
      const EmbeddingArguments with_shared{shared, table, y, {}}, with_own{own, table, y, {}};
      run(context, make_embedding_plan(context, describe_embedding(with_shared), {strategy}),
          with_shared);
      CHECK(download(context, y) == std::vector<float>{20, 21, 120, 121, 0, 1, 100, 101});
      if (strategy == "gather") continue;
      EmbeddingProblem like;
      like.shared_ids = false;
      run(context, make_embedding_plan(context, describe_embedding(with_own, like), {strategy}),
          with_own);
      CHECK(download(context, y) == std::vector<float>{20, 21, 110, 111, 0, 1, 110, 111});
    }
  }
}

TEST_CASE("embedding: an id out of range reads nothing, fills its row with NaN and is reported") {
  struct Bad {
    int64_t id;
    size_t place;
    const char* message;
  };
  const Bad bads[] = {{-1, 1, "embedding: ids[b=0, t=1] is -1, expected 0 <= id < 3"},
                      {3, 5, "embedding: ids[b=1, t=2] is 3, expected 0 <= id < 3"},
                      {std::numeric_limits<int64_t>::min(), 0,
                       "embedding: ids[b=0, t=0] is -9223372036854775808, expected 0 <= id < 3"},
                      {std::numeric_limits<int64_t>::max(), 3,
                       "embedding: ids[b=1, t=0] is 9223372036854775807, expected 0 <= id < 3"}};
  for (const Context& context : test::devices_at_hand()) {
    Tensor table = upload(context, Dtype::fp32, {2, 3, 5}, coded_table(2, 3, 5));
    Tensor y(context, Dtype::fp32, {2, 3, 10});
    for (const std::string& strategy : strategies(context)) {
      for (const Bad& bad : bads) {
        std::vector<int64_t> ids{0, 1, 2, 2, 1, 0};
        ids[bad.place] = bad.id;
        Tensor on_device = upload(context, Dtype::int64, {2, 3}, ids);
        const EmbeddingArguments arguments{on_device, table, y, {}};
        EmbeddingProblem problem = describe_embedding(arguments);
        run(context, make_embedding_plan(context, problem, {strategy}),
            arguments);  // unchecked: no throw
        const std::vector<float> got = download(context, y);
        for (size_t i = 0; i < got.size(); ++i) CHECK(std::isnan(got[i]) == (i / 10 == bad.place));
        problem.checked = true;
        const EmbeddingPlan plan = make_embedding_plan(context, problem, {strategy});
        CHECK_THROWS_MATCHES(run(context, plan, arguments, true), Error, Message(bad.message));
      }
    }
  }
}

TEST_CASE("embedding: the report names the member whose own id it is, lowest position first") {
  for (const Context& context : test::devices_at_hand()) {
    Tensor table = upload(context, Dtype::fp32, {3, 4, 1}, coded_table(3, 4, 1));
    Tensor ids = upload<int64_t>(context, Dtype::int64, {1, 3, 2}, {0, 0, 0, 9, 7, 8});
    Tensor good = upload<int64_t>(context, Dtype::int64, {1, 3, 2}, {0, 1, 2, 3, 0, 1});
    Tensor y(context, Dtype::fp32, {1, 2, 3});
    EmbeddingProblem like;
    like.shared_ids = false;
    like.checked = true;
    for (const std::string& strategy : strategies(context, false)) {
      const EmbeddingArguments arguments{ids, table, y, {}}, fine{good, table, y, {}};
      const EmbeddingPlan plan =
          make_embedding_plan(context, describe_embedding(arguments, like), {strategy});
      CHECK_THROWS_MATCHES(run(context, plan, arguments, true), Error,
                           Message("embedding: ids[b=0, n=2, t=0] is 7, expected 0 <= id < 4"));
      CHECK_NOTHROW(run(context, plan, fine, true));
    }
  }
}

TEST_CASE("embedding: rows of every length, alignment and dtype are copied bit for bit") {
  for (const Context& context : test::devices_at_hand()) {
    for (const int64_t dim : {1, 2, 3, 4, 7, 8, 16, 31, 33, 100, 257}) {
      for (const int64_t shift : {0, 1, 2, 4}) {
        const int64_t members = 3, vocab = 5, seq = 7;
        std::vector<float> rows(static_cast<size_t>(shift), -1.0f);
        for (const float value : coded_table(members, vocab, dim)) rows.push_back(value);
        Tensor storage = upload(context, Dtype::fp32, {static_cast<int64_t>(rows.size())}, rows);
        const TensorView table(static_cast<float*>(storage.data()) + shift, Dtype::fp32,
                               {members, vocab, dim}, context.device());
        Tensor ids = upload<int32_t>(context, Dtype::int32, {1, seq}, {4, 0, 3, 3, 1, 2, 4});
        Tensor y(context, Dtype::fp32, {1, seq, members * dim});
        const EmbeddingArguments arguments{ids, table, y, {}};
        for (const std::string& strategy : strategies(context)) {
          run(context, make_embedding_plan(context, describe_embedding(arguments), {strategy}),
              arguments);
          const std::vector<float> got = download(context, y);
          const int id_of[] = {4, 0, 3, 3, 1, 2, 4};
          int64_t wrong = 0;
          for (int64_t i = 0; i < seq * members * dim; ++i) {
            const int64_t t = i / (members * dim), n = i / dim % members, d = i % dim;
            wrong += got[static_cast<size_t>(i)] != static_cast<float>(100 * n + 10 * id_of[t] + d);
          }
          INFO(to_string(context.device())
               << " " << strategy << " dim " << dim << " shift " << shift);
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("embedding: empty problems run") {
  const Context cpu = Context::cpu();
  for (const Shape& ids_shape : {Shape{0, 4}, Shape{4, 0}}) {
    Tensor ids(cpu, Dtype::int64, ids_shape), table(cpu, Dtype::fp32, {2, 3, 4});
    Tensor y(cpu, Dtype::fp32, {ids_shape[0], ids_shape[1], 8});
    CHECK_NOTHROW(
        run(cpu, make_embedding_plan(cpu, describe_embedding({ids, table, y})), {ids, table, y}));
  }
}

TEST_CASE("embedding: each wrong operand is named, with what was got and expected") {
  const Context cpu = Context::cpu();
  Tensor ids(cpu, Dtype::int64, {2, 3}), table(cpu, Dtype::fp32, {4, 5, 6}),
      y(cpu, Dtype::fp32, {2, 3, 24});
  Tensor float_ids(cpu, Dtype::fp32, {2, 3}), flat(cpu, Dtype::fp32, {5, 6}),
      short_y(cpu, Dtype::fp32, {2, 2, 24});
  Tensor half_y(cpu, Dtype::fp16, {2, 3, 24}), own(cpu, Dtype::int64, {2, 3, 3});
  const auto describes = [](const EmbeddingArguments& a, bool is_shared = true) {
    EmbeddingProblem like;
    like.shared_ids = is_shared;
    return describe_embedding(a, like);
  };
  CHECK_THROWS_MATCHES(describes({ids, flat, y}), Error,
                       Message("embedding: table is [5, 6], expected [num_members, vocab, dim]"));
  CHECK_THROWS_MATCHES(describes({float_ids, table, y}), Error,
                       Message("embedding: id_dtype is fp32, expected int32 or int64"));
  CHECK_THROWS_MATCHES(
      describes({ids, table, short_y}), Error,
      Message("embedding: y is [2, 2, 24], expected [batch, seq, num_members * dim] = [2, 3, 24]"));
  CHECK_THROWS_MATCHES(describes({ids, table, half_y}), Error,
                       Message("embedding: y is fp16, expected dtype = fp32"));
  CHECK_THROWS_MATCHES(
      describes({own, table, y}, false), Error,
      Message(
          "embedding: ids is [2, 3, 3], expected [batch, num_members, seq] with num_members = 4"));
  CHECK_THROWS_MATCHES(
      describes({own, table, y}), Error,
      Message("embedding: ids is [2, 3, 3], expected [batch, seq], shared by all members"));
  CHECK_THROWS_AS(
      describes({ids, table, TensorView(table.data(), Dtype::fp32, {2, 3, 24}, Device{})}), Error);
  const EmbeddingPlan plan = make_embedding_plan(cpu, describes({ids, table, y}));
  Tensor fewer(cpu, Dtype::int64, {1, 3}), fewer_y(cpu, Dtype::fp32, {1, 3, 24});
  CHECK_THROWS_MATCHES(plan.run({fewer, table, fewer_y}, {Stream::cpu()}), Error,
                       Message("embedding: ids is [1, 3], expected the plan's batch = 2"));
  Tensor wide_ids(cpu, Dtype::int64, {2, 4}), wide_y(cpu, Dtype::fp32, {6, 25});
  CHECK_THROWS_MATCHES(
      plan.run({wide_ids.view().narrow(1, 0, 3), table, y}, {Stream::cpu()}), Error,
      Message("embedding: the operands' batch stride of ids is 4, expected the plan's = 3"));
  const TensorView apart(wide_y.data(), Dtype::fp32, {2, 3, 24}, Strides{75, 25, 1}, Device{});
  CHECK_THROWS_MATCHES(plan.run({ids, table, apart}, {Stream::cpu()}), Error,
                       Message("embedding: the operands' stride of y is {row 25, member 6}, "
                               "expected the plan's = {row 24, member 6}"));
  CHECK_THROWS_AS(plan.check({Stream::cpu()}), Error);
  CHECK_THROWS_AS(make_embedding_plan(cpu, plan.problem(), {"indxed"}), Error);
  CHECK_THROWS_MATCHES(
      make_embedding_plan(cpu, plan.problem(), {"indexed"}), Error,
      Message("embedding: strategy indexed cannot run this problem: it runs on CUDA "
              "devices only"));
  EmbeddingProblem checked = plan.problem();
  checked.checked = true;
  CHECK_THROWS_MATCHES(make_embedding_plan(cpu, checked).run({ids, table, y}, {Stream::cpu()}),
                       Error,
                       Message("embedding: workspace is 0 bytes, expected workspace_bytes = 256"));
}

constexpr VerifiedStrategy kProved[] = {{"embedding", "indexed", 90}, {"embedding", "bag", 90}};

TEST_CASE("embedding: each kernel says what it is not for") {
  const DeviceInfo& gpu = test::kH200;
  EmbeddingProblem own, bags;
  own.shared_ids = false;
  bags.bag = Bag::sum;
  CHECK(choose_embedding_strategy({}, gpu, "gather", {}).strategy == EmbeddingStrategy::gather);
  CHECK(choose_embedding_strategy(bags, gpu, "auto", kProved).strategy == EmbeddingStrategy::bag);
  CHECK_THROWS_MATCHES(
      choose_embedding_strategy({}, gpu, "bag", {}), Error,
      Message("embedding: strategy bag cannot run this problem: it adds bags up, the "
              "problem has none"));
  CHECK_THROWS_MATCHES(
      choose_embedding_strategy(bags, gpu, "indexed", {}), Error,
      Message(
          "embedding: strategy indexed cannot run this problem: it copies rows, the problem has "
          "bags to be added up"));
  CHECK_THROWS_MATCHES(
      choose_embedding_strategy(own, gpu, "gather", {}), Error,
      Message("embedding: strategy gather cannot run this problem: it looks at one id for all "
              "members, they have ids of their own"));
  CHECK_THROWS_MATCHES(
      choose_embedding_strategy(bags, gpu, "gather", {}), Error,
      Message("embedding: strategy gather cannot run this problem: it copies rows, the problem has "
              "bags to be added up"));
}

TEST_CASE("embedding: AUTO takes a verified kernel only, and says why") {
  const DeviceInfo& h200 = test::kH200;
  CHECK(choose_embedding_strategy({}, h200, "auto", kProved).strategy ==
        EmbeddingStrategy::indexed);
  const EmbeddingChoice unverified = choose_embedding_strategy({}, h200, "auto", {});
  CHECK(unverified.strategy == EmbeddingStrategy::sequential);
  CHECK(unverified.explain ==
        "sequential: a launch per member of indexed, which is unverified on compute capability 90; "
        "no vendor's library can run it; bag: it adds bags up, the problem has none");
  CHECK(choose_embedding_strategy({}, h200, "indexed", {}).strategy == EmbeddingStrategy::indexed);
  CHECK(choose_embedding_strategy({}, DeviceInfo{}, "auto", {}).strategy ==
        EmbeddingStrategy::wide);
}

TEST_CASE("embedding: restore_weights undoes prepare_weights") {
  const Context cpu = Context::cpu();
  std::vector<Tensor> tables;
  std::vector<ConstTensorView> members;
  for (int n = 0; n < 3; ++n)
    members.push_back(tables.emplace_back(
        upload(cpu, Dtype::fp32, {5, 2}, std::vector<float>(10, static_cast<float>(n)))));
  const EmbeddingPlan plan =
      make_embedding_plan(cpu, {.num_members = 3, .batch = 1, .seq = 1, .vocab = 5, .dim = 2});
  Tensor packed(cpu, Dtype::fp32, {3, 5, 2});
  plan.prepare_weights(members, packed, Stream::cpu());
  std::vector<Tensor> back;
  std::vector<TensorView> targets;
  for (int n = 0; n < 3; ++n) targets.push_back(back.emplace_back(cpu, Dtype::fp32, Shape{5, 2}));
  plan.restore_weights(packed, targets, Stream::cpu());
  for (size_t n = 0; n < 3; ++n) CHECK(download(cpu, back[n]) == download(cpu, tables[n]));
  CHECK_THROWS_AS(plan.prepare_weights(members, Tensor(cpu, Dtype::fp32, {3, 2, 5}), Stream::cpu()),
                  Error);
}
