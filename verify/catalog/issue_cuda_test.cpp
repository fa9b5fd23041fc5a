// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What kernels that hardly do more than move bytes issue for each element of x, as the simulated
// GPU counts it in PTX, and which sectors they ask for, where rows or channels are so short that a
// plan for long ones would be lost in its bookkeeping. The limits are what the kernels take, and a
// tenth.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "verify/support/simulation.hpp"
#include "verify/support/traffic.hpp"

namespace wide::test {
namespace {

using Axes = std::vector<std::pair<std::string, catalog::AxisValue>>;

struct Counts {
  double instructions = 0;
  Worst worst;
};

Counts counts_of(Session& session, const char* primitive, const Axes& axes) {
  const catalog::PrimitiveSpec& spec = catalog::find_primitive(primitive);
  const auto workload = spec.make_workload(session.context(), catalog::make_case(spec, axes), {});
  Counts counts;
  const auto launches = launches_of(session, *workload, "wide");
  for (const auto& launch : launches) {
    for (const auto& [name, value] : launch.values) {
      if (name.starts_with("instructions_")) counts.instructions += static_cast<double>(value);
    }
  }
  REQUIRE(counts.instructions > 0);
  counts.worst = worst_streamed(launches);
  return counts;
}

}  // namespace

TEST_CASE("batchnorm1d behind a linear layer: what it issues and asks for") {
  struct Row {
    int64_t members, batch, channels;
    const char *dtype, *mode;
    double instructions, sectors;  ///< for each element; over the bytes of x and y
  };
  const Row rows[] = {{4, 128, 64, "fp32", "train", 41, kAlignedBar},
                      {4, 128, 64, "bf16", "train", 38, kAlignedBar},
                      {4, 128, 64, "fp32", "eval", 22, kAlignedBar},
                      {4, 128, 64, "bf16", "eval", 15, kAlignedBar},
                      {4, 1024, 64, "fp32", "train", 24, kAlignedBar},
                      // Tiles of 256 bytes that begin and end within a sector.
                      {3, 100, 67, "fp32", "train", 104, 1.35},
                      {3, 100, 67, "fp16", "eval", 62, 1.35},
                      {3, 100, 3, "fp32", "train", 114, kAlignedBar}};
  require_simulation();
  Session session(Context::cuda(0));
  for (const Row& row : rows) {
    INFO(row.members << " members of " << row.batch << " x " << row.channels << " " << row.dtype
                     << " " << row.mode);
    const Counts counts = counts_of(session, "batchnorm1d",
                                    {{"n", row.members},
                                     {"batch", row.batch},
                                     {"channels", row.channels},
                                     {"length", int64_t{1}},
                                     {"dtype", std::string(row.dtype)},
                                     {"mode", std::string(row.mode)}});
    const auto elements = static_cast<double>(row.members * row.batch * row.channels);
    CHECK(counts.instructions / elements <= row.instructions);
    INFO(counts.worst.where);
    CHECK(counts.worst.ratio <= row.sectors);
  }
}

TEST_CASE("ensemble of many members with a few outputs: what it issues and asks for") {
  struct Row {
    const char *dtype, *function;
    double instructions;
  };
  const Row rows[] = {{"fp32", "mean", 41}, {"bf16", "mean", 28}, {"fp32", "variance", 55}};
  constexpr double kRowBar = 1.05;  // a row of x is as short as 2000 bytes
  require_simulation();
  Session session(Context::cuda(0));
  for (const Row& row : rows) {
    INFO(row.dtype << " " << row.function);
    const Counts counts = counts_of(session, "ensemble",
                                    {{"n", int64_t{100}},
                                     {"batch", int64_t{32}},
                                     {"d", int64_t{10}},
                                     {"dtype", std::string(row.dtype)},
                                     {"function", std::string(row.function)}});
    CHECK(counts.instructions / (100 * 32 * 10) <= row.instructions);
    INFO(counts.worst.where);
    CHECK(counts.worst.ratio <= kRowBar);
  }
}

TEST_CASE("ensemble's votes: what they issue for each element") {
  struct Row {
    int64_t members, batch, d;
    const char* dtype;
    double instructions;
  };
  const Row rows[] = {{32, 8, 256, "bf16", 19}, {32, 8, 256, "fp32", 29}, {8, 64, 64, "fp32", 39}};
  require_simulation();
  Session session(Context::cuda(0));
  for (const Row& row : rows) {
    INFO(row.members << " members, d " << row.d << " " << row.dtype);
    const Counts counts = counts_of(session, "ensemble",
                                    {{"n", row.members},
                                     {"batch", row.batch},
                                     {"d", row.d},
                                     {"dtype", std::string(row.dtype)},
                                     {"function", std::string("vote")}});
    const auto elements = static_cast<double>(row.members * row.batch * row.d);
    CHECK(counts.instructions / elements <= row.instructions);
  }
}

TEST_CASE("norms of groups and of images: what they issue and ask for") {
  struct Row {
    const char *primitive, *dtype;
    Axes sizes;
    double instructions;
  };
  const Axes images{{"channels", int64_t{32}}, {"height", int64_t{32}}};
  const Row rows[] = {
      {"instancenorm1d", "bf16", {{"channels", int64_t{64}}, {"length", int64_t{512}}}, 28},
      {"instancenorm1d", "bf16", {{"channels", int64_t{128}}, {"length", int64_t{256}}}, 28},
      {"instancenorm1d", "fp32", {{"channels", int64_t{128}}, {"length", int64_t{256}}}, 38},
      {"instancenorm2d", "bf16", images, 31},
      {"instancenorm2d", "fp32", images, 51},
      {"groupnorm",
       "bf16",
       {{"groups", int64_t{4}}, {"group_size", int64_t{8}}, {"height", int64_t{32}}},
       35}};
  require_simulation();
  Session session(Context::cuda(0));
  for (const Row& row : rows) {
    INFO(row.primitive << " " << row.dtype);
    Axes axes{{"n", int64_t{1}}, {"batch", int64_t{1}}, {"dtype", std::string(row.dtype)}};
    axes.insert(axes.end(), row.sizes.begin(), row.sizes.end());
    const Counts counts = counts_of(session, row.primitive, axes);
    CHECK(counts.instructions / (32 * 1024) <= row.instructions);
    INFO(counts.worst.where);
    CHECK(counts.worst.ratio <= kAlignedBar);
  }
}

TEST_CASE("means of whole images: what they issue for each element") {
  struct Row {
    int64_t side;
    const char* dtype;
    double instructions;
  };
  const Row rows[] = {{32, "bf16", 10}, {16, "bf16", 9}, {8, "bf16", 14}, {32, "fp32", 11.5}};
  require_simulation();
  Session session(Context::cuda(0));
  for (const Row& row : rows) {
    INFO(row.side << " x " << row.side << " " << row.dtype);
    const Counts counts = counts_of(session, "pooling",
                                    {{"n", int64_t{2}},
                                     {"batch", int64_t{2}},
                                     {"channels", int64_t{16}},
                                     {"height", row.side},
                                     {"dtype", std::string(row.dtype)},
                                     {"mode", std::string("adaptive_average")}});
    CHECK(counts.instructions / static_cast<double>(64 * row.side * row.side) <= row.instructions);
  }
}

}  // namespace wide::test
