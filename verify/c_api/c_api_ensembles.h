/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: ensembles of a graph that knew of none.
 */
#ifndef WIDE_VERIFY_C_API_ENSEMBLES_H
#define WIDE_VERIFY_C_API_ENSEMBLES_H

static void refuse_ensembles(const Engine* e) {
  const char *mode = "median", *output = "z";
  wide_graph* graph = NULL;
  wide_output_ensembles what = {.struct_size = sizeof what, .num_ensembles = 1};
  REFUSED("graph is null", wide_graph_ensemble(NULL, NULL, &graph));
  REFUSED("out is null", wide_graph_ensemble(e->graph, NULL, NULL));
  REFUSED("what.ensembles is null, expected 1", wide_graph_ensemble(e->graph, &what, &graph));
  what.ensembles = &mode;
  REFUSED("what.ensembles[0] is \"median\", expected mean, variance, vote, log_mean_exp or sum",
          wide_graph_ensemble(e->graph, &what, &graph));
  what = (wide_output_ensembles){.struct_size = sizeof what, .outputs = &output, .num_outputs = 1};
  REFUSED("no output \"z\"", wide_graph_ensemble(e->graph, &what, &graph));
  what.struct_size = 0;
  REFUSED("what.struct_size is 0", wide_graph_ensemble(e->graph, &what, &graph));
  CHECK(graph == NULL);
}

enum { kResults = 3 };
static const char* const kResultNames[kResults] = {"y", "y.mean", "y.variance"};

/* Runs the engine's members with a plan of these outputs. */
static void run_ensembles(const Engine* e, const wide_plan* plan,
                          float got[kResults][kBatchRows * kMembers * kOut]) {
  wide_model* model = NULL;
  wide_tensor *y[kResults] = {NULL}, *workspace = NULL;
  wide_view out[kResults], scratch = {.struct_size = sizeof scratch};
  wide_plan_info info = {.struct_size = sizeof info};
  const wide_parameters* lent[kMembers] = {e->members[0], e->members[1], e->members[2]};
  OK(wide_plan_query(plan, &info));
  for (int i = 0; i < kResults; ++i) {
    wide_operand operand = {.struct_size = sizeof operand};
    OK(wide_plan_output(plan, i, &operand));
    CHECK(strcmp(operand.name, kResultNames[i]) == 0);
    CHECK(operand.member_axis == (i == 0 ? 1 : -1));
    OK(wide_tensor_create(e->context, operand.dtype, operand.shape, operand.rank, &y[i]));
    out[i] = (wide_view){.struct_size = sizeof *out};
    OK(wide_tensor_view(y[i], &out[i]));
  }
  OK(wide_tensor_create(e->context, WIDE_UINT8, &info.workspace_bytes, 1, &workspace));
  OK(wide_tensor_view(workspace, &scratch));
  wide_execution execution = e->execution;
  execution.workspace = scratch.data, execution.workspace_bytes = info.workspace_bytes;
  OK(wide_model_create(e->context, plan, lent, kMembers, &model));
  OK(wide_model_run(model, &e->x_view, 1, out, kResults, &execution));
  for (int i = 0; i < kResults; ++i) {
    const wide_view host = host_view(got[i], out[i].rank, out[i].shape);
    OK(wide_copy(&out[i], &host, e->stream));
  }
  OK(wide_synchronize(e->context, e->stream));
  wide_model_destroy(model);
  wide_tensor_destroy(workspace);
  for (int i = 0; i < kResults; ++i) wide_tensor_destroy(y[i]);
}

/* Members' outputs, their mean and their variance; and the mean in the outputs' place. */
static void test_ensembles(wide_device device) {
  Engine e = make_engine(device);
  refuse_ensembles(&e);
  const char* modes[2] = {"mean", "variance"};
  const wide_output_ensembles what = {
      .struct_size = sizeof what, .ensembles = modes, .num_ensembles = 2, .keeps_members = 1};
  const wide_plan_options options = plan_options(&e);
  wide_graph *graph = NULL, *means = NULL;
  wide_plan* plan = NULL;
  static float got[kResults][kBatchRows * kMembers * kOut];
  OK(wide_graph_ensemble(e.graph, &what, &graph));
  OK(wide_plan_create(e.context, graph, &options, &plan));
  run_ensembles(&e, plan, got);
  wide_plan_destroy(plan);
  CHECK(is_right(got[0], (const int[]){0, 1, 2}));
  for (int b = 0; b < kBatchRows; ++b) {
    for (int o = 0; o < kOut; ++o) {
      double mean = 0, squares = 0;
      const float* row = got[0] + b * kMembers * kOut + o;
      for (int m = 0; m < kMembers; ++m) mean += row[m * kOut] / (double)kMembers;
      for (int m = 0; m < kMembers; ++m) squares += pow(row[m * kOut] - mean, 2);
      CHECK(fabs(got[1][b * kOut + o] - mean) < 1e-4);
      CHECK(fabs(got[2][b * kOut + o] - squares / (kMembers - 1)) < 1e-3);
    }
  }
  wide_plan_info info = {.struct_size = sizeof info};
  wide_operand operand = {.struct_size = sizeof operand};
  OK(wide_graph_ensemble(e.graph, NULL, &means));
  OK(wide_plan_create(e.context, means, &options, &plan));
  OK(wide_plan_query(plan, &info));
  OK(wide_plan_output(plan, 0, &operand));
  CHECK(info.num_outputs == 1 && strcmp(operand.name, "y.mean") == 0);
  wide_plan_destroy(plan);
  wide_graph_destroy(means);
  wide_graph_destroy(graph);
  destroy_engine(&e);
}

#endif
