// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// WIDE_INDEPENDENT, before a loop: no iteration reads what another one writes, so that it may
// become vector instructions without asking whether its arrays overlap. They are the same, or
// apart.
#pragma once

#if defined(__clang__)
#define WIDE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WIDE_INDEPENDENT _Pragma("GCC ivdep")
#endif
