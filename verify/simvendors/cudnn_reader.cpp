// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simvendors/cudnn_reader.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace wide::simvendors {

namespace {

template <class Ours, class Theirs, size_t n>
Ours find(const std::array<std::pair<Theirs, Ours>, n>& table, Theirs theirs, const char* what) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& one) { return one.first == theirs; });
  if (found == table.end()) throw Refused(std::string(what) + " " + std::to_string(theirs));
  return found->second;
}

CudnnFunction function_of(cudnnPointwiseMode_t mode) {
  using enum CudnnFunction;
  static constexpr std::array<std::pair<cudnnPointwiseMode_t, CudnnFunction>, 15> kFunctions{
      {{CUDNN_POINTWISE_ADD, add},
       {CUDNN_POINTWISE_SUB, subtract},
       {CUDNN_POINTWISE_MUL, multiply},
       {CUDNN_POINTWISE_DIV, divide},
       {CUDNN_POINTWISE_EXP, exp},
       {CUDNN_POINTWISE_LOG, log},
       {CUDNN_POINTWISE_RSQRT, rsqrt},
       {CUDNN_POINTWISE_RELU_FWD, relu},
       {CUDNN_POINTWISE_GELU_FWD, gelu},
       {CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, gelu_tanh},
       {CUDNN_POINTWISE_SWISH_FWD, silu},
       {CUDNN_POINTWISE_GEN_INDEX, index},
       {CUDNN_POINTWISE_CMP_GE, at_least},
       {CUDNN_POINTWISE_CMP_LT, less},
       {CUDNN_POINTWISE_BINARY_SELECT, select}}};
  return find(kFunctions, mode, "pointwise mode");
}

Dims dims_of(const CudnnDescriptor& d, cudnnBackendAttributeName_t name) {
  return Dims(d.all<int64_t>(name));
}

/// What has one right value for us: whatever else it is set to, or not at all, is refused.
template <class Value>
void require(const CudnnDescriptor& d, cudnnBackendAttributeName_t name, Value expected) {
  if (d.one<Value>(name) != expected) {
    throw Refused("attribute " + std::to_string(name) + " is not as it should be");
  }
}

class Reader {
 public:
  Reader(const CudnnDescriptor& graph, const CudnnDescriptor& pack)
      : ids_(pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)),
        addresses_(pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)) {
    if (ids_.size() != addresses_.size()) throw Refused("a pack of other lengths");
    for (const auto& operation : graph.descriptors(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
      call_.graph.append(operation_of(*operation));
    }
  }
  CudnnCall take() { return std::move(call_); }

 private:
  /// By its unique id: operations that share a tensor name it alike.
  CudnnTensorId tensor(const CudnnDescriptor& d, cudnnBackendAttributeName_t name) {
    if (!d.has(name)) return kNoCudnnTensor;
    const CudnnDescriptor& t = d.descriptor(name);
    const auto unique = t.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    if (const auto known = tensors_.find(unique); known != tensors_.end()) return known->second;
    return tensors_[unique] = add(t, unique);
  }

  CudnnTensorId add(const CudnnDescriptor& t, int64_t unique) {
    const CudnnType type = type_of(t.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE));
    const Shape shape = dims_of(t, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const Strides strides = dims_of(t, CUDNN_ATTR_TENSOR_STRIDES);
    if (t.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) return call_.graph.inside(type, shape, strides);
    void* const at = address(unique);
    if (t.one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {
      const double number = type == CudnnType::int32
                                ? static_cast<double>(*static_cast<const int32_t*>(at))
                                : static_cast<double>(*static_cast<const float*>(at));
      return call_.graph.number(number, shape.rank(), type);
    }
    const auto alignment = t.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    if (reinterpret_cast<intptr_t>(at) % alignment != 0) throw Refused("an unaligned tensor");
    const CudnnTensorId id = call_.graph.bind(type, shape, strides);
    call_.bindings.push_back({id, at});
    return id;
  }

  void* address(int64_t unique) const {
    const auto found = std::find(ids_.begin(), ids_.end(), unique);
    if (found == ids_.end()) throw Refused("tensor " + std::to_string(unique) + " has no address");
    return addresses_[static_cast<size_t>(found - ids_.begin())];
  }

  CudnnOperation operation_of(const CudnnDescriptor& d) {
    switch (d.type) {
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return pointwise(d);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return convolution(d);
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        require(d.descriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC), CUDNN_ATTR_MATMUL_COMP_TYPE,
                CUDNN_DATA_FLOAT);
        return CudnnMatmul{tensor(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                           tensor(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
                           tensor(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC),
                           tensor(d, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC),
                           tensor(d, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC),
                           tensor(d, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC)};
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduction(d);
      case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR:
        return norm(d);
      case CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR:
        return pooling(d);
      default:
        throw Refused("operation " + std::to_string(d.type));
    }
  }

  CudnnOperation pointwise(const CudnnDescriptor& d) {
    const CudnnDescriptor& how = d.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    CudnnPointwise p;
    p.function = function_of(how.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE));
    if (p.function == CudnnFunction::index) p.axis = how.one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
    p.a = tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    p.b = tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    p.c = tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    p.y = tensor(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    const auto type = d.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)
                          .one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    const bool is_counted = type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN;
    require(how, CUDNN_ATTR_POINTWISE_MATH_PREC, is_counted ? type : CUDNN_DATA_FLOAT);
    if (p.function == CudnnFunction::relu) {
      require(how, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
    }
    return p;
  }

  CudnnOperation convolution(const CudnnDescriptor& d) {
    const CudnnDescriptor& how = d.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
    CudnnConvolution c;
    c.x = tensor(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
    c.weight = tensor(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
    c.y = tensor(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
    c.padding = how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    c.stride = how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    c.dilation = how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    if (how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) != c.padding) {
      throw Refused("paddings that differ");
    }
    require(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(c.padding.size()));
    require(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    require(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
    require(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0);
    require(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0);
    return c;
  }

  CudnnOperation reduction(const CudnnDescriptor& d) {
    const CudnnDescriptor& how = d.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    const auto of = how.one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    if (of != CUDNN_REDUCE_TENSOR_ADD && of != CUDNN_REDUCE_TENSOR_MAX) {
      throw Refused("reduction " + std::to_string(of));
    }
    require(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    using Of = CudnnReduction::Of;
    return CudnnReduction{of == CUDNN_REDUCE_TENSOR_ADD ? Of::sum : Of::maximum,
                          tensor(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
                          tensor(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC)};
  }

  CudnnOperation norm(const CudnnDescriptor& d) {
    const auto mode = d.one<cudnnBackendNormMode_t>(CUDNN_ATTR_OPERATION_NORM_FWD_MODE);
    require(d, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE,
            mode == CUDNN_BATCH_NORM ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE);
    const CudnnTensorId x = tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC),
                        scale = tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC),
                        bias = tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC),
                        epsilon = tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC),
                        y = tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC);
    if (mode == CUDNN_INSTANCE_NORM) return CudnnInstancenorm{x, scale, bias, epsilon, y};
    if (mode == CUDNN_LAYER_NORM || mode == CUDNN_RMS_NORM) {
      return CudnnRowNorm{mode == CUDNN_LAYER_NORM, x, scale, bias, epsilon, y};
    }
    if (mode != CUDNN_BATCH_NORM) throw Refused("norm " + std::to_string(mode));
    return CudnnBatchnorm{x,
                          scale,
                          bias,
                          epsilon,
                          tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC),
                          tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC),
                          tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC),
                          tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC),
                          tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC),
                          tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC),
                          tensor(d, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC),
                          y};
  }

  CudnnOperation pooling(const CudnnDescriptor& d) {
    using Of = CudnnPooling::Of;
    static constexpr std::array<std::pair<cudnnResampleMode_t, Of>, 3> kModes{
        {{CUDNN_RESAMPLE_MAXPOOL, Of::maximum},
         {CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, Of::mean},
         {CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, Of::padded_mean}}};
    const CudnnDescriptor& how = d.descriptor(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
    CudnnPooling p;
    p.of = find(kModes, how.one<cudnnResampleMode_t>(CUDNN_ATTR_RESAMPLE_MODE), "resampling");
    const bool is_max = p.of == Of::maximum;
    require(how, CUDNN_ATTR_RESAMPLE_PADDING_MODE, is_max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD);
    require(how, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
    require(how, CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT);
    p.x = tensor(d, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
    p.y = tensor(d, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
    p.window = how.all<int64_t>(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS);
    require(how, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, static_cast<int64_t>(p.window.size()));
    p.stride = how.all<int64_t>(CUDNN_ATTR_RESAMPLE_STRIDES);
    p.padding_before = how.all<int64_t>(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS);
    p.padding_after = how.all<int64_t>(CUDNN_ATTR_RESAMPLE_POST_PADDINGS);
    return p;
  }

  std::vector<int64_t> ids_;
  std::vector<void*> addresses_;
  std::map<int64_t, CudnnTensorId> tensors_;
  CudnnCall call_;
};

}  // namespace

CudnnType type_of(cudnnDataType_t type) {
  static constexpr std::array<std::pair<cudnnDataType_t, CudnnType>, 5> kTypes{
      {{CUDNN_DATA_FLOAT, CudnnType::fp32},
       {CUDNN_DATA_HALF, CudnnType::fp16},
       {CUDNN_DATA_BFLOAT16, CudnnType::bf16},
       {CUDNN_DATA_INT32, CudnnType::int32},
       {CUDNN_DATA_BOOLEAN, CudnnType::boolean}}};
  return find(kTypes, type, "data type");
}

CudnnCall read_call(const CudnnDescriptor& graph, const CudnnDescriptor& pack) {
  return Reader(graph, pack).take();
}

}  // namespace wide::simvendors
