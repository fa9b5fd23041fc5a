// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// WIDE_INDEPENDENT, before a loop: no iteration reads what another one writes, so that it may
// be vectorised without checking whether its arrays overlap. They are either identical or
// disjoint.
#pragma once

#if defined(__clang__)
#define WIDE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WIDE_INDEPENDENT _Pragma("GCC ivdep")
#endif
