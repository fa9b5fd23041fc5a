// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Single accesses that are right, or outside, misaligned, too early, or to what is only read. in,
// out and state have as many elements as there are threads.

extern "C" {

__global__ void global_right(int* out, const int* in, int* state) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int last = static_cast<int>(gridDim.x * blockDim.x) - 1;
  state[i] = in[last - i];
  out[i] = state[i];
}

__global__ void global_read_past_end(int* out, const int* in, int*) {
  out[threadIdx.x] = in[threadIdx.x + 1];
}

__global__ void global_read_before(int* out, const int* in, int*) {
  out[threadIdx.x] = (in - 1)[threadIdx.x];
}

__global__ void global_write_past_end(int* out, const int* in, int*) {
  out[threadIdx.x + 1] = in[threadIdx.x];
}

__global__ void global_vector_past_end(int* out, const int* in, int*) {
  const auto* vectors = reinterpret_cast<const int4*>(in);
  const int4 last = vectors[blockDim.x / 4 - (threadIdx.x == 0 ? 0 : 1)];
  out[threadIdx.x] = last.x + last.y + last.z + last.w;
}

__global__ void global_misaligned(int* out, const int* in, int*) {
  const auto* pairs = reinterpret_cast<const int2*>(in + 1);
  const int2 pair = pairs[threadIdx.x % 4];
  out[threadIdx.x] = pair.x + pair.y;
}

__global__ void global_uninitialised(int* out, const int* in, int*) {
  if (threadIdx.x != 0) out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 3) out[3] = out[0] + 1;
}

__global__ void global_read_only_write(int* out, const int* in, int*) {
  const_cast<int*>(in)[threadIdx.x] = 1;
  out[threadIdx.x] = 1;
}

/// Threads of one warp, without an order between them.
__global__ void global_exchange(int* out, const int* in, int* state) {
  state[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = state[blockDim.x - 1 - threadIdx.x];
}

__global__ void global_exchange_ordered(int* out, const int* in, int* state) {
  state[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = state[blockDim.x - 1 - threadIdx.x];
}

__global__ void shared_dynamic(int* out, const int* in, int*) {
  extern __shared__ int values[];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

__global__ void shared_before(int* out, const int* in, int*) {
  extern __shared__ int values[];
  (values - 100)[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = in[threadIdx.x];
}

__global__ void shared_misaligned(int* out, const int* in, int*) {
  extern __shared__ int values[];
  auto* pairs = reinterpret_cast<int2*>(values + 1);
  pairs[threadIdx.x % 4] = make_int2(in[threadIdx.x], 0);
  out[threadIdx.x] = 0;
}

__global__ void shared_uninitialised(int* out, const int* in, int*) {
  extern __shared__ int values[];
  if (threadIdx.x != 5) values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

/// The element past an array is another variable's, and nothing wrote it.
__global__ void shared_off_by_one(int* out, const int* in, int*) {
  __shared__ struct { int values[64], never_written[64]; } s;
  s.values[threadIdx.x] = in[threadIdx.x];
  if (in[0] == 12345) s.never_written[threadIdx.x] = 1;
  __syncthreads();
  const int* all = s.values;
  out[threadIdx.x] = all[threadIdx.x + 1];
}

}  // extern "C"
