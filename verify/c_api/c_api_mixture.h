/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: a mixture of experts as one plan, by scores and by ids with gates.
 */
#ifndef WIDE_VERIFY_C_API_MIXTURE_H
#define WIDE_VERIFY_C_API_MIXTURE_H

enum { kMixedRows = 4, kChoices = 2, kMostGiven = 3 };

/* Rows, and who runs them by how much; what a plan reads of it is in `given`. */
typedef struct Mixture {
  float x[kMixedRows * kIn], scores[kMixedRows * kMembers], gates[kMixedRows * kChoices];
  int64_t ids[kMixedRows * kChoices];
  wide_view given[kMostGiven];
  int64_t num_given;
} Mixture;

static wide_view mixed_view(void* data, wide_dtype dtype, int64_t columns) {
  return (wide_view){.struct_size = sizeof(wide_view),
                     .data = data,
                     .dtype = dtype,
                     .rank = 2,
                     .shape = {kMixedRows, columns}};
}

/* Of the two largest scores of a row, which are 2 and 1. */
static float gate_of(const char* gate, int choice) {
  const float score = (float)(2 - choice);
  if (strcmp(gate, "sigmoid") == 0) return 1 / (1 + expf(-score));
  return expf(score) / (expf(2) + expf(1));
}

/* Every row has the first row of one member's own inputs. `gate`, by scores; NULL: by ids. */
static void set_mixture(Mixture* mixture, const char* gate) {
  for (int row = 0; row < kMixedRows; ++row) {
    memcpy(mixture->x + row * kIn, inputs + row % kMembers * kIn, kIn * sizeof(float));
    for (int m = 0; m < kMembers; ++m)
      mixture->scores[row * kMembers + m] = (float)((2 * row + m) % kMembers);
    for (int k = 0; k < kChoices; ++k) {
      const int choice = row * kChoices + k;
      mixture->ids[choice] = (kMembers * kMixedRows - 2 * row + 2 - k) % kMembers;
      mixture->gates[choice] = gate == NULL ? 2 - 2.5f * (float)k : gate_of(gate, k);
    }
  }
  mixture->given[0] = mixed_view(mixture->x, WIDE_FP32, kIn);
  mixture->given[1] = mixed_view(mixture->scores, WIDE_FP32, kMembers);
  mixture->num_given = 2;
  if (gate != NULL) return;
  mixture->ids[1] = -1;
  mixture->given[1] = mixed_view(mixture->ids, WIDE_INT64, kChoices);
  mixture->given[2] = mixed_view(mixture->gates, WIDE_FP32, kChoices);
  mixture->num_given = 3;
}

static int is_mixed_right(const Mixture* mixture, const float* y) {
  int is_right = 1;
  for (int row = 0; row < kMixedRows; ++row) {
    float sum[kOut] = {0}, own[kBatchRows * kOut];
    for (int k = 0; k < kChoices; ++k) {
      const int64_t member = mixture->ids[row * kChoices + k];
      if (member < 0) continue;
      reference(row % kMembers, (int)member, own);
      for (int o = 0; o < kOut; ++o) sum[o] += mixture->gates[row * kChoices + k] * own[o];
    }
    for (int o = 0; o < kOut; ++o) is_right = is_right && fabsf(y[row * kOut + o] - sum[o]) < 1e-4f;
  }
  return is_right;
}

static void run_mixture(const Engine* e, const wide_model* model, int64_t workspace_bytes,
                        const char* gate) {
  Mixture mixture;
  set_mixture(&mixture, gate);
  float y[kMixedRows * kOut];
  const wide_view y_host = mixed_view(y, WIDE_FP32, kOut);
  wide_tensor* tensors[kMostGiven + 2] = {NULL};
  wide_view in[kMostGiven], out = y_host, scratch = y_host;
  for (int64_t i = 0; i < mixture.num_given; ++i) {
    const wide_view* given = &mixture.given[i];
    in[i] = *given;
    OK(wide_tensor_create(e->context, given->dtype, given->shape, 2, &tensors[i]));
    OK(wide_tensor_view(tensors[i], &in[i]));
    OK(wide_copy(given, &in[i], e->stream));
  }
  OK(wide_tensor_create(e->context, WIDE_FP32, y_host.shape, 2, &tensors[kMostGiven]));
  OK(wide_tensor_create(e->context, WIDE_UINT8, &workspace_bytes, 1, &tensors[kMostGiven + 1]));
  OK(wide_tensor_view(tensors[kMostGiven], &out));
  OK(wide_tensor_view(tensors[kMostGiven + 1], &scratch));
  wide_execution run = e->execution;
  run.workspace = scratch.data, run.workspace_bytes = workspace_bytes;
  OK(wide_model_run(model, in, mixture.num_given, &out, 1, &run));
  OK(wide_copy(&out, &y_host, e->stream));
  OK(wide_synchronize(e->context, e->stream));
  CHECK(is_mixed_right(&mixture, y));
  for (int i = 0; i < kMostGiven + 2; ++i) wide_tensor_destroy(tensors[i]);
}

static void refuse_mixtures(const Engine* e, wide_plan_options options) {
  wide_plan* plan = NULL;
  options.router = "score";
  REFUSED("options.router is \"score\", expected one of ids, gated_ids, scores",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.router = "scores", options.gate = "sofmax";
  REFUSED("options.gate is \"sofmax\", expected one of softmax, softmax_all, sigmoid, none",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.gate = NULL, options.choices = kMembers + 1;
  REFUSED("choices is 4, expected at most num_members = 3",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.choices = kChoices, options.first_id = 2, options.num_scores = 4;
  REFUSED("num_scores is 4, expected at least first_id + num_members = 5",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.first_id = 0, options.num_scores = 0;
  options.choices = -1;
  REFUSED("choices is -1, expected at least 1",
          wide_plan_create(e->context, e->graph, &options, &plan));
  options.choices = 2, options.is_routed = 0;
  REFUSED("choices is 2 and router is scores, expected 1 and ids where rows are not routed",
          wide_plan_create(e->context, e->graph, &options, &plan));
}

static void test_mixture(wide_device device) {
  Engine e = make_engine(device);
  const wide_parameters* lent[kMembers] = {e.members[0], e.members[1], e.members[2]};
  wide_plan_options options = {.struct_size = sizeof options,
                               .num_members = kMembers,
                               .batch = kMixedRows,
                               .is_routed = 1,
                               .choices = kChoices};
  static const char* const kGates[] = {NULL, "softmax", "sigmoid"};
  for (int kind = 0; kind < 3; ++kind) {
    wide_plan* plan = NULL;
    wide_model* model = NULL;
    const int by_scores = kind > 0;
    options.router = by_scores ? "scores" : "gated_ids";
    options.gate = kind == 1 ? NULL : kGates[kind]; /* softmax is the default */
    OK(wide_plan_create(e.context, e.graph, &options, &plan));
    wide_plan_info info = {.struct_size = sizeof info};
    OK(wide_plan_query(plan, &info));
    CHECK(info.num_inputs == (by_scores ? 2 : 3) && info.num_outputs == 1);
    CHECK(info.num_steps == (by_scores ? 5 : 4));
    wide_operand last = {.struct_size = sizeof last};
    OK(wide_plan_input(plan, info.num_inputs - 1, &last));
    CHECK(strcmp(last.name, by_scores ? "scores" : "gates") == 0 && last.dtype == WIDE_FP32);
    CHECK(last.rank == 2 && last.shape[1] == (by_scores ? kMembers : kChoices));
    wide_step step = {.struct_size = sizeof step};
    OK(wide_plan_step(plan, info.num_steps - 1, &step));
    CHECK(strcmp(step.primitive, "ensemble") == 0);
    OK(wide_model_create(e.context, plan, lent, kMembers, &model));
    run_mixture(&e, model, info.workspace_bytes, kGates[kind]);
    double differences[kMembers] = {-1, -1, -1};
    if (device.type == WIDE_CPU) { /* alone they run on cuBLAS, which the simulated GPU has not */
      OK(wide_model_validate(e.context, e.graph, &options, lent, kMembers, 7, differences));
      for (int m = 0; m < kMembers; ++m) CHECK(differences[m] >= 0 && differences[m] < 1e-5);
    }
    wide_model_destroy(model);
    wide_plan_destroy(plan);
  }
  refuse_mixtures(&e, options);
  destroy_engine(&e);
}

#endif
