// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A captured graph behind a seam, so that builds without CUDA have none.
#pragma once

#include <functional>
#include <memory>

#include "wide/context.hpp"

namespace wide {

class Replay {
 public:
  virtual ~Replay() = default;
  virtual void launch(Stream stream) const = 0;
};

/// Captures what `enqueue` puts on a stream of the context's device.
std::unique_ptr<Replay> capture_replay(const Context& context,
                                       const std::function<void(Stream)>& enqueue);

}  // namespace wide
