// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libcuda where there is none, so that cuDNN compiles its run-time engines for a
// device that is not at hand: it asks for a driver before it starts, and gives it the compiled
// kernel at the end. This one takes any kernel, and refuses all the rest as a machine without a
// device does.
namespace {

constexpr int kSuccess = 0, kNoDevice = 100;
int kernel = 0;

}  // namespace

#define WIDE_REFUSED(name) \
  extern "C" int name() {  \
    return kNoDevice;      \
  }
WIDE_REFUSED(cuInit)
WIDE_REFUSED(cuDeviceGet)
WIDE_REFUSED(cuDeviceGetCount)
WIDE_REFUSED(cuDriverGetVersion)
WIDE_REFUSED(cuGetErrorName)
WIDE_REFUSED(cuCtxGetCurrent)
WIDE_REFUSED(cuCtxGetLimit)
WIDE_REFUSED(cuCtxPopCurrent)
WIDE_REFUSED(cuCtxPushCurrent)
WIDE_REFUSED(cuStreamGetCtx)
WIDE_REFUSED(cuLinkCreate)
WIDE_REFUSED(cuLinkAddData)
WIDE_REFUSED(cuLinkComplete)
WIDE_REFUSED(cuLinkDestroy)
WIDE_REFUSED(cuLaunchKernel)
WIDE_REFUSED(cuLaunchKernelEx)
WIDE_REFUSED(cuLaunchCooperativeKernel)
WIDE_REFUSED(cuLibraryLoadFromFile)
WIDE_REFUSED(cuLibraryUnload)
WIDE_REFUSED(cuKernelGetAttribute)
WIDE_REFUSED(cuOccupancyMaxPotentialClusterSize)

extern "C" {
int cuGetErrorString(int, const char** text) {
  *text = "there is no driver";
  return kSuccess;
}
int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*, unsigned) {
  *library = &kernel;
  return kSuccess;
}
int cuLibraryGetKernel(void** found, void*, const char*) {
  *found = &kernel;
  return kSuccess;
}
int cuKernelSetAttribute() {
  return kSuccess;
}
}
