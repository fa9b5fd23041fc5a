// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The PTX inside of a fat binary.
#pragma once

#include <string>

namespace wide::simcuda {

struct ChosenText {
  std::string ptx;       ///< empty: none fits
  std::string why_none;  ///< what to do about it
};

/// The newest PTX that a device of this architecture (80, 120) runs, out of what nvcc embedded;
/// `wrapper` is what __cudaRegisterFatBinary gets.
ChosenText choose_ptx(const void* wrapper, int architecture);

}  // namespace wide::simcuda
