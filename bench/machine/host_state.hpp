// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What Linux reports of the host beyond its hardware, read from files below a root folder.
#pragma once

#include <filesystem>
#include <string>

#include "bench/document/result.hpp"

namespace wide::bench {

/// For the GPU at this address on the bus ("0000:3b:00.0"); empty: for the CPU.
///   governor    of the first CPU, if the kernel scales clocks
///   container   true: /.dockerenv, /run/.containerenv or /run/systemd/container is there, or the
///               first process' cgroup is one of Docker, Podman, containerd, LXC or Kubernetes;
///               false: that cgroup is systemd's own (init.scope); otherwise unknown
///   numa_node   the GPU's; or the only one of the host
///   numa_nodes  of the host
HostState host_state(const std::string& pci_bus_id, const std::filesystem::path& root = "/");

}  // namespace wide::bench
