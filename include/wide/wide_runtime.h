/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * wide_runtime.h: what wide.h's graphs and models stand on: status, words, devices, streams,
 * vendors' libraries, memory. What wide.h says of errors, structs, handles and threads applies
 * here.
 */
#ifndef WIDE_WIDE_RUNTIME_H
#define WIDE_WIDE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* Grows with every release that changes a C header; wide_api_version() is that of the
 * library, which knows the structs of all earlier versions by their struct_size. */
#define WIDE_API_VERSION 1

#if defined(__GNUC__)
#define WIDE_API __attribute__((visibility("default")))
#else
#define WIDE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status ---------------------------------------------------------------------------------- */

typedef int32_t wide_status;
enum {
  WIDE_OK = 0,
  WIDE_INVALID_ARGUMENT = 1, /* contradicts the documentation */
  WIDE_UNSUPPORTED = 2,      /* valid, but this device or build cannot; the message says why */
  WIDE_OUT_OF_MEMORY = 3,    /* an allocation failed; nothing was changed */
  WIDE_CUDA_ERROR = 4,
  WIDE_CUBLAS_ERROR = 5,
  WIDE_CUDNN_ERROR = 6,
  WIDE_IO_ERROR = 7,      /* a file could not be read or written */
  WIDE_INTERNAL_ERROR = 8 /* anything else: a bug in wide */
};

WIDE_API int32_t wide_api_version(void);
WIDE_API const char* wide_version(void);                   /* "0.1.0" */
WIDE_API const char* wide_status_name(wide_status status); /* "invalid_argument" */
/* The message of this thread's last failed call; "" before. Overwritten by the next failure. */
WIDE_API const char* wide_last_error(void);

/* ---- words ----------------------------------------------------------------------------------- */

#define WIDE_MAX_RANK 6
#define WIDE_BATCH (-1)              /* the first extent of a graph's values: known to the plan */
#define WIDE_WORKSPACE_ALIGNMENT 256 /* bytes */

typedef int32_t wide_dtype;
enum {
  WIDE_FP32 = 0,
  WIDE_FP16 = 1,
  WIDE_BF16 = 2,
  WIDE_FP8_E4M3 = 3,
  WIDE_FP8_E5M2 = 4,
  WIDE_INT32 = 5,
  WIDE_INT64 = 6,
  WIDE_UINT8 = 7
};

WIDE_API int64_t wide_dtype_bytes(wide_dtype dtype);    /* of an element; 0: no dtype */
WIDE_API const char* wide_dtype_name(wide_dtype dtype); /* "fp32"; NULL: no dtype */

/* Images [B, C, H, W] or [B, H, W, C]; WIDE_CHANNELS_AUTO: see its uses. */
typedef int32_t wide_channels;
enum { WIDE_CHANNELS_AUTO = 0, WIDE_CHANNELS_FIRST = 1, WIDE_CHANNELS_LAST = 2 };

typedef struct wide_device {
  int32_t type; /* WIDE_CPU, WIDE_CUDA */
  int32_t ordinal;
} wide_device;
enum { WIDE_CPU = 0, WIDE_CUDA = 1 };

/* A view of a tensor, not owning. Strides are in elements; all zero: densely packed. Hence a
 * scalar broadcast along every axis cannot be expressed. `data` is trusted to be on `device`: a
 * host pointer said to be on CUDA is an illegal address there. */
typedef struct wide_view {
  size_t struct_size;
  void* data;
  wide_dtype dtype;
  int32_t rank;
  int64_t shape[WIDE_MAX_RANK];
  int64_t strides[WIDE_MAX_RANK];
  wide_device device;
} wide_view;

typedef struct wide_context wide_context; /* a device, its allocator, its threads */
typedef struct wide_stream wide_stream;   /* an owned stream */
typedef struct wide_handles wide_handles; /* the vendors' libraries, for one thread */
typedef struct wide_tensor wide_tensor;   /* memory on a context's device */

/* ---- contexts, streams, vendors' handles ----------------------------------------------------- */

/* While another stream is captured, in any mode and by any thread, tensors, streams, models and
 * replays may be made, changed, waited for and destroyed. Contexts, plans and vendors' handles are
 * made and destroyed while nothing is captured; `allocate` of a context is responsible for its own
 * calls. */

typedef struct wide_context_options {
  size_t struct_size;
  wide_device device;
  int32_t num_threads; /* of the CPU; 0: by the main thread's affinity mask and cgroup's cpu.max */
  /* Where memory comes from; both or neither. Called by any thread. `allocate` has bytes > 0 and
   * returns memory of the device aligned to 256 bytes, or NULL. `deallocate` may hand it out again
   * at once: handles are destroyed after the work that uses them. */
  void* user;
  void* (*allocate)(void* user, int64_t bytes);
  void (*deallocate)(void* user, void* data, int64_t bytes);
} wide_context_options;

typedef struct wide_context_info {
  size_t struct_size;
  const char* name; /* of the device */
  wide_device device;
  int32_t compute_capability;  /* 90 for 9.0; 0 on the CPU */
  int32_t num_threads;         /* that the context uses; 0 on CUDA */
  int32_t num_multiprocessors; /* 0 on the CPU */
  int64_t memory_bytes;        /* of the device, in use or not */
} wide_context_info;

/* CUDA devices that there are: 0 also without a driver, and in a build without CUDA; then
 * wide_context_create for one says why. */
WIDE_API wide_status wide_num_cuda_devices(int32_t* out);

/* `options` NULL: the CPU, whose threads serve one run at a time: others run in their own thread. A
 * process may fork while nothing runs; the child runs in the calling thread. A call takes up to
 * 128 KiB of its caller's stack: 512 KiB are safe for a thread. */
WIDE_API wide_status wide_context_create(const wide_context_options* options, wide_context** out);
/* The CPU as the host of `device`: its tensors lie in page-locked memory where that is on CUDA, so
 * that wide_copy between them and the device does not wait. It has one thread. Tensors are made and
 * destroyed also while a stream is captured, but not by what is captured. */
WIDE_API wide_status wide_context_create_host(const wide_context* device, wide_context** out);
WIDE_API wide_status wide_context_query(const wide_context* context, wide_context_info* out);
WIDE_API void wide_context_destroy(wide_context* context);

/* `stream` is a cudaStream_t, here and everywhere. On the CPU, where work is finished when a call
 * returns, it is ignored. On CUDA NULL is refused: the default stream has the name
 * cudaStreamLegacy. */
WIDE_API wide_status wide_synchronize(const wide_context* context, void* stream);

WIDE_API wide_status wide_stream_create(const wide_context* context, wide_stream** out);
WIDE_API void* wide_stream_native(const wide_stream* stream); /* cudaStream_t; NULL on the CPU */
WIDE_API void wide_stream_destroy(wide_stream* stream);       /* does not wait */

/* Creates what the build and the machine have; nothing on the CPU. For plans of its device only.
 */
WIDE_API wide_status wide_handles_create(const wide_context* context, wide_handles** out);
/* Takes the engine's cublasHandle_t and cudnnHandle_t, which stay the engine's; one may be NULL.
 * Calls leave their streams and cuBLAS's modes as they found them; a workspace that was set in
 * cuBLAS is lost. */
WIDE_API wide_status wide_handles_borrow(void* cublas, void* cudnn, wide_handles** out);
WIDE_API void wide_handles_destroy(wide_handles* handles);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Densely packed, aligned to 256 bytes, uninitialised. Workspaces are of WIDE_UINT8. */
WIDE_API wide_status wide_tensor_create(const wide_context* context, wide_dtype dtype,
                                        const int64_t* shape, int32_t rank, wide_tensor** out);
WIDE_API wide_status wide_tensor_view(const wide_tensor* tensor, wide_view* out);
WIDE_API void wide_tensor_destroy(wide_tensor* tensor); /* when queued work with it is complete */

/* Between host and device, too; both have the same shape and dtype, and strides by which no two
 * elements share a place. They do not overlap. On CUDA it does not wait, unless the host's memory
 * is pageable, which that of wide_context_create_host is not: then a copy to the host has happened
 * when it returns, and one from the host has read its source. */
WIDE_API wide_status wide_copy(const wide_view* source, const wide_view* destination, void* stream);

/* Each element rounded once to the destination's dtype; fp32, fp16 and bf16, both on the host, of
 * the same shape, with strides as wide_copy's. They do not overlap. */
WIDE_API wide_status wide_convert(const wide_view* source, const wide_view* destination);

/* Every byte of the view's elements, and none between them, becomes `byte`: 0 for zeros, 255 for
 * NaNs. Strides as wide_copy's. Does not wait on CUDA. */
WIDE_API wide_status wide_fill_bytes(const wide_view* view, uint8_t byte, void* stream);

/* DLPack (dlpack.h): a view of the tensor's memory, which stays `managed`'s; and a tensor's memory
 * as a managed tensor, which keeps it alive until its deleter is called. WIDE_UNSUPPORTED for
 * negative strides, and where one element is repeated along every axis. */
struct DLManagedTensor;
WIDE_API wide_status wide_view_from_dlpack(const struct DLManagedTensor* managed, wide_view* out);
WIDE_API wide_status wide_tensor_to_dlpack(const wide_tensor* tensor, struct DLManagedTensor** out);

#ifdef __cplusplus
}
#endif

#endif
