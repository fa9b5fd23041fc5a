// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// recurrent on every device at hand: cells worked out by hand, sizes around the kernel's tiles
// against the reference, directions, sequences cut into calls, layouts, weights that are packed and
// restored.
#include "wide/recurrent.hpp"

#include <catch2/catch_test_macros.hpp>

#include "host/recurrent/recurrent_problem.hpp"
#include "host/recurrent/recurrent_reference.hpp"
#include "host/recurrent/recurrent_strategy.hpp"
#include "verify/recurrent/recurrent_case.hpp"
#include "verify/support/known_devices.hpp"
#include "wide/error.hpp"

using namespace wide;
using test::download, test::upload, test::RecurrentOperands, test::run_recurrent;

namespace {

using Reals = std::vector<double>;

template <class F>
void on_every_strategy(const F& f) {
  test::on_every_recurrent_strategy([&](const Context& context, const std::string& strategy) {
    INFO(to_string(context.device()) << " " << strategy);
    f(context, strategy);
  });
}

RecurrentProblem problem_of(RecurrentCell cell, int64_t members, int64_t batch, int64_t steps,
                            int64_t in, int64_t hidden, Dtype dtype) {
  RecurrentProblem p;
  p.cell = cell;
  p.num_members = members;
  p.batch = batch;
  p.steps = steps;
  p.in_features = in;
  p.hidden = hidden;
  p.dtype = dtype;
  p.has_bias = true;
  return p;
}

/// A member's part of a packed operand [rows, N*features], or [N, elements]: none of an absent one.
Reals of_member(const Reals& values, int64_t rows, int64_t members, int64_t member) {
  const size_t count = values.size() / static_cast<size_t>(rows * members);
  Reals own;
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = values.begin() + static_cast<int64_t>(count) * (row * members + member);
    own.insert(own.end(), first, first + static_cast<int64_t>(count));
  }
  return own;
}

/// Error over tolerance, the worst of all members, of outputs and of last cells.
double worst_ratio(const Context& context, const RecurrentProblem& p, const RecurrentOperands& o) {
  const auto values = [&](const Tensor& tensor) {
    return tensor.data() == nullptr ? Reals() : download(context, tensor);
  };
  const Reals x = values(o.x), wi = values(o.input_weight), wh = values(o.hidden_weight);
  const Reals bi = values(o.input_bias), bh = values(o.hidden_bias), h0 = values(o.first_hidden);
  const Reals c0 = values(o.first_cell), y = values(o.y), c = values(o.last_cell);
  double worst = 0;
  for (int64_t n = 0; n < p.num_members; ++n) {
    const int64_t rows = p.batch * p.steps, members = p.num_members;
    const Reals own_x = p.shared_input ? x : of_member(x, rows, members, n);
    const Reals own_wi = of_member(wi, 1, members, n), own_wh = of_member(wh, 1, members, n);
    const Reals own_bi = of_member(bi, 1, members, n), own_bh = of_member(bh, 1, members, n);
    const Reals own_h0 = of_member(h0, p.batch, members, n);
    const Reals own_c0 = of_member(c0, p.batch, members, n);
    const Reals own_y = of_member(y, rows, members, n), own_c = of_member(c, p.batch, members, n);
    const auto hidden = static_cast<size_t>(p.hidden);
    for (int64_t b = 0; b < p.batch; ++b) {
      const catalog::RecurrentReferenceSequence expected = catalog::judge_recurrent_sequence(
          p, {own_x, own_wi, own_wh, own_bi, own_bh, own_h0, own_c0}, b);
      const size_t first = static_cast<size_t>(b * p.steps) * hidden;
      for (size_t i = 0; i < expected.values.size(); ++i) {
        worst =
            test::worse_ratio(worst, own_y[first + i], expected.values[i], expected.tolerances[i]);
      }
      for (size_t j = 0; j < hidden && p.has_last_cell; ++j) {
        worst = test::worse_ratio(worst, own_c[static_cast<size_t>(b) * hidden + j],
                                  expected.last_cell[j], expected.last_cell_tolerances[j]);
      }
    }
  }
  return worst;
}

void check(const Context& context, const std::string& strategy, const RecurrentProblem& p) {
  INFO(recurrent_cell_name(p.cell)
       << " " << p.num_members << " x [" << p.batch << ", " << p.steps << ", " << p.in_features
       << "] to " << p.hidden << ", " << dtype_name(p.dtype));
  const std::string reason =
      strategy == "fused"
          ? recurrent_unsupported_reason(RecurrentStrategy::fused, complete_recurrent_problem(p),
                                         context.info())
          : "";
  if (!reason.empty()) {  // the largest of fp32 does not fit everywhere
    CHECK(context.info().shared_bytes_per_block < test::kH200.shared_bytes_per_block);
    return;
  }
  RecurrentOperands operands(context, p);
  run_recurrent(context, operands.arguments(), p, strategy);
  CHECK(worst_ratio(context, p, operands) <= 1);
}

double far(double value, double expected) {
  return std::fabs(value - expected);
}

}  // namespace

TEST_CASE("recurrent: an lstm's gates do what they are called for, by hand") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    // Two members of one unit that take x's sign as candidate. Member 0 adds it up and shows it;
    // member 1 forgets what was, and shows nothing where the step before showed something.
    constexpr double kOpen = 100, kShut = -100;
    Tensor x = upload(context, Dtype::fp32, {1, 3, 2}, {1, 1, 1, -1, -1, -1});
    Tensor wi = upload(context, Dtype::fp32, {2, 4, 1}, {0, 0, 100, 0, 0, 0, 100, 0});
    Tensor wh = upload(context, Dtype::fp32, {2, 4, 1}, {0, 0, 0, 0, 0, 0, 0, 2 * kShut / 0.5});
    Tensor bi =
        upload(context, Dtype::fp32, {2, 4}, {kOpen, kOpen, 0, kOpen, kOpen, kShut, 0, kOpen});
    Tensor bh = upload(context, Dtype::fp32, {2, 4}, Reals(8));
    Tensor y(context, Dtype::fp32, {1, 3, 2}), c(context, Dtype::fp32, {1, 2});
    run_recurrent(context, {x, wi, wh, bi, bh, y, {}, {}, c}, {}, strategy);
    const Reals h = download(context, y), cells = download(context, c);
    const double one = std::tanh(1.0), two = std::tanh(2.0);
    CHECK((far(h[0], one) < 1e-6 && far(h[2], two) < 1e-6 && far(h[4], one) < 1e-6));
    CHECK((far(h[1], one) < 1e-6 && far(h[3], 0) < 1e-6 && far(h[5], -one) < 1e-6));
    CHECK((far(cells[0], 1) < 1e-6 && far(cells[1], -1) < 1e-6));
  });
}

TEST_CASE("recurrent: a gru's gates do what they are called for, by hand") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    // One unit; x opens reset (features 0) and update (feature 1); the hidden bias of 100 makes a
    // candidate of 1 where reset is open, x's third feature is what is left where it is not.
    const RecurrentProblem like{.cell = RecurrentCell::gru};
    Tensor x =
        upload(context, Dtype::fp32, {1, 4, 3}, {1, -1, 0, -1, -1, 0.5, 1, 1, 7, -1, -1, -0.5});
    Tensor wi = upload(context, Dtype::fp32, {1, 3, 3}, {100, 0, 0, 0, 100, 0, 0, 0, 1});
    Tensor wh = upload(context, Dtype::fp32, {1, 3, 1}, Reals(3));
    Tensor bi = upload(context, Dtype::fp32, {1, 3}, Reals(3));
    Tensor bh = upload(context, Dtype::fp32, {1, 3}, {0, 0, 100});
    Tensor h0 = upload(context, Dtype::fp32, {1, 1}, {0.25});
    Tensor y(context, Dtype::fp32, {1, 4, 1});
    run_recurrent(context, {x, wi, wh, bi, bh, y, h0}, like, strategy);
    const Reals h = download(context, y);
    // Reset open: 1. Shut: tanh(0.5). Update open: what was. Shut: tanh(-0.5).
    const double half = std::tanh(0.5);
    CHECK((far(h[0], 1) < 1e-6 && far(h[1], half) < 1e-6 && far(h[2], half) < 1e-6 &&
           far(h[3], -half) < 1e-6));
  });
}

TEST_CASE(
    "recurrent: sizes around units, tiles and chunks, all dtypes, with and without the rest") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    struct Sizes {
      int64_t members, batch, steps, in, hidden;
    };
    const std::vector<Sizes> all{{1, 1, 1, 1, 1},   {2, 3, 4, 5, 7},   {3, 16, 2, 16, 8},
                                 {2, 17, 3, 9, 33}, {1, 5, 5, 40, 64}, {2, 9, 2, 24, 100},
                                 {1, 2, 3, 64, 30}, {1, 33, 1, 8, 16}};
    size_t turn = 0;
    for (const Sizes& of : all) {
      for (const RecurrentCell cell : kAllRecurrentCells) {
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
          RecurrentProblem p =
              problem_of(cell, of.members, of.batch, of.steps, of.in, of.hidden, dtype);
          p.has_bias = turn % 3 != 0;
          p.has_first_state = turn % 4 > 1;
          p.is_reversed = turn % 5 > 2;
          p.shared_input = turn % 7 == 3;
          p.has_last_cell = cell == RecurrentCell::lstm && turn % 2 == 0;
          ++turn;
          check(context, strategy, p);
        }
      }
    }
  });
}

TEST_CASE("recurrent: nothing to do is done") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    for (const auto& [batch, steps] : {std::pair<int64_t, int64_t>{0, 3}, {3, 0}}) {
      const RecurrentProblem p = problem_of(RecurrentCell::gru, 2, batch, steps, 3, 4, Dtype::fp32);
      RecurrentOperands operands(context, p);
      run_recurrent(context, operands.arguments(), p, strategy);
    }
  });
}

TEST_CASE("recurrent: sequences without steps end as they begin") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    RecurrentProblem p = problem_of(RecurrentCell::lstm, 3, 2, 0, 5, 7, Dtype::fp32);
    p.has_last_cell = true;
    // From one member's 7 units to the next one's 8: between them nothing is written.
    const Shape padded{2, 3, 8};
    for (const bool has_first : {true, false}) {
      p.has_first_state = has_first;
      RecurrentOperands o(context, p);
      Tensor last = upload(context, Dtype::fp32, padded, Reals(48, 5));
      RecurrentArguments a = o.arguments();
      a.last_cell = last.view().narrow(2, 0, 7);
      run_recurrent(context, a, p, strategy);
      const Reals got = download(context, last);
      const Reals first = has_first ? download(context, o.first_cell) : Reals(42, 0);
      for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(has_first, i);
        CHECK(got[i] == (i % 8 == 7 ? 5 : first[i / 8 * 7 + i % 8]));
      }
      if (!has_first) continue;
      a.last_cell = o.first_cell;  // in place
      run_recurrent(context, a, p, strategy);
      CHECK(download(context, o.first_cell) == first);
    }
  });
}

TEST_CASE("recurrent: a plan calls a vendor only where there are steps") {
  const Context context = test::require_cuda();
  for (const char* strategy : {"sequential", "cublas_batched"}) {
    const auto calls = [&](int64_t steps) {
      const RecurrentProblem p = problem_of(RecurrentCell::gru, 2, 3, steps, 4, 5, Dtype::fp32);
      RecurrentOperands o(context, p);
      const RecurrentProblem described = describe_recurrent(o.arguments(), p);
      return make_recurrent_plan(context, described, {.strategy = strategy}).vendor_calls();
    };
    INFO(strategy);
    CHECK(calls(1) == VendorCalls{.cublas = true});
    CHECK_FALSE(calls(0).any());
  }
}

TEST_CASE("recurrent: a sequence cut into calls has the same bits, in place too") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    if (strategy == "stepwise") return;  // kernels may differ for the first step
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      for (const RecurrentCell cell : kAllRecurrentCells) {
        RecurrentProblem p = problem_of(cell, 2, 5, 6, 8, 24, dtype);
        const bool has_cell = p.has_last_cell = cell == RecurrentCell::lstm;
        RecurrentOperands whole(context, p);
        // Whole numbers, so that u is the same in whatever order linear sums it up.
        for (Tensor* operand : {&whole.x, &whole.input_weight, &whole.input_bias}) {
          Reals values = download(context, *operand);
          for (double& value : values) value = std::round(4 * value);
          *operand = upload(context, dtype, operand->shape(), values);
        }
        run_recurrent(context, whole.arguments(), p, strategy);
        const Reals expected = download(context, whole.y);

        RecurrentArguments a = whole.arguments();
        Tensor y(context, dtype, whole.y.shape());
        Tensor cells = upload(context, Dtype::fp32, {5, 48}, Reals(5 * 48));
        const Tensor zeros = upload(context, dtype, {5, 48}, Reals(5 * 48));
        ConstTensorView before = zeros;
        for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 1}, {1, 3}, {4, 2}}) {
          a.x = ConstTensorView(whole.x.view()).narrow(1, first, count);
          a.y = y.view().narrow(1, first, count);
          a.first_hidden = before;
          a.first_cell = has_cell ? ConstTensorView(cells) : ConstTensorView();
          a.last_cell = has_cell ? cells.view() : TensorView();
          // x's rows of some steps fold no longer: a sequence a call.
          for (int64_t b = 0; b < 5; ++b) {
            RecurrentArguments one = a;
            const auto row = [b](const auto& view) {
              return view.is_absent() ? view : view.narrow(0, b, 1);
            };
            one.x = row(a.x), one.y = row(a.y), one.first_hidden = row(a.first_hidden);
            one.first_cell = row(a.first_cell), one.last_cell = row(a.last_cell);
            run_recurrent(context, one, p, strategy);
          }
          const TensorView last = y.view().narrow(1, first + count - 1, 1);
          before = ConstTensorView(last.data, dtype, {5, 48}, Strides{last.strides[0], 1},
                                   context.device());
        }
        CHECK(download(context, y) == expected);
        if (has_cell) CHECK(download(context, cells) == download(context, whole.last_cell));
      }
    }
  });
}

TEST_CASE("recurrent: reversed is the other way round, and both directions share a tensor") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    const int64_t batch = 3, steps = 4, members = 2, hidden = 9;
    RecurrentProblem p =
        problem_of(RecurrentCell::lstm, members, batch, steps, 5, hidden, Dtype::fp32);
    RecurrentOperands operands(context, p);
    // [B, T, N, 2, H]: a member's features of both directions side by side.
    Tensor both(context, p.dtype, {batch, steps, members, 2 * hidden});
    const auto direction = [&](int64_t index) {
      return both.view().narrow(3, index * hidden, hidden);
    };
    RecurrentArguments a = operands.arguments();
    a.y = direction(0);
    run_recurrent(context, a, p, strategy);
    p.is_reversed = true;
    a.y = direction(1);
    run_recurrent(context, a, p, strategy);

    Reals x = download(context, operands.x), turned(x.size());
    const auto row = static_cast<size_t>(members * 5);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t b = i / row / 4, t = i / row % 4;
      turned[(b * 4 + 3 - t) * row + i % row] = x[i];
    }
    Tensor x_turned = upload(context, p.dtype, operands.x.shape(), turned);
    a.x = x_turned, a.y = operands.y;
    p.is_reversed = false;
    run_recurrent(context, a, p, strategy);
    const Reals got = download(context, both), y = download(context, operands.y);
    int different = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t h = i % 9, n = i / 9 % 2, t = i / 18 % 4, b = i / 72;
      different += got[(((b * 4 + 3 - t) * 2 + n) * 2 + 1) * 9 + h] != y[i] ? 1 : 0;
    }
    CHECK(different == 0);
    a.x = operands.x;
    run_recurrent(context, a, p, strategy);
    const Reals forward = download(context, operands.y);
    for (size_t i = 0; i < y.size(); ++i)
      different += got[i / 9 * 18 + i % 9] != forward[i] ? 1 : 0;
    CHECK(different == 0);
  });
}

TEST_CASE("recurrent: steps first, padded members and unaligned addresses change no bit") {
  on_every_strategy([](const Context& context, const std::string& strategy) {
    for (const Dtype dtype : {Dtype::fp32, Dtype::bf16}) {
      const int64_t batch = 3, steps = 4, members = 2, in = 8, hidden = 16;
      const RecurrentProblem p =
          problem_of(RecurrentCell::gru, members, batch, steps, in, hidden, dtype);
      RecurrentOperands operands(context, p);
      run_recurrent(context, operands.arguments(), p, strategy);
      const Reals expected = download(context, operands.y), x = download(context, operands.x);

      // [T, B, N, features + 1], one element behind the storage's first.
      const auto strides = [&](int64_t features) {
        return Strides{members * (features + 1), batch * members * (features + 1), features + 1, 1};
      };
      const auto place = [&](size_t i, int64_t features) {
        const auto f = static_cast<size_t>(features), n = i / f % 2, t = i / f / 2 % 4;
        const size_t b = i / f / 8;
        return 1 + ((t * 3 + b) * 2 + n) * (f + 1) + i % f;
      };
      Reals x_values(static_cast<size_t>(batch * steps * members * (in + 1) + 1));
      for (size_t i = 0; i < x.size(); ++i) x_values[place(i, in)] = x[i];
      const auto elements = static_cast<int64_t>(x_values.size());
      Tensor x_storage = upload(context, dtype, {elements}, x_values);
      Tensor y_storage(context, dtype, {batch * steps * members * (hidden + 1) + 1});
      const auto view = [&](Tensor& storage, int64_t features) {
        return TensorView(static_cast<char*>(storage.data()) + dtype_bytes(dtype), dtype,
                          {batch, steps, members, features}, strides(features), context.device());
      };
      RecurrentArguments a = operands.arguments();
      a.x = view(x_storage, in), a.y = view(y_storage, hidden);
      run_recurrent(context, a, p, strategy);
      const Reals strided = download(context, y_storage);
      int different = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        different += strided[place(i, hidden)] != expected[i] ? 1 : 0;
      }
      // linear may sum up unaligned rows in another order.
      if (strategy == "stepwise") {
        for (size_t i = 0; i < expected.size(); ++i) {
          CHECK(far(strided[place(i, hidden)], expected[i]) < 0.02);
        }
      } else {
        CHECK(different == 0);
      }
    }
  });
}

TEST_CASE("recurrent: weights are packed, and restored to the bit") {
  for (const Context& context : test::devices_at_hand()) {
    const RecurrentProblem p = problem_of(RecurrentCell::gru, 3, 2, 2, 5, 7, Dtype::fp16);
    const RecurrentOperands operands(context, p);
    const RecurrentPlan plan = make_recurrent_plan(context, p);
    const OwnedStream stream(context);
    std::vector<Tensor> tensors;
    std::vector<BasicRecurrentMember<TensorView>> members(3);
    for (auto& member : members) {
      const auto own = [&](const Shape& shape) {
        return tensors.emplace_back(context, p.dtype, shape).view();
      };
      member = {own({21, 5}), own({21, 7}), own({21}), own({21})};
    }
    plan.restore_weights(operands.input_weight, operands.hidden_weight, operands.input_bias,
                         operands.hidden_bias, members, stream.get());
    std::vector<RecurrentMember> sources;
    for (const auto& m : members) {
      sources.push_back({m.input_weight, m.hidden_weight, m.input_bias, m.hidden_bias});
    }
    const auto like = [&](const Tensor& tensor) {
      return Tensor(context, p.dtype, tensor.shape());
    };
    Tensor wi = like(operands.input_weight), wh = like(operands.hidden_weight);
    Tensor bi = like(operands.input_bias), bh = like(operands.hidden_bias);
    plan.prepare_weights(sources, wi, wh, bi, bh, stream.get());
    context.synchronize(stream.get());
    CHECK(download(context, wi) == download(context, operands.input_weight));
    CHECK(download(context, wh) == download(context, operands.hidden_weight));
    CHECK(download(context, bi) == download(context, operands.input_bias));
    CHECK(download(context, bh) == download(context, operands.hidden_bias));
    const Reals packed = download(context, operands.hidden_weight);
    CHECK(download(context, tensors[5]) == Reals(packed.begin() + 147, packed.begin() + 294));
    CHECK_THROWS_AS(
        plan.prepare_weights(std::span(sources).subspan(1), wi, wh, bi, bh, stream.get()), Error);
  }
}
