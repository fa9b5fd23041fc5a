/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * Part of c_api_test.c: products of activations, each against what it is by hand.
 */
#ifndef WIDE_VERIFY_C_API_PRODUCTS_H
#define WIDE_VERIFY_C_API_PRODUCTS_H

static void test_products(void) {
  Layers l = begin_layers();
  wide_parameters* none = NULL;
  wide_value y = 0;
  OK(wide_parameters_create(&none));
  wide_matmul_layer product = {.struct_size = sizeof product, .transposes_right = 1, .alpha = 0.5f};
  OK(wide_builder_matmul(l.builder, "rows", l.x, l.x, &product, &y));
  EXPECT(&l, y, 15, -22.5f, -22.5f, 87);
  product = (wide_matmul_layer){.struct_size = sizeof product, .transposes_left = 1};
  OK(wide_builder_matmul(l.builder, "columns", l.x, l.x, &product, &y));
  EXPECT(&l, y, 65, 46, -53, 36, 46, 40, -48, 38, -53, -48, 58, -47, 36, 38, -47, 41);
  check_layers(&l, none);
  wide_parameters_destroy(none);
}

#endif
