/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: rows that are routed to members by ids that the device reads.
 */
#ifndef WIDE_VERIFY_C_API_ROUTED_H
#define WIDE_VERIFY_C_API_ROUTED_H

enum { kRoutedRows = 4 };

/* Whether each row is what its member gives for its own first row of `inputs`, or zeros. */
static int is_routed_right(const Engine* e, const wide_model* model, const wide_execution* run,
                           const int64_t* ids) {
  float x[kRoutedRows * kIn], y[kRoutedRows * kOut], expected[kBatchRows * kOut];
  for (int row = 0; row < kRoutedRows; ++row) {
    const int64_t member = ids[row] < 0 ? 0 : ids[row];
    memcpy(x + row * kIn, inputs + member * kIn, kIn * sizeof *x);
  }
  const int64_t x_shape[2] = {kRoutedRows, kIn}, y_shape[2] = {kRoutedRows, kOut};
  const wide_view x_host = host_view(x, 2, x_shape), y_host = host_view(y, 2, y_shape);
  const wide_view ids_host = {.struct_size = sizeof ids_host,
                              .data = (void*)ids,
                              .dtype = WIDE_INT64,
                              .rank = 1,
                              .shape = {kRoutedRows}};
  wide_tensor* tensors[3] = {NULL, NULL, NULL};
  wide_view in[2] = {{.struct_size = sizeof *in}, {.struct_size = sizeof *in}}, out = *in;
  OK(wide_tensor_create(e->context, WIDE_FP32, x_shape, 2, &tensors[0]));
  OK(wide_tensor_create(e->context, WIDE_INT64, x_shape, 1, &tensors[1]));
  OK(wide_tensor_create(e->context, WIDE_FP32, y_shape, 2, &tensors[2]));
  OK(wide_tensor_view(tensors[0], &in[0]));
  OK(wide_tensor_view(tensors[1], &in[1]));
  OK(wide_tensor_view(tensors[2], &out));
  OK(wide_copy(&x_host, &in[0], e->stream));
  OK(wide_copy(&ids_host, &in[1], e->stream));
  OK(wide_model_run(model, in, 2, &out, 1, run));
  OK(wide_copy(&out, &y_host, e->stream));
  OK(wide_synchronize(e->context, e->stream));
  for (int i = 0; i < 3; ++i) wide_tensor_destroy(tensors[i]);
  int is_right = 1;
  for (int row = 0; row < kRoutedRows; ++row) {
    if (ids[row] >= 0) reference((int)ids[row], (int)ids[row], expected);
    for (int o = 0; o < kOut; ++o) {
      const float value = ids[row] < 0 ? 0 : expected[o];
      is_right = is_right && fabsf(y[row * kOut + o] - value) < 1e-4f;
    }
  }
  return is_right;
}

static void test_routed(wide_device device) {
  Engine e = make_engine(device);
  wide_plan* plan = NULL;
  wide_model* model = NULL;
  wide_tensor* workspace = NULL;
  wide_plan_options options = {
      .struct_size = sizeof options, .num_members = kMembers, .batch = kRoutedRows, .is_routed = 1};
  OK(wide_plan_create(e.context, e.graph, &options, &plan));
  wide_plan_info info = {.struct_size = sizeof info};
  OK(wide_plan_query(plan, &info));
  CHECK(info.num_inputs == 2 && info.num_outputs == 1 && info.num_steps == 3);
  CHECK(info.input_bytes == kRoutedRows * (kIn * (int64_t)sizeof(float) + 8));
  wide_operand ids = {.struct_size = sizeof ids};
  OK(wide_plan_input(plan, 1, &ids));
  CHECK(strcmp(ids.name, "member_ids") == 0 && ids.dtype == WIDE_INT64 && ids.rank == 1);
  CHECK(ids.shape[0] == kRoutedRows && ids.member_axis == -1 && ids.num_members == kMembers);
  wide_step step = {.struct_size = sizeof step};
  OK(wide_plan_step(plan, 2, &step));
  CHECK(strcmp(step.primitive, "routed_linear") == 0 && step.num_members == kMembers);

  const wide_parameters* lent[kMembers] = {e.members[0], e.members[1], e.members[2]};
  OK(wide_model_create(e.context, plan, lent, kMembers, &model));
  OK(wide_tensor_create(e.context, WIDE_UINT8, &info.workspace_bytes, 1, &workspace));
  wide_view scratch = {.struct_size = sizeof scratch};
  OK(wide_tensor_view(workspace, &scratch));
  wide_execution run = e.execution;
  run.workspace = scratch.data, run.workspace_bytes = info.workspace_bytes;
  CHECK(is_routed_right(&e, model, &run, (const int64_t[]){2, 0, -1, 1}));
  CHECK(is_routed_right(&e, model, &run, (const int64_t[]){1, 1, 1, 2}));
  double differences[kMembers] = {-1, -1, -1};
  if (device.type == WIDE_CPU) { /* alone they run on cuBLAS, which the simulated GPU has not */
    OK(wide_model_validate(e.context, e.graph, &options, lent, kMembers, 7, differences));
    for (int m = 0; m < kMembers; ++m) CHECK(differences[m] >= 0 && differences[m] < 1e-5);
  }
  REFUSED("expected 2", wide_model_run(model, &scratch, 1, &scratch, 1, &run));
  int64_t most = -1;
  REFUSED("options.is_routed is 1, expected 0",
          wide_largest_num_members_that_fits(e.context, e.graph, &options, 1 << 20, &most));
  wide_plan *of_ints = NULL, *none = NULL;
  options.id_dtype = WIDE_INT32;
  OK(wide_plan_create(e.context, e.graph, &options, &of_ints));
  OK(wide_plan_input(of_ints, 1, &ids));
  CHECK(strcmp(ids.name, "member_ids") == 0 && ids.dtype == WIDE_INT32);
  wide_plan_destroy(of_ints);
  options.id_dtype = WIDE_FP16;
  REFUSED("id_dtype is fp16, expected int64 or int32",
          wide_plan_create(e.context, e.graph, &options, &none));
  options.id_dtype = 0;
  options.batches = (const int64_t[kMembers]){2, 1, 1}, options.num_batches = kMembers;
  REFUSED("rows are routed, and batches has 3 entries, expected none",
          wide_plan_create(e.context, e.graph, &options, &none));
  wide_tensor_destroy(workspace);
  wide_model_destroy(model);
  wide_plan_destroy(plan);
  destroy_engine(&e);
}

#endif
