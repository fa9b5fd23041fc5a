// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The example of bench/README.md: a test compares what is behind the mark, and measures its model.
// [readme]
#include <iostream>
#include <utility>
#include "bench/cli/cli.hpp"
#include "wide/catalog.hpp"
#include "wide/layers.hpp"

int main(int argc, char** argv) {
  wide::GraphBuilder g("own");
  const wide::Value x = g.input("x", {wide::kBatch, 64});
  g.output("y", wide::layers::linear(g, "head", x, 10));
  wide::catalog::add_model("own", std::move(g).build());
  return wide::bench::wbench_main(argc, argv, std::cout, std::cerr);
}
