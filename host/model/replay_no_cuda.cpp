// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Without CUDA there is no context that calls this.
#include "host/core/check.hpp"
#include "host/model/replay.hpp"

namespace wide {

std::unique_ptr<Replay> capture_replay(const Context&, const std::function<void(Stream)>&) {
  no_cuda("model");
}

}  // namespace wide
