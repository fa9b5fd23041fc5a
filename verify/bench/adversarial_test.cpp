// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What `verify --adversarial` has to pass: right results of operands that leave little room.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>

#include "bench/process/exit_code.hpp"
#include "verify/bench/cli_case.hpp"

namespace wide::bench {

TEST_CASE("verify --adversarial passes what is right") {
  const std::string of = GENERATE(
      // What is added where an activation took an infinity away.
      "routed_linear --n 2 --batch 9 --d 24 --activation relu,gelu --residual after --gates yes "
      "--dtype fp32,bf16",
      // Values that grow from layer to layer would be too large for fp16.
      "mlp --n 2 --batch 4 --d 64 --layers 8 --dtype fp16",
      "routed_mlp --n 2 --batch 4 --d 64 --layers 8 --dtype fp16",
      // Steps whose roundings are not independent.
      "recurrent --cell gru --n 2 --batch 1 --seq 128 --d 64 --dtype bf16",
      "recurrent --cell gru --n 2 --batch 1 --seq 400 --d 40 --dtype fp16 --state given",
      // A sum of very many terms of one sign.
      "top_k --n 16384 --batch 4 --choices 2 --gate softmax_all");
  INFO(of);
  const Outcome outcome = wbench("verify -q -d cpu --adversarial --op " + of);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kSuccess);
}

}  // namespace wide::bench
