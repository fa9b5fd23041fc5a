// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Values are kept dense, row-major, in double; they are rounded where a tensor's type is narrower.
// Memory is read before the first operation and written behind the last: what is updated in place
// is two tensors at one address.
#include "verify/support/cudnn_interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

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

template <class Body>
void for_each(const Shape& shape, const Body& body) {
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
  Interpreter(const CudnnGraph& graph, std::span<const CudnnBinding> bindings, const Access& access)
      : graph_(graph),
        access_(access),
        data_(graph.tensors().size(), nullptr),
        is_written_(data_.size(), false) {
    for (const CudnnBinding& binding : bindings) {
      data_.at(static_cast<size_t>(binding.tensor)) = binding.data;
    }
    for (size_t i = 0; i < data_.size(); ++i) {
      const CudnnTensor& tensor = graph.tensors()[i];
      if ((tensor.place == CudnnTensor::Place::memory) != (data_[i] != nullptr)) {
        throw std::invalid_argument("tensor " + std::to_string(i) + " has no place");
      }
      values_.emplace_back(static_cast<size_t>(num_elements(tensor.shape)), tensor.number);
    }
    for (const CudnnOperation& operation : graph.operations()) {
      std::visit([&](const auto& one) { note_written(one); }, operation);
    }
    for (size_t i = 0; i < data_.size(); ++i) {
      if (data_[i] != nullptr && !is_written_[i]) values_[i] = load(in_memory(i), access_);
    }
  }

  void run() {
    for (const CudnnOperation& operation : graph_.operations()) {
      std::visit([&](const auto& one) { compute(one); }, operation);
    }
    for (size_t i = 0; i < data_.size(); ++i) {
      if (data_[i] != nullptr && is_written_[i]) store(in_memory(i), values_[i], access_);
    }
  }

 private:
  void note_written(const CudnnBatchnorm& b) {
    for (const CudnnTensorId id :
         {b.next_mean, b.next_variance, b.saved_mean, b.saved_inv_std, b.y}) {
      is_written_[static_cast<size_t>(id)] = true;
    }
  }
  template <class Operation>
  void note_written(const Operation& operation) {
    is_written_[static_cast<size_t>(operation.y)] = true;
  }

  StridedTensor in_memory(size_t i) const {
    const CudnnTensor& tensor = graph_.tensors()[i];
    return {data_[i], dtype_of(tensor.type), tensor.shape, tensor.strides};
  }

  double get(CudnnTensorId id, const Index& index, const Shape& of) const {
    return values_[static_cast<size_t>(id)]
                  [static_cast<size_t>(at(graph_.tensor(id).shape, index, of))];
  }
  double get(CudnnTensorId id, const Index& index) const {
    return get(id, index, graph_.tensor(id).shape);
  }

  /// By its place, row-major.
  void set_at(CudnnTensorId id, size_t place, double value) {
    const CudnnTensor& tensor = graph_.tensor(id);
    if (tensor.type == CudnnType::fp16 || tensor.type == CudnnType::bf16) {
      std::byte rounded[8];  // of the widest dtype, which g++ thinks may come here
      store_element(rounded, dtype_of(tensor.type), 0, value);
      value = load_element(rounded, dtype_of(tensor.type), 0);
    }
    values_[static_cast<size_t>(id)][place] = value;
  }
  void set(CudnnTensorId id, const Index& index, double value) {
    const Shape& shape = graph_.tensor(id).shape;
    set_at(id, static_cast<size_t>(at(shape, index, shape)), value);
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
        return a > 0 || std::isnan(a) ? a : 0;
      case CudnnFunction::gelu:
        if (a == -std::numeric_limits<double>::infinity()) return 0;
        return a / 2 * (1 + std::erf(a / std::sqrt(2.0)));
      case CudnnFunction::gelu_tanh:
        if (a == -std::numeric_limits<double>::infinity()) return 0;
        return a / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
      case CudnnFunction::silu:
        if (a == -std::numeric_limits<double>::infinity()) return 0;
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

  /// For each tap and output position: which of x's positions is read; -1 where that is padding.
  std::vector<int64_t> sources(const CudnnConvolution& c) const {
    const auto positions = [](const Shape& of) {
      return Shape(std::span(of.begin() + 2, of.end()));
    };
    const Shape x = positions(graph_.tensor(c.x).shape), dense = contiguous_strides(x);
    std::vector<int64_t> result;
    for_each(positions(graph_.tensor(c.weight).shape), [&](const Index& tap) {
      for_each(positions(graph_.tensor(c.y).shape), [&](const Index& out) {
        int64_t from = 0;
        for (size_t axis = 0; axis < c.padding.size(); ++axis) {
          const int64_t at =
              out[axis] * c.stride[axis] + tap[axis] * c.dilation[axis] - c.padding[axis];
          const bool is_padding = at < 0 || at >= x[static_cast<int>(axis)];
          from = is_padding || from < 0 ? -1 : from + at * dense[static_cast<int>(axis)];
        }
        result.push_back(from);
      });
    });
    return result;
  }

  /// x [B, G C, positions], weight [K, C, taps], y [B, K, positions]. Padding is zeros, which are
  /// multiplied like all others.
  void compute(const CudnnConvolution& c) {
    const Shape& x = graph_.tensor(c.x).shape;
    const Shape& w = graph_.tensor(c.weight).shape;
    const Shape& y = graph_.tensor(c.y).shape;
    const int64_t per_group = w[0] / (x[1] / w[1]);
    const int64_t inputs = num_elements(x) / (x[0] * x[1]),
                  outputs = num_elements(y) / (y[0] * y[1]);
    const int64_t taps = num_elements(w) / (w[0] * w[1]);
    const std::vector<int64_t> source = sources(c);
    const double* const weight = values_[static_cast<size_t>(c.weight)].data();
    for (int64_t row = 0; row < y[0] * y[1]; ++row) {
      const int64_t b = row / y[1], k = row % y[1];
      std::vector<double> sums(static_cast<size_t>(outputs), 0);
      for (int64_t i = 0; i < w[1] * taps; ++i) {
        const int64_t channel = k / per_group * w[1] + i / taps;
        const double* const from =
            values_[static_cast<size_t>(c.x)].data() + (b * x[1] + channel) * inputs;
        const double factor = weight[k * w[1] * taps + i];
        const int64_t* const at = source.data() + i % taps * outputs;
        for (int64_t p = 0; p < outputs; ++p) {
          sums[static_cast<size_t>(p)] += (at[p] < 0 ? 0 : from[at[p]]) * factor;
        }
      }
      for (int64_t p = 0; p < outputs; ++p) {
        set_at(c.y, static_cast<size_t>(row * outputs + p), sums[static_cast<size_t>(p)]);
      }
    }
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

  void compute(const CudnnRowNorm& n) {
    const Shape& shape = graph_.tensor(n.x).shape;
    const auto count = static_cast<double>(shape[1]);
    std::vector<double> mean(static_cast<size_t>(shape[0]), 0), square(mean.size(), 0);
    const auto row = [](const Index& i) { return static_cast<size_t>(i[0]); };
    if (n.has_mean) for_each(shape, [&](const Index& i) { mean[row(i)] += get(n.x, i) / count; });
    for_each(shape,
             [&](const Index& i) { square[row(i)] += std::pow(get(n.x, i) - mean[row(i)], 2); });
    const double epsilon = get(n.epsilon, {0, 0, 0, 0});
    for_each(shape, [&](const Index& i) {
      const double scale = n.scale == kNoCudnnTensor ? 1 : get(n.scale, {0, i[1], 0, 0});
      const double bias = n.bias == kNoCudnnTensor ? 0 : get(n.bias, {0, i[1], 0, 0});
      const double deviation = std::sqrt(square[row(i)] / count + epsilon);
      set(n.y, i, (get(n.x, i) - mean[row(i)]) / deviation * scale + bias);
    });
  }

  /// Of every axis the positions of a window; -1 where that is padding.
  static std::vector<int64_t> window_of(const CudnnPooling& p, size_t axis, int64_t output,
                                        int64_t size) {
    std::vector<int64_t> positions;
    for (int64_t tap = 0; tap < p.window[axis]; ++tap) {
      const int64_t at = output * p.stride[axis] + tap - p.padding_before[axis];
      if (at >= size + p.padding_after[axis]) throw std::invalid_argument("a window ends outside");
      positions.push_back(at < size ? at : -1);
    }
    return positions;
  }

  /// x [B, C, H, W].
  void compute(const CudnnPooling& p) {
    using Of = CudnnPooling::Of;
    const Shape& x = graph_.tensor(p.x).shape;
    for_each(graph_.tensor(p.y).shape, [&](const Index& index) {
      double sum = 0, largest = -std::numeric_limits<double>::infinity();
      int64_t inside = 0;
      for (const int64_t row : window_of(p, 0, index[2], x[2])) {
        for (const int64_t column : window_of(p, 1, index[3], x[3])) {
          if (row < 0 || column < 0) continue;
          const double value = get(p.x, {index[0], index[1], row, column});
          sum += value;
          if (std::isnan(value) || value > largest) largest = value;
          ++inside;
        }
      }
      const int64_t all = p.window[0] * p.window[1];
      const int64_t count = p.of == Of::padded_mean ? all : inside;
      set(p.y, index, p.of == Of::maximum ? largest : sum / static_cast<double>(count));
    });
  }

  const CudnnGraph& graph_;
  const Access& access_;
  std::vector<void*> data_;
  std::vector<bool> is_written_;
  std::vector<std::vector<double>> values_;
};

}  // namespace

void interpret(const CudnnGraph& graph, std::span<const CudnnBinding> bindings,
               const Access& access) {
  Interpreter(graph, bindings, access).run();
}

}  // namespace wide::test
