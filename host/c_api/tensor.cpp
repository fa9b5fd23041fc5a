// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tensors, copies, and DLPack by its published layout: no dlpack.h is needed.
#include "wide/tensor.hpp"

#include "host/c_api/handles.hpp"
#include "host/core/byte_rows.hpp"
#include "wide/convert.hpp"
#include "wide/dlpack.hpp"

using namespace wide;
using namespace wide::c_api;

namespace {

// https://dmlc.github.io/dlpack/latest/c_api.html
struct DlDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DlManaged* self);
};

/// A managed tensor with what keeps it alive.
struct Exported {
  DlManaged managed{};
  std::shared_ptr<Tensor> tensor;
  TensorView view;
};

void require_convertible(const TensorView& view, const std::string& name) {
  WIDE_REQUIRE(
      view.dtype == Dtype::fp32 || view.dtype == Dtype::fp16 || view.dtype == Dtype::bf16,
      name + " is " + std::string(dtype_name(view.dtype)) + ", expected fp32, fp16 or bf16");
  WIDE_REQUIRE(view.device.type == DeviceType::cpu,
               name + " is on " + to_string(view.device) + ", expected cpu");
  WIDE_REQUIRE(view.data != nullptr || view.num_elements() == 0, name + " is a null pointer");
}

void convert(const TensorView& from, const TensorView& to, int axis = 0, int64_t first_from = 0,
             int64_t first_to = 0) {
  if (axis == from.rank())
    return store_element(to.data, to.dtype, first_to,
                         load_element(from.data, from.dtype, first_from));
  for (int64_t i = 0; i < from.shape[axis]; ++i)
    convert(from, to, axis + 1, first_from + i * from.strides[axis],
            first_to + i * to.strides[axis]);
}

}  // namespace

wide_status wide_tensor_create(const wide_context* context, wide_dtype dtype, const int64_t* shape,
                               int32_t rank, wide_tensor** out) {
  return created(__func__, out, [&] {
    return wide_tensor{std::make_shared<Tensor>(required(context, "context").context,
                                                dtype_of(dtype), dims_of(shape, rank))};
  });
}
wide_status wide_tensor_view(const wide_tensor* tensor, wide_view* out) {
  return guarded(__func__, [&] { write_view(out, *required(tensor, "tensor").tensor); });
}
void wide_tensor_destroy(wide_tensor* tensor) {
  delete tensor;
}

wide_status wide_copy(const wide_view* source, const wide_view* destination, void* stream) {
  return guarded(__func__, [&] {
    const TensorView from = view_of(source, "source"), to = view_of(destination, "destination");
    const Device device = from.device.type == DeviceType::cpu ? to.device : from.device;
    copy(from, to, stream_of(device, stream));
  });
}
wide_status wide_convert(const wide_view* source, const wide_view* destination) {
  return guarded(__func__, [&] {
    const TensorView from = view_of(source, "source"), to = view_of(destination, "destination");
    require_convertible(from, "source");
    require_convertible(to, "destination");
    WIDE_REQUIRE(from.shape == to.shape, "source is " + to_string(from.shape) +
                                             ", expected the destination's " + to_string(to.shape));
    WIDE_REQUIRE(lies_apart(to), "destination has strides " + to_string(to.strides) +
                                     ", expected every element at a place of its own");
    convert(from, to);
  });
}
wide_status wide_fill_bytes(const wide_view* view, uint8_t byte, void* stream) {
  return guarded(__func__, [&] {
    const TensorView own = view_of(view, "view");
    fill_bytes(own, byte, stream_of(own.device, stream));
  });
}

wide_status wide_view_from_dlpack(const DLManagedTensor* managed, wide_view* out) {
  return guarded(__func__, [&] {
    const auto& given = *reinterpret_cast<const DlManaged*>(&required(managed, "managed"));
    write_view(out, from_dlpack(given.dl_tensor));
  });
}

wide_status wide_tensor_to_dlpack(const wide_tensor* tensor, DLManagedTensor** out) {
  return guarded(__func__, [&] {
    DLManagedTensor*& place = required(out, "out");
    const auto& shared = required(tensor, "tensor").tensor;
    auto exported = std::make_unique<Exported>(Exported{{}, shared, *shared});
    to_dlpack(exported->view, exported->managed.dl_tensor);
    exported->managed.manager_ctx = exported.get();
    exported->managed.deleter = [](DlManaged* self) {
      delete static_cast<Exported*>(self->manager_ctx);
    };
    place = reinterpret_cast<DLManagedTensor*>(&exported.release()->managed);
  });
}
