// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wbench as a function, so that the program and the tests call the same code.
#pragma once

#include <iosfwd>

namespace wide::bench {

int wbench_main(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace wide::bench
