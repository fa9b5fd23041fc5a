// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a host says of itself, by folders that a test makes: known, unknown, and nonsense.
#include "bench/machine/host_state.hpp"

#include <unistd.h>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/machine/host_load.hpp"
#include "verify/support/folder.hpp"

namespace wide::bench {
namespace {

constexpr const char* kBus = "0000:3B:00.0";  // as a runtime may spell it

/// A root with what a test writes below it.
class Root {
 public:
  Root& with(const std::string& path, const std::string& text) {
    std::filesystem::create_directories("." / std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return *this;
  }
  Root& with_nodes(int count) {
    for (int i = 0; i < count; ++i)
      std::filesystem::create_directories("sys/devices/system/node/node" + std::to_string(i));
    return *this;
  }
  HostState state(const std::string& bus = "") const { return host_state(bus, "."); }

 private:
  test::TemporaryFolder folder_;  // and the current one
};

constexpr const char* kGovernor = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
constexpr const char* kGroups = "proc/1/cgroup";
constexpr const char* kNode = "sys/bus/pci/devices/0000:3b:00.0/numa_node";

TEST_CASE("a host that says nothing is not known") {
  CHECK(Root().state() == HostState());
  CHECK(Root().state(kBus) == HostState());
  CHECK(host_state("", "/no/such/root") == HostState());
}

TEST_CASE("the governor is the first CPU's") {
  CHECK(Root().with(kGovernor, "powersave\n").state().governor == "powersave");
  CHECK(Root().with(kGovernor, "performance").state().governor == "performance");
  CHECK(Root().with(kGovernor, "").state().governor.empty());
}

TEST_CASE("a container is told by its marks, a host by systemd, and neither is guessed") {
  CHECK(Root().with(".dockerenv", "").state().in_container == true);
  CHECK(Root().with("run/.containerenv", "").state().in_container == true);
  CHECK(Root().with("run/systemd/container", "lxc\n").state().in_container == true);
  for (const std::string group :
       {"1:cpu:/docker/0123", "0::/kubepods.slice/pod1", "0::/machine.slice/libpod-1.scope",
        "5:cpu:/system.slice/containerd.service", "0::/lxc.payload.a/init.scope"}) {
    INFO(group);
    CHECK(Root().with(kGroups, "9:pids:/\n" + group + "\n").state().in_container == true);
  }
  CHECK(Root().with(kGroups, "0::/init.scope\n").state().in_container == false);
  CHECK(Root().with(kGroups, "2:cpu:/\n1:name=systemd:/init.scope\n").state().in_container ==
        false);
  CHECK(Root().with(kGroups, "0::/\n").state().in_container == std::nullopt);
  CHECK(Root().with(kGroups, "0::/init.scope\n").with(".dockerenv", "").state().in_container ==
        true);
}

TEST_CASE("the node is the device's, or that of a host which has one") {
  CHECK(Root().with_nodes(2).state().numa_nodes == 2);
  CHECK(Root().with_nodes(2).state().numa_node == std::nullopt);
  CHECK(Root().with_nodes(1).state().numa_node == 0);
  CHECK(Root().with_nodes(2).with(kNode, "1\n").state(kBus).numa_node == 1);
  CHECK(Root().with_nodes(2).with(kNode, "1\n").state("0000:3c:00.0").numa_node == std::nullopt);
  CHECK(Root().with_nodes(2).with(kNode, "-1\n").state(kBus).numa_node == std::nullopt);
  CHECK(Root().with_nodes(1).with(kNode, "-1\n").state(kBus).numa_node == 0);
  CHECK(Root().with_nodes(2).with(kNode, "99999999999999999999").state(kBus).numa_node ==
        std::nullopt);
  CHECK(Root().with("sys/devices/system/node/node0x/cpu", "").state().numa_nodes == std::nullopt);
  CHECK(Root().with("sys/devices/system/node/power/x", "").state().numa_nodes == std::nullopt);
}

TEST_CASE("what others took of a CPU is said, in cores") {
  Root root;
  CHECK_FALSE(host_load("."));
  root.with("proc/stat", "cpu  1000 200 300 9000 50 60 70 80 900 9\ncpu0 1 2 3\n");
  const double tick_s = 1 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto read = host_load(".");
  REQUIRE(read);
  CHECK(read->busy_s == Catch::Approx(1630 * tick_s));
  CHECK(read->stolen_s == Catch::Approx(80 * tick_s));
  CHECK(read->own_s > 0);
  root.with("proc/stat", "cpu  1000 200\n");
  CHECK_FALSE(host_load("."));

  using Codes = std::vector<std::string>;
  const auto codes = [](double wall_s, double busy_s, double stolen_s, double own_s) {
    Codes all;
    for (const EnvironmentCheck& check :
         load_checks({100, 50, 5, 7}, {100 + wall_s, 50 + busy_s, 5 + stolen_s, 7 + own_s}))
      all.push_back(check.code);
    return all;
  };
  CHECK(codes(10, 20.4, 0.4, 20).empty());
  CHECK(codes(10, 20.6, 0, 20) == Codes{"E_LOAD"});
  CHECK(codes(10, 20, 0.6, 20) == Codes{"E_STEAL"});
  CHECK(codes(10, 30, 1, 20) == Codes{"E_LOAD", "E_STEAL"});
  CHECK(codes(1, 1.09, 0.09, 1).empty());  // too few ticks
  CHECK(codes(10, 15, 0, 20).empty());
  const EnvironmentCheck check = load_checks({0, 0, 0, 0}, {10, 24.6, 0, 20}).at(0);
  CHECK(check.severity == "warn");
  CHECK_THAT(check.text,
             Catch::Matchers::ContainsSubstring("others used 46% of a core while cases ran"));
}

}  // namespace
}  // namespace wide::bench
