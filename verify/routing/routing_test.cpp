// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/routing.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <random>
#include <vector>

#include "kernels/routing/routing_chunks.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "wide/error.hpp"

namespace wide::test {
namespace {

constexpr int32_t kGuard = -7;
constexpr int64_t kGuards = 64;

/// What a call writes.
struct Routed {
  std::vector<int32_t> first_rows, order;
  friend bool operator==(const Routed&, const Routed&) = default;
};

/// By definition, one row after another.
Routed expected(const std::vector<int64_t>& ids, int64_t num_members, int64_t first_id = 0) {
  std::vector<std::vector<int32_t>> rows(static_cast<size_t>(num_members) + 1);
  for (size_t r = 0; r < ids.size(); ++r) {
    const bool is_routed = ids[r] >= first_id && ids[r] - first_id < num_members;
    auto& own = is_routed ? rows[static_cast<size_t>(ids[r] - first_id)] : rows.back();
    own.push_back(static_cast<int32_t>(r));
  }
  Routed routed;
  for (const auto& own : rows) {
    routed.first_rows.push_back(static_cast<int32_t>(routed.order.size()));
    routed.order.insert(routed.order.end(), own.begin(), own.end());
  }
  return routed;
}

/// `values` behind `shift` others, so that addresses are multiples of the element's size only.
template <class T>
Tensor upload(const Context& context, Dtype dtype, const std::vector<T>& values, size_t shift) {
  std::vector<T> shifted(shift, T(1));
  shifted.insert(shifted.end(), values.begin(), values.end());
  const Shape shape{static_cast<int64_t>(shifted.size())};
  Tensor tensor(context, dtype, shape);
  const OwnedStream stream(context);
  copy(ConstTensorView(shifted.data(), dtype, shape, Device{}), tensor, stream.get());
  context.synchronize(stream.get());
  return tensor;
}

std::vector<int32_t> download(const Context& context, const Tensor& tensor) {
  std::vector<int32_t> values(static_cast<size_t>(tensor.num_elements()));
  const OwnedStream stream(context);
  copy(tensor, TensorView(values.data(), Dtype::int32, tensor.shape(), Device{}), stream.get());
  context.synchronize(stream.get());
  return values;
}

/// int32 numbers on a device between others that nobody may write.
class Guarded {
 public:
  Guarded(const Context& context, int64_t count)
      : context_(context),
        count_(count),
        buffer_(upload(context, Dtype::int32,
                       std::vector<int32_t>(static_cast<size_t>(count + 2 * kGuards), kGuard), 0)) {
  }

  TensorView view() const {
    return TensorView(static_cast<int32_t*>(buffer_.view().data) + kGuards, Dtype::int32, {count_},
                      context_.device());
  }
  std::vector<int32_t> values() const {
    const std::vector<int32_t> all = download(context_, buffer_);
    const auto is_guard = [](int32_t value) { return value == kGuard; };
    CHECK(std::all_of(all.begin(), all.begin() + kGuards, is_guard));
    CHECK(std::all_of(all.end() - kGuards, all.end(), is_guard));
    return {all.begin() + kGuards, all.end() - kGuards};
  }

 private:
  Context context_;
  int64_t count_;
  mutable Tensor buffer_;
};

struct Options {
  int64_t first_id = 0;
  Dtype id_dtype = Dtype::int64;
  size_t shift = 0;
  Shape shape{};  ///< of ids; none: [R]
};

Routed route(const Context& context, const std::vector<int64_t>& ids, int64_t num_members,
             const std::string& strategy, const Options& options = {}) {
  const bool is_int64 = options.id_dtype == Dtype::int64;
  const Tensor on_device =
      is_int64 ? upload(context, Dtype::int64, ids, options.shift)
               : upload(context, Dtype::int32, std::vector<int32_t>(ids.begin(), ids.end()),
                        options.shift);
  const auto rows = static_cast<int64_t>(ids.size());
  const auto bytes = static_cast<int64_t>(options.shift) * dtype_bytes(options.id_dtype);
  const auto* data = static_cast<const char*>(on_device.view().data) + bytes;
  const Guarded first_rows(context, num_members + 1), order(context, rows);
  const RoutingArguments arguments{
      ConstTensorView(data, options.id_dtype,
                      options.shape.rank() == 0 ? Shape{rows} : options.shape, context.device()),
      first_rows.view(), order.view()};
  RoutingProblem like;
  like.first_id = options.first_id;
  const RoutingPlan plan =
      make_routing_plan(context, describe_routing(arguments, like), {.strategy = strategy});
  const OwnedStream stream(context);
  const Guarded workspace(context, plan.workspace_bytes() / 4);  // 256 bytes of guards
  plan.run(arguments, {stream.get(), {workspace.view().data, plan.workspace_bytes()}});
  context.synchronize(stream.get());
  workspace.values();
  return {first_rows.values(), order.values()};
}

/// With every strategy of every device.
void check(const std::vector<int64_t>& ids, int64_t num_members, const Options& options = {}) {
  const Routed right = expected(ids, num_members, options.first_id);
  for (const Context& context : devices_at_hand()) {
    for (const char* strategy : {"sequential", "wide", "auto"}) {
      INFO(to_string(context.device())
           << " " << strategy << ", " << ids.size() << " rows, " << num_members << " members");
      CHECK((route(context, ids, num_members, strategy, options) == right));
    }
  }
}

/// Of these members and, `dropped` times in a hundred, of nobody.
std::vector<int64_t> random_ids(int64_t num_rows, int64_t num_members, int dropped,
                                int64_t first_id, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> ids;
  for (int64_t r = 0; r < num_rows; ++r) {
    const auto member = static_cast<int64_t>(random() % static_cast<uint64_t>(num_members));
    const bool is_dropped = random() % 100 < static_cast<uint64_t>(dropped);
    ids.push_back(is_dropped ? -1 - member : first_id + member);
  }
  return ids;
}

}  // namespace

TEST_CASE("routing: a case worked out by hand") {
  const std::vector<int64_t> ids{2, 0, 3, 2, -1, 0, 2};
  const Routed right{{0, 2, 2, 5}, {1, 5, 0, 3, 6, 2, 4}};
  CHECK((expected(ids, 3) == right));
  for (const Context& context : devices_at_hand()) {
    for (const char* strategy : {"sequential", "wide"}) {
      CHECK((route(context, ids, 3, strategy) == right));
      // The second half of six members, for whom rows 0, 3 and 6 are.
      const Routed part{{0, 2, 2, 5}, {2, 5, 1, 3, 4, 0, 6}};
      CHECK((route(context, {7, 5, 3, 5, 5, 3, 2}, 3, strategy, {.first_id = 3}) == part));
    }
  }
}

TEST_CASE("routing: members are those of the ids, however far others are from them") {
  using Limits = std::numeric_limits<int64_t>;
  using Limits32 = std::numeric_limits<int32_t>;
  check({Limits::min(), 0, Limits::max(), 1, -1, 2, Limits::min() + 1, int64_t{1} << 32, 1}, 2);
  check({Limits::min(), Limits::max() - 3, Limits::max(), Limits::min() + 1, Limits::max() - 4,
         Limits::max() - 1, Limits::max() - 2, 0},
        3, {.first_id = Limits::max() - 3});
  check({Limits32::min(), 0, Limits32::max(), 1, -1, 2, Limits32::min() + 1, 1}, 2,
        {.id_dtype = Dtype::int32});
  check({Limits32::max() - 1, 0, Limits32::max(), Limits32::min()}, 2,
        {.first_id = Limits32::max() - 1, .id_dtype = Dtype::int32});
}

TEST_CASE("routing: ids of several choices are those of rows side by side") {
  check({1, 0, 0, 2, 2, 1}, 3, {.shape = {3, 2}});
  check({1, 0, 0, 2, 2, 1}, 3, {.shape = {1, 6}});
}

TEST_CASE("routing: any number of rows, at any address, is in ascending order") {
  uint64_t seed = 0;
  for (const int64_t rows : {0, 1, 31, 33, 1023, 1024, 1025, 2048, 5000}) {
    for (const int64_t members : {1, 2, 7, 33}) {
      const Options options{.first_id = rows % 5,
                            .id_dtype = rows % 2 == 0 ? Dtype::int64 : Dtype::int32,
                            .shift = static_cast<size_t>(rows % 3)};
      check(random_ids(rows, members, 20, options.first_id, ++seed), members, options);
    }
  }
}

TEST_CASE("routing: rows that are all one member's, or nobody's") {
  for (const size_t rows : {100u, 3000u}) {
    for (const int64_t id : {0, 4, 8, 9, -1}) check(std::vector<int64_t>(rows, id), 9);
  }
}

TEST_CASE("routing: more members than a chunk has rows, and than a block has counters at hand") {
  // Of the second and third number, one launch has counters for few warps, and for one.
  for (const int64_t members : {1500, 4000, 12000}) {
    for (const int64_t rows : {700, 13000}) {
      const std::vector<int64_t> ids = random_ids(rows, members, 10, 0, 5);
      const Routed right = expected(ids, members);
      for (const Context& context : devices_at_hand()) {
        INFO(to_string(context.device()) << ", " << members << " members, " << rows << " rows");
        const int64_t bytes = kernels::routing_chunks(members, rows).shared_bytes();
        if (context.device().type == DeviceType::cuda &&
            bytes + kernels::kRoutingStaticBytes > context.info().shared_bytes_per_block) {
          CHECK_THAT(message_of(ErrorCode::unsupported,
                                [&] { (void)route(context, ids, members, "wide"); }),
                     Catch::Matchers::ContainsSubstring("shared memory"));
          continue;
        }
        CHECK((route(context, ids, members, "wide") == right));
      }
    }
  }
}

TEST_CASE("routing: so many rows that chunks grow, and the last has a few") {
  const int64_t rows = 128 * 1024 + 5;
  const std::vector<int64_t> ids = random_ids(rows, 5, 10, 2, 6);
  const Routed right = expected(ids, 5, 2);
  for (const Context& context : devices_at_hand()) {
    for (const char* strategy : {"sequential", "wide"}) {
      CHECK((route(context, ids, 5, strategy, {.first_id = 2}) == right));
      CHECK((route(context, ids, 5, strategy, {.first_id = 2}) == right));  // every time
    }
  }
}

}  // namespace wide::test
