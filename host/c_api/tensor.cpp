// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tensors, copies, and DLPack by its published layout: no dlpack.h is needed.
#include "wide/tensor.hpp"

#include "host/c_api/handles.hpp"
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
