// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How a thread rounds and treats denormal numbers: a per-thread setting.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <fpu_control.h>
#endif

namespace wide {

/// This thread's setting, without the exception flags that are raised. Always 0 on processors that
/// are not known here.
inline uint64_t float_control() {
#if defined(__x86_64__)
  constexpr unsigned kSeen = 0x3f;
  return _mm_getcsr() & ~kSeen;
#elif defined(__aarch64__)
  fpu_control_t control = 0;
  _FPU_GETCW(control);
  return control;
#else
  return 0;
#endif
}

inline void set_float_control([[maybe_unused]] uint64_t control) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<unsigned>(control));
#elif defined(__aarch64__)
  _FPU_SETCW(static_cast<fpu_control_t>(control));
#endif
}

/// For a scope, this thread rounds as another one does.
class FloatControl {
 public:
  explicit FloatControl(uint64_t control) : previous_(float_control()) {
    changed_ = control != previous_;
    if (changed_) set_float_control(control);
  }
  ~FloatControl() {
    if (changed_) set_float_control(previous_);
  }
  FloatControl(const FloatControl&) = delete;
  FloatControl& operator=(const FloatControl&) = delete;

 private:
  uint64_t previous_;
  bool changed_;
};

}  // namespace wide
