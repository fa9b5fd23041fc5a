// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From sweeps and overrides to cases, on a primitive made for the purpose and on those of the
// catalogue.
#include "bench/cases/expand.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

/// heads must divide d.
catalog::PrimitiveSpec heads_spec() {
  catalog::PrimitiveSpec spec;
  spec.name = "heads";
  spec.axes = {{"n", "", int64_t{4}, {}, 1},
               {"d", "", int64_t{8}, {}, 1},
               {"heads", "", int64_t{2}, {}, 1},
               {"dtype", "", std::string("fp32"), {"fp32", "fp16"}, 0}};
  spec.sweeps = {{"quick", {{"n", {int64_t{1}, int64_t{2}}}, {"heads", {int64_t{2}, int64_t{4}}}}}};
  spec.impossible_reason = [](const catalog::Case& point) -> std::string {
    const int64_t heads = point.integer("heads"), d = point.integer("d");
    if (d % heads == 0) return "";
    return std::to_string(heads) + " heads do not divide d = " + std::to_string(d);
  };
  return spec;
}

std::vector<std::string> texts(const Expansion& expansion) {
  std::vector<std::string> list;
  for (const auto& point : expansion.cases) list.push_back(point.to_string());
  return list;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("the last axis runs fastest") {
  const auto spec = heads_spec();
  CHECK(texts(expand(spec, spec.sweeps[0], {})) ==
        Texts{"n=1 heads=2", "n=1 heads=4", "n=2 heads=2", "n=2 heads=4"});
}

TEST_CASE("an override takes an axis' place, or is added behind the sweep's") {
  const auto spec = heads_spec();
  const std::vector<AxisOverride> changes{{"dtype", "fp16,fp32", false}, {"n", "3", false}};
  CHECK(texts(expand(spec, spec.sweeps[0], changes)) ==
        Texts{"n=3 heads=2 dtype=fp16", "n=3 heads=2 dtype=fp32", "n=3 heads=4 dtype=fp16",
              "n=3 heads=4 dtype=fp32"});
  const std::vector<AxisOverride> powers{{"n", "1:3", true}, {"heads", "1", false}};
  CHECK(texts(expand(spec, spec.sweeps[0], powers)) ==
        Texts{"n=2 heads=1", "n=4 heads=1", "n=8 heads=1"});
}

TEST_CASE("impossible points are counted by reason, never dropped silently") {
  const auto spec = heads_spec();
  const std::vector<AxisOverride> changes{{"heads", "2,3,5,12", false}};
  const Expansion expansion = expand(spec, spec.sweeps[0], changes);
  CHECK(texts(expansion) == Texts{"n=1 heads=2", "n=2 heads=2"});
  CHECK(expansion.impossible ==
        std::map<std::string, int64_t>{{"3 heads do not divide d = 8", 2},
                                       {"5 heads do not divide d = 8", 2},
                                       {"12 heads do not divide d = 8", 2}});
}

TEST_CASE("an axis that the primitive lacks is an error that names both") {
  const auto spec = heads_spec();
  const std::vector<AxisOverride> changes{{"head", "2", false}};
  CHECK_THROWS_MATCHES(expand(spec, spec.sweeps[0], changes), Error,
                       MessageMatches(ContainsSubstring("heads: unknown axis \"head\"") &&
                                      ContainsSubstring("did you mean heads")));
}

TEST_CASE("too many points are refused before they take the memory") {
  const auto spec = heads_spec();
  const std::vector<AxisOverride> changes{{"n", "1:2000", false}, {"d", "1:2000", false}};
  CHECK_THROWS_MATCHES(expand(spec, spec.sweeps[0], changes), Error,
                       MessageMatches(ContainsSubstring("at most 1000000")));
}

TEST_CASE("the sweeps of the catalogue have the sizes they were published with") {
  const auto count = [](const char* op, const char* preset) {
    const auto& spec = catalog::find_primitive(op);
    const Expansion expansion = expand(spec, catalog::find_sweep(spec, preset), {});
    size_t points = expansion.cases.size();
    for (const auto& [reason, number] : expansion.impossible) points += static_cast<size_t>(number);
    return points;
  };
  CHECK(count("linear", "quick") == 4);
  CHECK(count("linear", "full") == 11 * 4 * 4);
  CHECK(count("linear", "ci") == 2);
  CHECK(count("embedding", "full") == 6 * 4 * 3 * 3 * 3);
  CHECK(count("layernorm", "full") == 7 * 4 * 4 * 4);
  CHECK(count("rmsnorm", "full") == 7 * 4 * 4 * 4);
  CHECK(count("batchnorm1d", "full") == 7 * 4 * 4 * 4);
  CHECK(count("batchnorm2d", "full") == 7 * 4 * 4 * 9);  // heights by widths
}

TEST_CASE("linear: in and out override d, each alone") {
  const auto& spec = catalog::find_primitive("linear");
  const std::vector<AxisOverride> changes{{"in", "96", false}, {"n", "3", false}};
  const Expansion expansion = expand(spec, catalog::find_sweep(spec, "ci"), changes);
  REQUIRE(expansion.cases.size() == 1);
  const auto workload =
      spec.make_workload(Context::cpu(), expansion.cases[0], catalog::WorkloadOptions{});
  CHECK(workload->row_length(0) == 256);
  CHECK(workload->cost().flops >= 2.0 * 3 * 16 * 96 * 256);
  CHECK(workload->cost().flops < 2.1 * 3 * 16 * 96 * 256);
}

}  // namespace wide::bench
