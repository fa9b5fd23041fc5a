// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops for the vector instructions of the processor that the program runs on: what a body
// calls is inlined into it and compiled once for each instruction set. What cannot be inlined is
// compiled for the baseline only.
#pragma once

namespace wide {

// A sanitizer finds the same in each version: only one is compiled for it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)

namespace vectorised_detail {

template <class Body>
[[gnu::flatten]] void call_baseline(const Body& body) {
  body();
}
template <class Body>
[[gnu::flatten, gnu::target("avx2,fma")]] void call_avx2(const Body& body) {
  body();
}
template <class Body>
[[gnu::flatten,
  gnu::target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] void
call_avx512(const Body& body) {
  body();
}

enum class VectorSet { baseline, avx2, avx512 };

inline VectorSet best_vector_set() {
  static const VectorSet best = [] {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
      return VectorSet::baseline;
    }
    const bool has_avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return has_avx512 ? VectorSet::avx512 : VectorSet::avx2;
  }();
  return best;
}

}  // namespace vectorised_detail

/// body(), in the best version there is.
template <class Body>
void call_vectorised(const Body& body) {
  switch (vectorised_detail::best_vector_set()) {
    case vectorised_detail::VectorSet::avx512:
      return vectorised_detail::call_avx512(body);
    case vectorised_detail::VectorSet::avx2:
      return vectorised_detail::call_avx2(body);
    case vectorised_detail::VectorSet::baseline:
      return vectorised_detail::call_baseline(body);
  }
}

#else

template <class Body>
void call_vectorised(const Body& body) {
  body();
}

#endif

}  // namespace wide
