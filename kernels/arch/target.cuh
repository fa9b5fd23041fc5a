// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Features of the target of this compiler pass. The wrappers of this folder emit nothing until they
// are called, so that their headers compile for every target; a kernel that needs Hopper says
//
//   if constexpr (arch::kHasSm90a) { ... } else { __trap(); }
//
// and becomes a stub elsewhere. If it forgets to, ptxas refuses it; nothing is miscompiled.
#pragma once

namespace wide::kernels::arch {

/// Compute capability 9.0 with its architecture-specific instructions (wgmma, setmaxnreg): sm_90a
/// code runs on no other. On the host: false.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool kHasSm90a = true;
#else
inline constexpr bool kHasSm90a = false;
#endif

/// Compute capability 9.0 or later. On the host: false.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kHasSm90 = true;
#else
inline constexpr bool kHasSm90 = false;
#endif

}  // namespace wide::kernels::arch
