/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: pointers that are null.
 */
#ifndef WIDE_VERIFY_C_API_NULLS_H
#define WIDE_VERIFY_C_API_NULLS_H

/* Each pointer null that may not be, one by one; the others are in c_api_refusals.h. */
static void refuse_nulls(const Engine* e) {
  const int64_t shape[2] = {2, 3};
  wide_tensor* tensor = NULL;
  wide_parameters* parameters_of_one = NULL;
  DLManagedTensor* managed = NULL;
  int64_t handle = 0;
  wide_view view = {.struct_size = sizeof view};
  wide_context_info context = {.struct_size = sizeof context};
  const wide_view* x = &e->x_view;
  REFUSED("context is null", wide_context_query(NULL, &context));
  REFUSED("out is null", wide_context_query(e->context, NULL));
  REFUSED("out is null", wide_stream_create(e->context, NULL));
  REFUSED("out is null", wide_handles_create(e->context, NULL));
  REFUSED("out is null", wide_handles_borrow(&handle, NULL, NULL));
  REFUSED("context is null", wide_tensor_create(NULL, WIDE_FP32, shape, 2, &tensor));
  REFUSED("out is null", wide_tensor_create(e->context, WIDE_FP32, shape, 2, NULL));
  REFUSED("tensor is null", wide_tensor_view(NULL, &view));
  REFUSED("out is null", wide_tensor_view(e->x, NULL));
  REFUSED("destination: view is null", wide_copy(x, NULL, e->stream));
  OK(wide_tensor_to_dlpack(e->x, &managed));
  REFUSED("out is null", wide_view_from_dlpack(managed, NULL));
  managed->deleter(managed);
  REFUSED("out is null", wide_tensor_to_dlpack(e->x, NULL));
  REFUSED("out is null", wide_graph_create_named("mlp", NULL, NULL));
  REFUSED("graph is null", wide_parameters_create_random(NULL, 1, 0, &parameters_of_one));
  REFUSED("out is null", wide_parameters_create_random(e->graph, 1, 0, NULL));
  REFUSED("parameters is null", wide_parameters_set(NULL, "w", x));
  REFUSED("name is null", wide_parameters_set(e->members[0], NULL, x));
  REFUSED("view is null", wide_parameters_set(e->members[0], "w", NULL));
  REFUSED("path is null", wide_parameters_load(e->members[0], NULL));
  REFUSED("parameters is null", wide_parameters_save(NULL, "x.safetensors"));
  REFUSED("parameters is null", wide_parameters_get(NULL, "fc1.bias", &view));
  REFUSED("name is null", wide_parameters_get(e->members[0], NULL, &view));
  REFUSED("out is null", wide_parameters_get(e->members[0], "fc1.bias", NULL));
  CHECK(tensor == NULL && parameters_of_one == NULL && wide_stream_native(NULL) == NULL);
}

static void refuse_nulls_of_models(const Engine* e) {
  wide_parameters* parameters_of_one = NULL;
  wide_plan* plan = NULL;
  wide_model* model = NULL;
  wide_replay* replay = NULL;
  int64_t most = 0;
  int32_t is_masked = 0;
  wide_plan_info info = {.struct_size = sizeof info};
  wide_operand operand = {.struct_size = sizeof operand};
  wide_step step = {.struct_size = sizeof step};
  const wide_parameters* const members[kMembers] = {e->members[0], e->members[1], e->members[2]};
  const wide_view *x = &e->x_view, *y = &e->y_view;
  REFUSED("context is null", wide_plan_create(NULL, e->graph, NULL, &plan));
  REFUSED("out is null", wide_plan_create(e->context, e->graph, NULL, NULL));
  REFUSED("plan is null", wide_plan_query(NULL, &info));
  REFUSED("out is null", wide_plan_query(e->plan, NULL));
  REFUSED("plan is null", wide_plan_input(NULL, 0, &operand));
  REFUSED("out is null", wide_plan_input(e->plan, 0, NULL));
  REFUSED("plan is null", wide_plan_output(NULL, 0, &operand));
  REFUSED("out is null", wide_plan_output(e->plan, 0, NULL));
  REFUSED("plan is null", wide_plan_step(NULL, 0, &step));
  REFUSED("out is null", wide_plan_step(e->plan, 0, NULL));
  REFUSED("context is null", wide_largest_num_members_that_fits(NULL, e->graph, NULL, 1, &most));
  REFUSED("graph is null", wide_largest_num_members_that_fits(e->context, NULL, NULL, 1, &most));
  REFUSED("context is null", wide_model_create(NULL, e->plan, members, kMembers, &model));
  REFUSED("plan is null", wide_model_create(e->context, NULL, members, kMembers, &model));
  REFUSED("members is null", wide_model_create(e->context, e->plan, NULL, kMembers, &model));
  REFUSED("out is null", wide_model_create(e->context, e->plan, members, kMembers, NULL));
  REFUSED("outputs is null", wide_model_run(e->model, x, 1, NULL, 1, &e->execution));
  REFUSED("model is null", wide_model_replace(NULL, 0, members[0], e->stream));
  REFUSED("model is null", wide_model_clone(NULL, 0, 1, e->stream));
  REFUSED("model is null", wide_model_get(NULL, 0, e->stream, &parameters_of_one));
  REFUSED("out is null", wide_model_get(e->model, 0, e->stream, NULL));
  REFUSED("model is null", wide_model_mask(NULL, 0, e->stream));
  REFUSED("model is null", wide_model_unmask(NULL, 0, e->stream));
  REFUSED("model is null", wide_model_is_masked(NULL, 0, &is_masked));
  REFUSED("model is null", wide_model_seed_dropout(NULL, 1, 0, e->stream));
  REFUSED("model is null", wide_model_seed_members(NULL, NULL, 0, 0, e->stream));
  REFUSED("model is null", wide_model_advance_dropout(NULL, e->stream));
  REFUSED("model is null", wide_replay_create(NULL, x, 1, y, 1, &e->execution, NULL, &replay));
  REFUSED("execution is null", wide_replay_create(e->model, x, 1, y, 1, NULL, NULL, &replay));
  REFUSED("out is null", wide_replay_create(e->model, x, 1, y, 1, &e->execution, NULL, NULL));
  CHECK(parameters_of_one == NULL && plan == NULL && model == NULL && replay == NULL);
  CHECK(strcmp(wide_plan_explain(NULL), "") == 0);
}

#endif
