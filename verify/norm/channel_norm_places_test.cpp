// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Norms over channels take chunks of images to 16 bytes and back by another way each for how x and
// y lie, and several channels at once where they lie side by side: none of it may change a bit of
// y or write between images.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <utility>

#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/batchnorm.hpp"
#include "wide/groupnorm.hpp"

using namespace wide;
using test::download;
using test::uniform;
using test::upload;

namespace {

constexpr int64_t kMembers = 2;

struct Sizes {
  int64_t batch, channels, length;
  int64_t images() const { return kMembers * channels; }  ///< of a batch row
  int64_t elements() const { return batch * images() * length; }
};

/// Where images lie in a storage, in elements.
struct Layout {
  Sizes sizes;
  int64_t first, image, row;  ///< from one image to the next, from one batch row to the next

  int64_t at(int64_t number) const {
    const int64_t image_number = number / sizes.length;
    return first + image_number / sizes.images() * row + image_number % sizes.images() * image +
           number % sizes.length;
  }
  int64_t size() const { return first + sizes.batch * row; }
  TensorView view(Tensor& storage) const {
    auto* data = static_cast<std::byte*>(storage.data()) + first * dtype_bytes(storage.dtype());
    return {data,
            storage.dtype(),
            {sizes.batch, sizes.images(), sizes.length},
            Strides{row, image, 1},
            storage.view().device};
  }
};

using Run = std::function<void(const Context&, const TensorView& x, const TensorView& y)>;

/// y, image after image.
std::vector<double> result_of(const Context& context, const Run& run, Dtype dtype,
                              const std::vector<double>& values, const Layout& x_layout,
                              const Layout& y_layout, bool is_in_place) {
  std::vector<double> stored(static_cast<size_t>(x_layout.size()), 99);
  const auto count = static_cast<int64_t>(values.size());
  for (int64_t i = 0; i < count; ++i)
    stored[static_cast<size_t>(x_layout.at(i))] = values[static_cast<size_t>(i)];
  Tensor x = upload(context, dtype, {x_layout.size()}, stored);
  Tensor y = upload(context, dtype, {y_layout.size()},
                    std::vector<double>(static_cast<size_t>(y_layout.size()), 99));
  const TensorView x_view = x_layout.view(x);
  run(context, x_view, is_in_place ? x_view : y_layout.view(y));
  const Layout& layout = is_in_place ? x_layout : y_layout;
  std::vector<double> got = download(context, is_in_place ? x : y), packed;
  for (int64_t i = 0; i < count; ++i) {
    double& value = got[static_cast<size_t>(layout.at(i))];
    packed.push_back(value);
    value = 99;
  }
  CHECK(got == std::vector<double>(got.size(), 99));
  return packed;
}

void run_batchnorm(BatchnormMode mode, const Context& context, const TensorView& x,
                   const TensorView& y) {
  const int64_t images = x.shape[1];
  const auto parameters = [&](Dtype dtype, uint64_t seed) {
    return upload(context, dtype, {kMembers, images / kMembers}, uniform(images, 0.5, 1, seed));
  };
  Tensor gamma = parameters(x.dtype, 1), beta = parameters(x.dtype, 2);
  Tensor mean = parameters(Dtype::fp32, 3), variance = parameters(Dtype::fp32, 4);
  const BatchnormArguments arguments{x, gamma, beta, mean, variance, y, {}, {}};
  const BatchnormProblem like{.num_members = kMembers, .mode = mode};
  test::run_plan(context,
                 make_batchnorm_plan(context, describe_batchnorm(arguments, like), {"wide"}),
                 arguments);
}

void run_groupnorm(bool has_one_group, const Context& context, const TensorView& x,
                   const TensorView& y) {
  const GroupnormArguments arguments{x, {}, {}, y};
  const int64_t groups = has_one_group ? 1 : x.shape[1] / kMembers;
  const GroupnormProblem like{.num_members = kMembers, .groups = groups};
  test::run_plan(context,
                 make_groupnorm_plan(context, describe_groupnorm(arguments, like), {"wide"}),
                 arguments);
}

}  // namespace

TEST_CASE("norms over channels: wherever images begin, the same bits, and nothing between them") {
  const std::pair<const char*, Run> norms[] = {
      {"batchnorm eval", std::bind_front(run_batchnorm, BatchnormMode::eval)},
      {"batchnorm train", std::bind_front(run_batchnorm, BatchnormMode::train)},
      {"groupnorm", std::bind_front(run_groupnorm, true)},
      {"instancenorm", std::bind_front(run_groupnorm, false)}};
  // Images of less than a vector, a warp's work and a block's; whole vectors and not. Of the short
  // ones so many that a block takes several and the last one fewer: a warp each, a few warps each
  // and in several rounds.
  const Sizes all[] = {{3, 19, 5},  {3, 3, 48},  {2, 3, 120}, {1, 3, 232},
                       {2, 11, 49}, {20, 4, 49}, {3, 3, 800}, {3, 3, 803}};
  for (const Context& context : test::devices_at_hand()) {
    for (const Sizes& sizes : all) {
      const int64_t length = sizes.length, row = sizes.images() * length;
      const Layout packed{sizes, 0, length, row};
      const Layout layouts[] = {packed,
                                {sizes, 1, length, row},
                                {sizes, 3, length, row + 5},
                                {sizes, 6, length + 3, row + 3 * sizes.images() + 2}};
      const auto values = uniform(sizes.elements(), -1, 1, 7);
      for (const Dtype dtype : {Dtype::fp32, Dtype::fp16}) {
        for (const auto& [name, run] : norms) {
          const auto expected = result_of(context, run, dtype, values, packed, packed, false);
          for (const Layout& x : layouts) {
            for (const Layout& y : layouts) {
              if (test::wants_small_cases() && &x != &y && x.first * y.first != 0) continue;
              INFO(to_string(context.device())
                   << " " << name << " " << dtype_name(dtype) << " of " << sizes.batch << " x "
                   << sizes.images() << " x " << length << ": " << x.first << ", " << y.first);
              CHECK(result_of(context, run, dtype, values, x, y, &x == &y) == expected);
            }
          }
        }
      }
    }
  }
}
