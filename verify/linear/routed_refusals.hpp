// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What every primitive on routed rows refuses, with the message. `name` is the primitive's, with a
// colon.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "verify/support/refusals.hpp"
#include "wide/tensor.hpp"

namespace wide::test {

/// Of six rows of y and K = 2.
template <class Problem>
void check_refused_rows(const std::string& name, const Problem& good,
                        const std::function<void(const Problem&)>& check) {
  using P = Problem;
  const Refusal<P> refusals[] = {
      {[](P& p) { p.num_members = 0; }, "num_members is 0, expected >= 1"},
      {[](P& p) { p.num_rows = -2; }, "num_rows is -2, expected >= 0"},
      {[](P& p) { p.num_rows = int64_t{1} << 31; },
       "num_rows is 2147483648, expected up to 2^31 - 1, as order is int32"},
      {[](P& p) { p.choices = 0; }, "choices is 0, expected >= 1"},
      {[](P& p) { p.gathers = false; },
       "choices is 2, expected 1: it does not gather, every row has one of x"},
      {[](P& p) { p.choices = 4; }, "choices is 4, expected a divisor of num_rows = 6"},
      {[](P& p) { p.dtype = Dtype::int32; }, "dtype is int32, expected fp32, fp16 or bf16"},
      {[](P& p) { p.x_row_stride = -1; }, "x_row_stride is -1, expected >= 0"},
      {[](P& p) { p.y_row_stride = -1; }, "y_row_stride is -1, expected >= 0"},
  };
  check_refusals(good, refusals, check, name);
}

/// Of arguments of two members in fp32, with x [3, 3], each row of which is read twice, y [6, 4]
/// and gates: refused(spoil) is the message of a call with arguments that `spoil` has spoilt.
template <class Arguments>
class RefusedOperands {
 public:
  using Spoil = std::function<void(Arguments&)>;
  RefusedOperands(std::string name, std::function<std::string(const Spoil&)> refused)
      : name_(std::move(name)), refused_(std::move(refused)) {}

  void check() const {
    check_absent();
    check_shapes();
    check_types();
    check_strides();
    check_memory();
  }

 private:
  using A = Arguments;

  void is(const Spoil& spoil, const std::string& message) const {
    CHECK(refused_(spoil) == name_ + message);
  }
  void begins(const Spoil& spoil, const std::string& message) const {
    const std::string got = refused_(spoil);
    CHECK(got.substr(0, name_.size() + message.size()) == name_ + message);
  }

  void check_absent() const {
    is([](A& a) { a.x = {}; }, "x is absent, expected [R / K, in], R = order's rows");
    is([](A& a) { a.y = {}; }, "y is absent, expected [R, out]");
    is([](A& a) { a.order = {}; }, "order is absent, expected [R]");
    is([](A& a) { a.first_rows = {}; }, "first_rows is absent, expected [num_members + 1]");
    is([](A& a) { a.gates = {}; }, "gates is absent, expected one as in the plan's problem");
  }

  void check_shapes() const {
    is([](A& a) { a.x.shape[0] = 4; }, "x is [4, 3], expected the plan's num_rows / choices = 3");
    is([](A& a) { a.x.shape[1] = 2; }, "x is [3, 2], expected the plan's in = 3");
    is([](A& a) { a.x.shape[0] = 2; }, "x is [2, 3], expected the plan's num_rows / choices = 3");
    is([](A& a) { a.order.shape[0] = 4; }, "order is [4], expected the plan's num_rows = 6");
    begins([](A& a) { a.first_rows.shape[0] = 2; }, "first_rows is [2], expected");
    is([](A& a) { a.gates.shape[0] = 5; },
       "gates is [5], expected [R] = [6], or [B, K] of as many");
    is(
        [](A& a) {
          a.gates.shape = {3, 1}, a.gates.strides = {1, 1};
        },
        "gates is [3, 1], expected [R] = [6], or [B, K] of as many");
    begins([](A& a) { a.y.shape[0] = 5; }, "y is [5, 4], expected");
  }

  void check_types() const {
    is([](A& a) { a.x.dtype = Dtype::bf16; }, "x is bf16, expected the plan's dtype = fp32");
    is([](A& a) { a.order.dtype = Dtype::int64; }, "order is int64, expected dtype = int32");
    is([](A& a) { a.first_rows.dtype = Dtype::fp32; },
       "first_rows is fp32, expected dtype = int32");
    is([](A& a) { a.gates.dtype = Dtype::bf16; }, "gates is bf16, expected dtype = fp32");
    is([](A& a) { a.y.dtype = Dtype::bf16; }, "y is bf16, expected dtype = fp32");
  }

  void check_strides() const {
    is(
        [](A& a) {
          a.x.strides = {1, 2};
        },
        "x has strides [1, 2], expected the last axis contiguous: stride 1");
    is([](A& a) { a.order.strides[0] = 2; },
       "order has strides [2], expected the last axis contiguous: stride 1");
    is(
        [](A& a) {
          a.gates.shape = {3, 2}, a.gates.strides = {3, 1};
        },
        "gates has strides [3, 1], expected contiguous ones");
    is([](A& a) { a.y.strides[0] = 0; },
       "y has strides [0, 1], expected places of their own: a first stride > 0");
    is([](A& a) { a.x.strides[0] = 4; },
       "the operands' row stride of x is 4, expected the plan's = 3");
  }

  void check_memory() const {
    is([](A& a) { a.x.data = a.y.data; }, "y overlaps x, expected memory of its own");
    is([](A& a) { a.order.data = a.y.data; }, "y overlaps order, expected memory of its own");
    begins([](A& a) { a.first_rows.data = nullptr; }, "first_rows is a null pointer");
    begins([](A& a) { a.gates.device = {DeviceType::cuda, 0}; }, "gates is on cuda:0");
  }

  std::string name_;
  std::function<std::string(const Spoil&)> refused_;
};

}  // namespace wide::test
