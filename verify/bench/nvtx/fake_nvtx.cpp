// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a profiler loads into a program that has NVTX ranges (NVTX_INJECTION64_PATH): writes each
// that is pushed, "wide@profile", and "pop", as lines of the file that WIDE_FAKE_NVTX_LOG names.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string& domain_of(nvtxDomainHandle_t handle) {
  return *reinterpret_cast<std::string*>(handle);
}

void log_line(const std::string& line) {
  const char* path = std::getenv("WIDE_FAKE_NVTX_LOG");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(new std::string(name));  // as long as the program
}

int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  log_line(domain_of(domain) + "@" + attributes->message.ascii);
  return 0;
}

int NVTX_API pop(nvtxDomainHandle_t) {
  log_line("pop");
  return 0;
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0)
    return 0;
  const auto set = [&](unsigned int id, auto* function) {
    if (id < size) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, &create_domain);
  set(NVTX_CBID_CORE2_DomainRangePushEx, &push);
  set(NVTX_CBID_CORE2_DomainRangePop, &pop);
  return 1;
}
