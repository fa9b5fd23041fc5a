// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "bench/cli/cli.hpp"

int main(int argc, char** argv) {
  return wide::bench::wbench_main(argc, argv, std::cout, std::cerr);
}
