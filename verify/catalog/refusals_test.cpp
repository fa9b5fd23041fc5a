// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What every plan of every primitive refuses: names that it does not know, a workspace that is too
// small, nowhere, or askew, and on CUDA the stream of the CPU.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "bench/cases/expand.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/session.hpp"
#include "wide/catalog.hpp"
#include "wide/error.hpp"

namespace wide::test {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

catalog::Case first_case(const catalog::PrimitiveSpec& spec) {
  return bench::expand(spec, catalog::find_sweep(spec, "ci"), {}).cases.front();
}

void check_workspace(Session& session, const catalog::PrimitiveSpec& spec,
                     const catalog::Prepared& prepared) {
  const int64_t bytes = prepared.workspace_bytes;
  Tensor memory(session.context(), Dtype::uint8, {bytes + 1});
  const VendorHandles handles(session.context());
  const std::string name(spec.name);
  const auto refuses = [&](Workspace workspace, const std::string& message) {
    CHECK_THROWS_MATCHES(prepared.run({session.stream(), workspace, &handles}), Error,
                         MessageMatches(ContainsSubstring(message)));
  };
  refuses({memory.data(), bytes - 1},
          "workspace is " + std::to_string(bytes - 1) +
              " bytes, expected workspace_bytes = " + std::to_string(bytes));
  refuses({nullptr, bytes}, "workspace is a null pointer, expected " + std::to_string(bytes));
  refuses({static_cast<char*>(memory.data()) + 1, bytes}, "workspace is not aligned");
}

void check_stream(Session& session, const catalog::Prepared& prepared) {
  Tensor workspace(session.context(), Dtype::uint8, {prepared.workspace_bytes});
  const VendorHandles handles(session.context());
  const Execution execution{Stream::cpu(), {workspace.data(), workspace.bytes()}, &handles};
  CHECK_THROWS_MATCHES(
      prepared.run(execution), Error,
      MessageMatches(ContainsSubstring("stream is null, as Stream::cpu() is, expected")));
}

}  // namespace

TEST_CASE("every primitive refuses unknown strategies and policies, bad workspaces and streams") {
  int64_t with_workspace = 0;
  for (const Context& context : devices_at_hand()) {
    Session session(context);
    for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
      const auto workload = spec->make_workload(context, first_case(*spec), {});
      INFO(spec->name << " on " << to_string(context.device()));
      CHECK_THROWS_MATCHES(workload->prepare({.strategy = "no_such"}), Error,
                           MessageMatches(ContainsSubstring("strategy is \"no_such\"")));
      for (const catalog::StrategyInfo& info : spec->strategies) {
        if (info.device != context.device().type) continue;
        INFO(info.name);
        const std::string name(info.name);
        if (!workload->unsupported_reason(name).empty()) continue;
        CHECK_THROWS_MATCHES(
            workload->prepare({.strategy = name, .policy = "no_such"}), Error,
            MessageMatches(ContainsSubstring("policy") && ContainsSubstring("\"no_such\"")));
        const catalog::Prepared prepared = workload->prepare({.strategy = name});
        if (info.device == DeviceType::cuda) check_stream(session, prepared);
        CHECK(prepared.workspace_bytes % kWorkspaceAlignment == 0);
        if (prepared.workspace_bytes == 0) continue;
        ++with_workspace;
        check_workspace(session, *spec, prepared);
      }
    }
  }
  CHECK(with_workspace > 0);
}

}  // namespace wide::test
