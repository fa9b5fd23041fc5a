// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Mixtures of experts as bench measures them: its strategies, and the baseline that gathers rows,
// runs each expert on its own and adds up, against the sum that the reference makes of members.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/run/own_calls.hpp"
#include "host/compare.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/session.hpp"
#include "wide/layers.hpp"
#include "wide/router.hpp"

using namespace wide;
using catalog::AxisValue;
using catalog::Case;
using catalog::PrimitiveSpec;

namespace {

/// Two inputs and two outputs, of which one has no rows of features.
const PrimitiveSpec& experts() {
  static const PrimitiveSpec& spec = catalog::add_model("experts", [] {
    GraphBuilder g("experts");
    const Value x = g.input("x", {kBatch, 6}), steps = g.input("steps", {kBatch, 2, 3});
    const Value h =
        layers::linear(g, "first", layers::add(g, "sum", x, layers::flatten(g, "flat", steps)), 12);
    g.output("y", layers::linear(g, "last", layers::relu(g, "relu", h), 5));
    g.output("image", layers::softmax(g, "soft", layers::reshape(g, "image", h, {kBatch, 3, 4})));
    return std::move(g).build();
  }());
  return spec;
}

Case case_of(const PrimitiveSpec& spec, int64_t choices, Router router,
             std::vector<std::pair<std::string, AxisValue>> values = {}) {
  values.insert(values.end(), {{"n", int64_t{5}},
                               {"batch", int64_t{3}},
                               {"routed", "yes"},
                               {"choices", choices},
                               {"router", std::string(router_name(router))}});
  return catalog::make_case(spec, values);
}

void check_baselines(test::Session& session, catalog::Workload& workload,
                     const catalog::ReferenceSample& reference) {
  const catalog::MemberOutputs alone = session.run_members(workload, workload.prepare_members());
  CHECK(catalog::compare(reference, alone).message == "");
  if (session.context().device().type == DeviceType::cpu) return;
  bench::OwnCalls streams(session.context(), session.stream(), workload, bench::Baseline::streams);
  CHECK(catalog::compare(reference, streams.outputs()).message == "");
}

}  // namespace

TEST_CASE("mixture workload: strategies and baseline give the sums of the reference") {
  for (const Context& context : test::devices_at_hand()) {
    test::Session session(context);
    for (const Router router : kAllRouters) {
      for (const int64_t choices : {1, 2, 5}) {
        if (router == Router::ids && choices == 1) continue;  // no mixture
        for (const Case& point :
             {case_of(experts(), choices, router),
              case_of(catalog::find_primitive("model:deep_mlp"), choices, router,
                      {{"layers", int64_t{3}}, {"hidden", int64_t{24}}, {"dtype", "bf16"}})}) {
          CAPTURE(point.op(), point.to_string(), to_string(context.device()));
          const PrimitiveSpec& spec = catalog::find_primitive(point.op());
          const auto workload = spec.make_workload(context, point, {});
          const catalog::ReferenceSample reference(*workload);
          CHECK((workload->num_outputs() == 1 && workload->rows(0) % 15 == 0));
          for (const char* strategy : {"compiled", "unfused", "sequential"}) {
            if (!workload->unsupported_reason(strategy).empty()) continue;
            const auto outputs = session.run(*workload, strategy);
            CHECK(catalog::compare(reference, outputs).message == "");
          }
          check_baselines(session, *workload, reference);
        }
      }
    }
  }
}

TEST_CASE("mixture workload: all routers give rows to the same members") {
  const auto ids_of = [](Router router) {
    const auto workload =
        experts().make_workload(Context::cpu(), case_of(experts(), 2, router), {});
    const std::vector<catalog::WorkloadInput> inputs = workload->input_views();
    REQUIRE(inputs.size() == (router == Router::gated_ids ? 4 : 3));
    const auto* data = static_cast<const int64_t*>(inputs[2].tensor.data);
    CHECK(inputs[2].name == (router == Router::scores ? "scores" : "member_ids"));
    return router == Router::scores ? std::vector<int64_t>()
                                    : std::vector<int64_t>(data, data + 30);
  };
  const std::vector<int64_t> ids = ids_of(Router::ids);
  CHECK(ids == ids_of(Router::gated_ids));
  CHECK(ids_of(Router::scores).empty());
  for (size_t row = 0; row < ids.size(); row += 2) CHECK(ids[row] != ids[row + 1]);
  CHECK(*std::min_element(ids.begin(), ids.end()) == 0);
  CHECK(*std::max_element(ids.begin(), ids.end()) == 4);
}

TEST_CASE("mixture workload: cases that cannot be say why") {
  const PrimitiveSpec& spec = catalog::find_primitive("model:mlp");
  const auto reason = [&](std::vector<std::pair<std::string, AxisValue>> values) {
    return spec.impossible_reason(catalog::make_case(spec, values));
  };
  CHECK(reason({{"choices", int64_t{2}}}) ==
        "choices is 2 and router is ids, expected 1 and ids, as rows are not routed (routed=yes)");
  CHECK(
      reason({{"router", "scores"}}) ==
      "choices is 1 and router is scores, expected 1 and ids, as rows are not routed (routed=yes)");
  CHECK(reason({{"routed", "yes"}, {"choices", int64_t{5}}}) ==
        "choices is 5, expected at most n = 4");
  CHECK(reason({{"routed", "yes"}, {"choices", int64_t{4}}, {"router", "gated_ids"}}) == "");
}
