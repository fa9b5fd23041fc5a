/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: views of parts, and of what a file holds.
 */
#ifndef WIDE_VERIFY_C_API_VIEWS_H
#define WIDE_VERIFY_C_API_VIEWS_H

/* One member's rows of an input or output, out of those of all or into them. */
static void copy_member(const Engine* e, const wide_operand* operand, const wide_view* all,
                        int64_t member, float* rows, int is_read) {
  wide_view own = {.struct_size = sizeof own};
  OK(wide_operand_member(operand, all, member, &own));
  const wide_view host = host_view(rows, own.rank, own.shape);
  OK(is_read ? wide_copy(&own, &host, e->stream) : wide_copy(&host, &own, e->stream));
  OK(wide_synchronize(e->context, e->stream));
}

static void test_operand_members(wide_device device) {
  Engine e = make_engine(device);
  wide_operand x = {.struct_size = sizeof x}, y = x;
  OK(wide_plan_input(e.plan, 0, &x));
  OK(wide_plan_output(e.plan, 0, &y));
  wide_view own = {.struct_size = sizeof own};
  OK(wide_operand_member(&x, &e.x_view, 1, &own));
  CHECK(own.rank == 2 && own.shape[0] == kBatchRows && own.shape[1] == kIn);
  CHECK(own.strides[0] == kMembers * kIn && own.strides[1] == 1);
  CHECK((char*)own.data == (char*)e.x_view.data + kIn * sizeof(float));
  OK(run(&e));
  float rows[kBatchRows * kIn], got[kBatchRows * kOut], expected[kBatchRows * kOut];
  for (int m = 0; m < kMembers; ++m) {
    copy_member(&e, &x, &e.x_view, m, rows, 1);
    CHECK(rows[0] == inputs[m * kIn] && rows[kIn] == inputs[(kMembers + m) * kIn]);
    copy_member(&e, &y, &e.y_view, m, got, 1);
    reference(m, m, expected);
    for (int i = 0; i < kBatchRows * kOut; ++i) CHECK(fabsf(got[i] - expected[i]) < 1e-4f);
  }
  memset(rows, 0, sizeof rows); /* of member 1, and of no other */
  copy_member(&e, &x, &e.x_view, 1, rows, 0);
  OK(run(&e));
  copy_member(&e, &y, &e.y_view, 1, got, 1);
  for (int i = 0; i < kOut; ++i) CHECK(got[i] == got[kOut + i]); /* the same for every row */
  copy_member(&e, &y, &e.y_view, 2, got, 1);
  for (int i = 0; i < kBatchRows * kOut; ++i) CHECK(fabsf(got[i] - expected[i]) < 1e-4f);

  const int64_t first_rows[kMembers + 1] = {0, 1, 1, 2};
  x.first_rows = first_rows;
  OK(wide_operand_member(&x, &e.x_view, 2, &own));
  CHECK(own.shape[0] == 1 && own.shape[1] == kMembers * kIn);
  x.first_rows = NULL;
  REFUSED("model: x: member is 3, expected one in [0, 3)",
          wide_operand_member(&x, &e.x_view, 3, &own));
  CHECK(x.num_members == kMembers && y.num_members == kMembers);
  x.num_members = 0; /* as a caller's own operand may leave it */
  REFUSED("operand.num_members is 0, expected >= 1", wide_operand_member(&x, &e.x_view, 0, &own));
  x.num_members = kMembers;
  REFUSED("expected fp32 [2, 18]", wide_operand_member(&x, &e.y_view, 0, &own));
  REFUSED("operand is null", wide_operand_member(NULL, &e.x_view, 0, &own));
  REFUSED("view: view is null", wide_operand_member(&x, NULL, 0, &own));
  REFUSED("out is null", wide_operand_member(&x, &e.x_view, 0, NULL));
  destroy_engine(&e);
}

/* One member's part is filled, and no other's. */
static void test_filling(wide_device device) {
  Engine e = make_engine(device);
  wide_operand x = {.struct_size = sizeof x};
  wide_view own = {.struct_size = sizeof own};
  float rows[kBatchRows * kIn];
  OK(wide_plan_input(e.plan, 0, &x));
  OK(wide_operand_member(&x, &e.x_view, 1, &own));
  OK(wide_fill_bytes(&own, 255, e.stream)); /* NaNs */
  copy_member(&e, &x, &e.x_view, 1, rows, 1);
  for (int i = 0; i < kBatchRows * kIn; ++i) CHECK(isnan(rows[i]));
  OK(wide_fill_bytes(&own, 0, e.stream));
  copy_member(&e, &x, &e.x_view, 1, rows, 1);
  for (int i = 0; i < kBatchRows * kIn; ++i) CHECK(rows[i] == 0);
  for (int m = 0; m < kMembers; m += 2) {
    copy_member(&e, &x, &e.x_view, m, rows, 1);
    for (int i = 0; i < kBatchRows * kIn; ++i)
      CHECK(rows[i] == inputs[(i / kIn * kMembers + m) * kIn + i % kIn]);
  }
  REFUSED("view: view is null", wide_fill_bytes(NULL, 0, e.stream));
  own.data = NULL;
  REFUSED("view is a null pointer", wide_fill_bytes(&own, 0, e.stream));
  if (device.type == WIDE_CUDA) REFUSED("stream is null", wide_fill_bytes(&e.x_view, 0, NULL));
  destroy_engine(&e);
}

/* Parameters of a file may be written to, which the file does not see. */
static void test_mapped_parameters(wide_device device) {
  const char* path = scratch("mapped", device);
  wide_parameters *made = make_parameters(0), *loaded = NULL, *again = NULL;
  wide_view view = {.struct_size = sizeof view}, other = view;
  OK(wide_parameters_save(made, path));
  OK(wide_parameters_create(&loaded));
  OK(wide_parameters_load(loaded, path));
  OK(wide_parameters_get(loaded, "fc1.weight", &view));
  ((float*)view.data)[3] = 42;
  OK(wide_parameters_get(loaded, "fc1.weight", &other));
  CHECK(other.data == view.data && ((const float*)other.data)[3] == 42);
  CHECK(((const float*)other.data)[2] == parameters[0][0][2]);
  OK(wide_parameters_create(&again));
  OK(wide_parameters_load(again, path));
  OK(wide_parameters_get(again, "fc1.weight", &other));
  CHECK(memcmp(other.data, parameters[0][0], kHidden * kIn * sizeof(float)) == 0);
  wide_parameters_destroy(again);
  wide_parameters_destroy(loaded);
  wide_parameters_destroy(made);
  remove(path);
}

/* Names that were handed out are valid as long as the handle, whatever is loaded over them. */
static void test_names_of_loaded_parameters(wide_device device) {
  const char* path = scratch("names", device);
  float bias[kHidden];
  wide_parameters *made = make_parameters(0), *loaded = NULL;
  wide_view view = host_view(bias, 1, (const int64_t[]){kHidden});
  OK(wide_parameters_save(made, path));
  OK(wide_parameters_create(&loaded));
  OK(wide_parameters_set(loaded, "fc1.bias", &view));
  OK(wide_parameters_set(loaded, "zz", &view));
  const char *bias_name = wide_parameters_name(loaded, 0), *own = wide_parameters_name(loaded, 1);
  FAILS(WIDE_IO_ERROR, "no-such-file", wide_parameters_load(loaded, "no-such-file"));
  OK(wide_parameters_get(loaded, "fc1.bias", &view));
  CHECK(view.data == bias && wide_parameters_name(loaded, 2) == NULL);
  OK(wide_parameters_load(loaded, path));
  CHECK(wide_parameters_name(loaded, 0) == bias_name);
  CHECK(wide_parameters_name(loaded, kNumParameters) == own);
  CHECK(wide_parameters_name(loaded, kNumParameters + 1) == NULL);
  CHECK(wide_parameters_name(loaded, 1) != own && wide_parameters_name(loaded, 0) == bias_name);
  view = host_view(bias, 1, (const int64_t[]){kHidden});
  OK(wide_parameters_set(loaded, "a", &view)); /* between two names of a listing */
  CHECK(strcmp(wide_parameters_name(loaded, 0), "a") == 0);
  CHECK(wide_parameters_name(loaded, 1) == bias_name);
  OK(wide_parameters_get(loaded, "fc1.bias", &view));
  CHECK(memcmp(view.data, parameters[0][1], sizeof bias) == 0);
  wide_parameters_destroy(loaded);
  wide_parameters_destroy(made);
  remove(path);
}

/* Memory of the host that copies to and from the device need not wait for. */
static void test_host_memory(wide_device device) {
  Engine e = make_engine(device);
  wide_context* host = NULL;
  wide_tensor* tensor = NULL;
  wide_view own = {.struct_size = sizeof own};
  wide_context_info info = {.struct_size = sizeof info};
  float y[kBatchRows * kMembers * kOut];
  OK(wide_context_create_host(e.context, &host));
  OK(wide_context_query(host, &info));
  CHECK(info.device.type == WIDE_CPU && info.num_threads == 1);
  OK(wide_tensor_create(host, e.y_view.dtype, e.y_view.shape, e.y_view.rank, &tensor));
  OK(wide_tensor_view(tensor, &own));
  CHECK(own.device.type == WIDE_CPU);
  OK(run(&e));
  OK(wide_copy(&e.y_view, &own, e.stream));
  OK(wide_fill_bytes(&e.y_view, 255, e.stream));
  OK(wide_copy(&own, &e.y_view, e.stream));
  OK(wide_synchronize(e.context, e.stream));
  CHECK(is_right(own.data, (const int[]){0, 1, 2}));
  read_output(&e, y);
  CHECK(is_right(y, (const int[]){0, 1, 2}));
  REFUSED("device is null", wide_context_create_host(NULL, &host));
  REFUSED("out is null", wide_context_create_host(e.context, NULL));
  wide_tensor_destroy(tensor);
  wide_context_destroy(host);
  destroy_engine(&e);
}

/* What an engine with numbers of its own does at the border: among 16 and 32 bits, of any strides.
 */
static void test_conversion(void) {
  const int64_t shape[2] = {2, 3}, two[1] = {2};
  float numbers[2][4] = {{1, -2, 65519, 9}, {0.1f, 1e-8f, 3, 9}};
  const uint16_t halves[6] = {0x3c00, 0xc000, 0x7bff, 0x2e66, 0x0000, 0x4200};
  const uint16_t bfloats[6] = {0x3f80, 0xc000, 0x4780, 0x3dcd, 0x322c, 0x4040};
  const float exact[6] = {1, -2, 65504, 0.0999755859375f, 0, 3};
  uint16_t got[6];
  float back[6];
  wide_view from = host_view(numbers, 2, shape), to = host_view(got, 2, shape);
  from.strides[0] = 4, from.strides[1] = 1;
  to.dtype = WIDE_BF16;
  OK(wide_convert(&from, &to));
  CHECK(memcmp(got, bfloats, sizeof got) == 0);
  to.dtype = WIDE_FP16;
  OK(wide_convert(&from, &to));
  CHECK(memcmp(got, halves, sizeof got) == 0);
  wide_view all = host_view(back, 2, shape);
  OK(wide_convert(&to, &all));
  CHECK(memcmp(back, exact, sizeof back) == 0);
  all.strides[0] = 1, all.strides[1] = 2; /* transposed */
  OK(wide_convert(&to, &all));
  CHECK(back[0] == 1 && back[1] == exact[3] && back[2] == -2 && back[5] == 3);

  REFUSED("source: view is null", wide_convert(NULL, &to));
  REFUSED("destination: view is null", wide_convert(&to, NULL));
  all.strides[1] = 0;
  REFUSED("destination has strides [1, 0]", wide_convert(&to, &all));
  all = host_view(back, 1, two);
  REFUSED("source is [2, 3], expected the destination's [2]", wide_convert(&to, &all));
  all = host_view(NULL, 2, shape);
  REFUSED("destination is a null pointer", wide_convert(&to, &all));
  all = host_view(back, 2, shape);
  all.dtype = WIDE_INT32;
  REFUSED("source is int32, expected fp32, fp16 or bf16", wide_convert(&all, &to));
  all.dtype = WIDE_FP32;
  all.device.type = WIDE_CUDA;
  REFUSED("destination is on cuda:0, expected cpu", wide_convert(&to, &all));

  const char* const names[] = {"fp32",     "fp16",  "bf16",  "fp8_e4m3",
                               "fp8_e5m2", "int32", "int64", "uint8"};
  const int64_t bytes[] = {4, 2, 2, 1, 1, 4, 8, 1};
  for (wide_dtype dtype = WIDE_FP32; dtype <= WIDE_UINT8; ++dtype)
    CHECK(strcmp(wide_dtype_name(dtype), names[dtype]) == 0 &&
          wide_dtype_bytes(dtype) == bytes[dtype]);
  CHECK(wide_dtype_name(-1) == NULL && wide_dtype_name(8) == NULL);
  CHECK(wide_dtype_bytes(-1) == 0 && wide_dtype_bytes(8) == 0);
}

/* What says that it has axes, and not which. */
static void refuse_dlpack_without_shape(void) {
  float data[2] = {0};
  wide_view view = {.struct_size = sizeof view};
  DLManagedTensor shapeless = {.dl_tensor = {.data = data, .ndim = 1}};
  shapeless.dl_tensor.device.device_type = kDLCPU;
  shapeless.dl_tensor.dtype = (DLDataType){kDLFloat, 32, 1};
  REFUSED("dlpack: shape is null, expected 1 extents", wide_view_from_dlpack(&shapeless, &view));
  shapeless.dl_tensor.ndim = 0; /* one number */
  OK(wide_view_from_dlpack(&shapeless, &view));
  CHECK(view.rank == 0 && view.data == data);
}

static void test_views(wide_device device) {
  test_operand_members(device);
  test_filling(device);
  test_host_memory(device);
  test_mapped_parameters(device);
  test_names_of_loaded_parameters(device);
  refuse_dlpack_without_shape();
  test_conversion();
}

#endif
