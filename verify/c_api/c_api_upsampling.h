/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: layers that make more positions, each against what it is by hand.
 */
#ifndef WIDE_VERIFY_C_API_UPSAMPLING_H
#define WIDE_VERIFY_C_API_UPSAMPLING_H

static void set_weight(wide_parameters* all, const char* name, float* values, int rank,
                       const int64_t* shape) {
  const wide_view view = host_view(values, rank, shape);
  OK(wide_parameters_set(all, name, &view));
}

static void test_upsampling(void) {
  Layers l = begin_layers();
  wide_parameters* all = NULL;
  wide_value row = 0, y = 0, blocks = 0;
  float taps[2] = {1, 10}, sum[4] = {1, 2, 3, 4}, bias = 0.5f;
  const int64_t of_taps[4] = {1, 1, 1, 2}, of_sum[4] = {1, 1, 2, 2}, one = 1;
  OK(wide_parameters_create(&all));
  set_weight(all, "up.weight", taps, 4, of_taps);
  set_weight(all, "padded.weight", sum, 4, of_sum);
  set_weight(all, "padded.bias", &bias, 1, &one);
  OK(wide_builder_slice(l.builder, "row", l.x, 2, 0, 1, &row));
  const wide_conv_transpose_layer up = {.struct_size = sizeof up,
                                        .kernel_height = 1,
                                        .kernel_width = 2,
                                        .stride_width = 2,
                                        .has_no_bias = 1};
  OK(wide_builder_conv_transpose(l.builder, "up", row, 1, &up, &y));
  EXPECT(&l, y, 1, 10, -2, -20, 3, 30, -4, -40);
  /* Of 3 x 5 sums the padding takes the first and last row, and the first column. */
  const wide_conv_transpose_layer padded = {.struct_size = sizeof padded,
                                            .kernel_height = 2,
                                            .kernel_width = 2,
                                            .padding_height = 1,
                                            .padding_width = 1,
                                            .output_padding_width = 1};
  OK(wide_builder_conv_transpose(l.builder, "padded", l.x, 1, &padded, &y));
  EXPECT(&l, y, 1 * 4 - 2 * 3 + 8 * 2 + 6 * 1 + 0.5f, -2 * 4 + 3 * 3 + 6 * 2 - 7 * 1 + 0.5f,
         3 * 4 - 4 * 3 - 7 * 2 + 5 * 1 + 0.5f, -4 * 4 + 5 * 2 + 0.5f);
  const int64_t four[4] = {WIDE_BATCH, 4, 1, 2};
  OK(wide_builder_reshape(l.builder, "blocks", l.x, four, 4, &blocks));
  OK(wide_builder_depth_to_space(l.builder, "shuffle", blocks, 2, &y));
  EXPECT(&l, y, 1, 3, -2, -4, 8, -7, 6, 5);
  wide_value first = 0;
  OK(wide_builder_slice(l.builder, "first", row, 3, 1, 2, &first));
  OK(wide_builder_upsample(l.builder, "twice", first, 2, &y));
  EXPECT(&l, y, -2, -2, 3, 3, -2, -2, 3, 3);
  const wide_interpolate_layer between = {
      .struct_size = sizeof between, .out_height = 2, .out_width = 4};
  OK(wide_builder_interpolate(l.builder, "between", first, &between, &y));
  EXPECT(&l, y, -2, -0.75f, 1.75f, 3, -2, -0.75f, 1.75f, 3);
  const wide_interpolate_layer aligned = {.struct_size = sizeof aligned,
                                          .out_width = 3,
                                          .row_scale = 2,
                                          .coordinates = "align_corners"};
  OK(wide_builder_interpolate(l.builder, "aligned", first, &aligned, &y));
  EXPECT(&l, y, -2, 0.5f, 3, -2, 0.5f, 3);
  OK(wide_builder_interpolate(l.builder, "same", first, NULL, &y));
  EXPECT(&l, y, -2, 3);
  check_layers(&l, all);
  wide_parameters_destroy(all);
}

#endif
