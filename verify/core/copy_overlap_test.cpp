// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Copies within one tensor.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

#include "wide/error.hpp"
#include "wide/tensor.hpp"

using namespace wide;
using Catch::Matchers::Message;

TEST_CASE("copy refuses views that share elements, and takes those between one another") {
  std::vector<int32_t> values(60);
  std::iota(values.begin(), values.end(), 0);
  const TensorView rows(values.data(), Dtype::int32, {5, 12}, Device{});
  const auto copies = [](const TensorView& from, const TensorView& to) {
    copy(from, to, Stream::cpu());
  };
  const auto shared = Message(
      "copy: source and destination share elements of [4, 12], expected memory "
      "of their own");
  const TensorView first = rows.narrow(0, 0, 4), second = rows.narrow(0, 1, 4);
  CHECK_THROWS_MATCHES(copies(first, second), Error, shared);
  CHECK_THROWS_MATCHES(copies(second, first), Error, shared);
  const TensorView columns = rows.narrow(1, 0, 4);
  CHECK_THROWS_AS(copies(columns.narrow(0, 0, 4), columns.narrow(0, 1, 4)), Error);
  CHECK_THROWS_AS(copies(columns, rows.narrow(1, 2, 4)), Error);
  // Two bytes off: no element is another's, but they have bytes in common.
  TensorView between = rows.narrow(1, 4, 4);
  between.data = static_cast<char*>(between.data) - 2;
  CHECK_THROWS_AS(copies(columns, between), Error);
  CHECK(values[13] == 13);

  CHECK_NOTHROW(copies(rows, rows));      // nothing to do
  copies(columns, rows.narrow(1, 4, 4));  // members side by side
  CHECK((values[4] == 0 && values[19] == 15 && values[20] == 20));
  copies(rows.narrow(0, 0, 2), rows.narrow(0, 2, 2));
  CHECK((values[24] == 0 && values[47] == 23 && values[48] == 48));
}
