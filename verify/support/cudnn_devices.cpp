// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/cudnn_devices.hpp"

#include <dlfcn.h>

#include <catch2/catch_test_macros.hpp>

namespace wide::test {

void require_cudnn_planning() {
#ifdef WIDE_CUDNN_DRIVER
  // What cuDNN then opens as libcuda.so.1 is this very library: it has the same soname.
  if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
    REQUIRE(dlopen(WIDE_CUDNN_DRIVER, RTLD_NOW) != nullptr);
  }
  REQUIRE(cudnn_unavailable_reason(kCudnnH200) == "");
#else
  SKIP("no cuDNN: " << cudnn_unavailable_reason(kCudnnH200));
#endif
}

}  // namespace wide::test
