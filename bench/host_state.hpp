// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What Linux says of the host beyond its hardware, read from files below a root folder.
#pragma once

#include <filesystem>
#include <string>

#include "bench/result.hpp"

namespace wide::bench {

/// Of the GPU at this address on the bus ("0000:3b:00.0"); empty: of the CPU.
///   governor    of the first CPU, where the kernel scales clocks
///   container   true: /.dockerenv, /run/.containerenv or /run/systemd/container is there, or the
///               first process' cgroup is one of Docker, Podman, containerd, LXC or Kubernetes;
///               false: that cgroup is systemd's own (init.scope); else nobody can tell
///   numa_node   the GPU's, or that of a host which has one only
///   numa_nodes  of the host
HostState host_state(const std::string& pci_bus_id, const std::filesystem::path& root = "/");

}  // namespace wide::bench
