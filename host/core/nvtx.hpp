// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Named ranges for nsys and ncu in a domain of our own, one per public call. Without a profiler a
// range costs two calls through null checks; with WIDE_NVTX=OFF it is nothing.
#pragma once

#if WIDE_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace wide {

#if WIDE_HAS_NVTX

class NvtxRange {
 public:
  /// `name` must stay valid until the range ends: "wide::linear(simt)".
  explicit NvtxRange(const char* name) {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    nvtxDomainRangePushEx(domain(), &attributes);
  }
  ~NvtxRange() { nvtxDomainRangePop(domain()); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  static nvtxDomainHandle_t domain() {
    static const nvtxDomainHandle_t handle = nvtxDomainCreateA("wide");
    return handle;
  }
};

#else

class NvtxRange {
 public:
  explicit NvtxRange(const char*) {}
  ~NvtxRange() {}
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

#endif

}  // namespace wide
