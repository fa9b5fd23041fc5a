// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Values are kept dense, row-major, in double; they are rounded where a tensor's type is narrower.
#include "verify/support/cudnn_interpreter.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "wide/convert.hpp"

namespace wide::test {

namespace {

using Index = std::vector<int64_t>;

Dtype dtype_of(CudnnType type) {
  return type == CudnnType::fp16    ? Dtype::fp16
         : type == CudnnType::bf16  ? Dtype::bf16
         : type == CudnnType::int32 ? Dtype::int32
                                    : Dtype::fp32;
}

/// Where an index lies in a tensor whose extents of 1 are broadcast, and whose heads may be shared
/// by several of the index's.
int64_t at(const Shape& shape, const Index& index, const Shape& of) {
  int64_t offset = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t share = std::max<int64_t>(1, of[axis] / std::max<int64_t>(1, shape[axis]));
    offset = offset * shape[axis] + index[static_cast<size_t>(axis)] / share;
  }
  return offset;
}

void for_each(const Shape& shape, const std::function<void(const Index&)>& body) {
  Index index(static_cast<size_t>(shape.rank()), 0);
  for (int64_t i = 0; i < num_elements(shape); ++i) {
    body(index);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      if (++index[static_cast<size_t>(axis)] < shape[axis]) break;
      index[static_cast<size_t>(axis)] = 0;
    }
  }
}

class Interpreter {
 public:
  Interpreter(const CudnnGraph& graph, std::span<const CudnnBinding> bindings) : graph_(graph) {
    data_.resize(graph.tensors().size(), nullptr);
    for (const CudnnBinding& binding : bindings) {
      REQUIRE(binding.data != nullptr);
      data_.at(static_cast<size_t>(binding.tensor)) = binding.data;
    }
    for (size_t i = 0; i < data_.size(); ++i) {
      const CudnnTensor& tensor = graph.tensors()[i];
      auto& values =
          values_.emplace_back(static_cast<size_t>(num_elements(tensor.shape)), tensor.number);
      REQUIRE((tensor.place == CudnnTensor::Place::memory) == (data_[i] != nullptr));
      if (data_[i] == nullptr) continue;
      size_t next = 0;
      for_each(tensor.shape, [&](const Index& index) {
        values[next++] = load_element(data_[i], dtype_of(tensor.type), place(tensor, index));
      });
    }
  }

  void run() {
    for (const CudnnOperation& operation : graph_.operations()) {
      std::visit([&](const auto& one) { compute(one); }, operation);
    }
  }

 private:
  static int64_t place(const CudnnTensor& tensor, const Index& index) {
    int64_t offset = 0;
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
      offset += index[static_cast<size_t>(axis)] * tensor.strides[axis];
    }
    return offset;
  }

  double get(CudnnTensorId id, const Index& index, const Shape& of) const {
    return values_[static_cast<size_t>(id)]
                  [static_cast<size_t>(at(graph_.tensor(id).shape, index, of))];
  }
  double get(CudnnTensorId id, const Index& index) const {
    return get(id, index, graph_.tensor(id).shape);
  }

  void set(CudnnTensorId id, const Index& index, double value) {
    const CudnnTensor& tensor = graph_.tensor(id);
    if (tensor.type == CudnnType::fp16 || tensor.type == CudnnType::bf16) {
      std::byte rounded[8];  // of the widest dtype, which g++ thinks may come here
      store_element(rounded, dtype_of(tensor.type), 0, value);
      value = load_element(rounded, dtype_of(tensor.type), 0);
    }
    values_[static_cast<size_t>(id)][static_cast<size_t>(at(tensor.shape, index, tensor.shape))] =
        value;
    void* const data = data_[static_cast<size_t>(id)];
    if (data != nullptr) store_element(data, dtype_of(tensor.type), place(tensor, index), value);
  }

  void compute(const CudnnPointwise& p) {
    const Shape& shape = graph_.tensor(p.y).shape;
    for_each(shape, [&](const Index& index) {
      const auto operand = [&](CudnnTensorId id) {
        return id == kNoCudnnTensor ? 0 : get(id, index, shape);
      };
      set(p.y, index,
          p.function == CudnnFunction::index
              ? static_cast<double>(index[static_cast<size_t>(p.axis)])
              : value(p.function, operand(p.a), operand(p.b), operand(p.c)));
    });
  }

  static double value(CudnnFunction function, double a, double b, double c) {
    switch (function) {
      case CudnnFunction::add:
        return a + b;
      case CudnnFunction::subtract:
        return a - b;
      case CudnnFunction::multiply:
        return a * b;
      case CudnnFunction::divide:
        return a / b;
      case CudnnFunction::exp:
        return std::exp(a);
      case CudnnFunction::log:
        return std::log(a);
      case CudnnFunction::rsqrt:
        return 1 / std::sqrt(a);
      case CudnnFunction::relu:
        return a > 0 ? a : 0;
      case CudnnFunction::gelu:
        return a / 2 * (1 + std::erf(a / std::sqrt(2.0)));
      case CudnnFunction::silu:
        return a / (1 + std::exp(-a));
      case CudnnFunction::at_least:
        return a >= b ? 1 : 0;
      case CudnnFunction::less:
        return a < b ? 1 : 0;
      case CudnnFunction::select:
        return c != 0 ? a : b;
      case CudnnFunction::index:
        break;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  void compute(const CudnnReduction& r) {
    const CudnnTensor& y = graph_.tensor(r.y);
    const bool sums = r.of == CudnnReduction::Of::sum;
    for_each(y.shape, [&](const Index& index) {
      set(r.y, index, sums ? 0 : -std::numeric_limits<double>::infinity());
    });
    for_each(graph_.tensor(r.x).shape, [&](const Index& index) {
      Index to = index;
      for (int axis = 0; axis < y.shape.rank(); ++axis) {
        if (y.shape[axis] == 1) to[static_cast<size_t>(axis)] = 0;
      }
      const double before = get(r.y, to), one = get(r.x, index);
      set(r.y, to, sums ? before + one : std::max(before, one));
    });
  }

  /// x [B, G C, positions], weight [K, C, kernel positions], y [B, K, positions].
  void compute(const CudnnConvolution& c) {
    const Shape& x = graph_.tensor(c.x).shape;
    const Shape& w = graph_.tensor(c.weight).shape;
    const int64_t groups = x[1] / w[1], per_group = w[0] / groups;
    for_each(graph_.tensor(c.y).shape, [&](const Index& index) {
      double sum = 0;
      Index kernel_index = {};
      Shape taps = w;
      taps[0] = 1;
      for_each(taps, [&](const Index& tap) {
        Index from{index[0], index[1] / per_group * w[1] + tap[1]};
        for (size_t axis = 0; axis < c.padding.size(); ++axis) {
          from.push_back(index[axis + 2] * c.stride[axis] + tap[axis + 2] * c.dilation[axis] -
                         c.padding[axis]);
          if (from.back() < 0 || from.back() >= x[static_cast<int>(axis) + 2]) return;
        }
        kernel_index = tap;
        kernel_index[0] = index[1];
        sum += get(c.x, from) * get(c.weight, kernel_index);
      });
      set(c.y, index, sum);
    });
  }

  /// Where a count says that a row is not there, y is 0.
  void compute(const CudnnMatmul& m) {
    const Shape& y = graph_.tensor(m.y).shape;
    const int64_t all = graph_.tensor(m.a).shape.back();
    for_each(y, [&](const Index& index) {
      const auto count = [&](CudnnTensorId id, int64_t most) {
        return id == kNoCudnnTensor ? most : static_cast<int64_t>(get(id, {index[0], 0, 0, 0}));
      };
      const bool is_there = index[2] < count(m.rows, y[2]) && index[3] < count(m.columns, y[3]);
      const int64_t depth = is_there ? count(m.depth, all) : 0;
      double sum = 0;
      Shape of_a = y, of_b = y;
      of_a[3] = all;
      of_b[2] = all;
      for (int64_t k = 0; k < depth; ++k) {
        sum += get(m.a, {index[0], index[1], index[2], k}, of_a) *
               get(m.b, {index[0], index[1], k, index[3]}, of_b);
      }
      set(m.y, index, sum);
    });
  }

  void compute(const CudnnBatchnorm& b) {
    const Shape& shape = graph_.tensor(b.x).shape;
    const double count = static_cast<double>(num_elements(shape) / shape[1]);
    std::vector<double> mean(static_cast<size_t>(shape[1])), square(mean.size());
    const auto channel = [](const Index& index) { return static_cast<size_t>(index[1]); };
    for_each(shape, [&](const Index& i) { mean[channel(i)] += get(b.x, i) / count; });
    for_each(shape, [&](const Index& i) {
      square[channel(i)] += std::pow(get(b.x, i) - mean[channel(i)], 2) / count;
    });
    const double epsilon = get(b.epsilon, {0, 0, 0, 0}), share = get(b.momentum, {0, 0, 0, 0});
    for_each(graph_.tensor(b.scale).shape, [&](const Index& i) {
      const double variance = square[channel(i)];
      set(b.saved_mean, i, mean[channel(i)]);
      set(b.saved_inv_std, i, 1 / std::sqrt(variance + epsilon));
      set(b.next_mean, i, (1 - share) * get(b.running_mean, i) + share * mean[channel(i)]);
      set(b.next_variance, i,
          (1 - share) * get(b.running_variance, i) + share * variance * count / (count - 1));
    });
    for_each(shape, [&](const Index& i) {
      const Index c{0, i[1], 0, 0};
      set(b.y, i,
          (get(b.x, i) - mean[channel(i)]) / std::sqrt(square[channel(i)] + epsilon) *
                  get(b.scale, c) +
              get(b.bias, c));
    });
  }

  void compute(const CudnnInstancenorm& n) {
    const Shape& shape = graph_.tensor(n.x).shape;
    const double count = static_cast<double>(shape[2] * shape[3]);
    std::vector<double> mean(static_cast<size_t>(shape[0] * shape[1])), square(mean.size());
    const auto image = [&](const Index& i) { return static_cast<size_t>(i[0] * shape[1] + i[1]); };
    for_each(shape, [&](const Index& i) { mean[image(i)] += get(n.x, i) / count; });
    for_each(shape, [&](const Index& i) {
      square[image(i)] += std::pow(get(n.x, i) - mean[image(i)], 2) / count;
    });
    const double epsilon = get(n.epsilon, {0, 0, 0, 0});
    for_each(shape, [&](const Index& i) {
      const Index c{0, i[1], 0, 0};
      const double scale = n.scale == kNoCudnnTensor ? 1 : get(n.scale, c);
      const double bias = n.bias == kNoCudnnTensor ? 0 : get(n.bias, c);
      set(n.y, i,
          (get(n.x, i) - mean[image(i)]) / std::sqrt(square[image(i)] + epsilon) * scale + bias);
    });
  }

  const CudnnGraph& graph_;
  std::vector<void*> data_;
  std::vector<std::vector<double>> values_;
};

}  // namespace

void interpret(const CudnnGraph& graph, std::span<const CudnnBinding> bindings) {
  Interpreter(graph, bindings).run();
}

}  // namespace wide::test
