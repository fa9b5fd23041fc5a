/* SPDX-FileCopyrightText: the wide developers
 * SPDX-License-Identifier: Apache-2.0
 *
 * wide_onnx.h: ONNX models as graphs, in C: link libwide_onnx beside the libwide that it was built
 * with. What wide.h says of errors, structs, handles and threads applies here, too;
 * wide_last_error() covers these functions.
 *
 *   wide_onnx_open(paths, num_paths, NULL, &members);
 *   wide_members_graph(members, &graph);
 *   for (i = 0; i < num_paths; ++i) wide_members_get(members, i, &parameters[i]);
 *
 * Then a plan and a model as for any other graph. One file gives any number of members:
 * wide_model_create accepts the same parameters several times, and
 * wide_parameters_create_perturbed makes others from them.
 *
 * The first axis of every input is the batch, whatever the file says of it. What is taken and what
 * is refused: wide/onnx.hpp. Untrusted files may be opened: a file is checked as it is read.
 */
#ifndef WIDE_WIDE_ONNX_H
#define WIDE_WIDE_ONNX_H

#include "wide/wide.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a symbolic extent after the batch: "sequence", 128. */
typedef struct wide_onnx_extent {
  size_t struct_size;
  const char* name;
  int64_t extent;
} wide_onnx_extent;

/* An input whose every element is one fixed number: an "attention_mask" of 1 hides nothing. It is a
 * constant, not an input of the graph. */
typedef struct wide_onnx_fixed_input {
  size_t struct_size;
  const char* name;
  double value;
} wide_onnx_fixed_input;

typedef struct wide_onnx_options {
  size_t struct_size;
  const wide_onnx_extent* extents;
  int64_t num_extents;
  const char* const* shared_inputs; /* one for all members; of others each has its own */
  int64_t num_shared_inputs;
  const wide_onnx_fixed_input* fixed_inputs;
  int64_t num_fixed_inputs;
  const char* const* outputs; /* to compute, with what they need; none: all */
  int64_t num_outputs;
} wide_onnx_options;

/* A file for each member, all of one architecture: they may differ by names and weights, which are
 * named as in the first. `options` may be NULL. Files stay mapped while `out` lives, or a handle of
 * parameters that came from it: the files must not be shortened or written to then. WIDE_IO_ERROR;
 * WIDE_INVALID_ARGUMENT for an invalid model, and where files differ, with the node;
 * WIDE_UNSUPPORTED, with the node. */
WIDE_API wide_status wide_onnx_open(const char* const* paths, int64_t num_paths,
                                    const wide_onnx_options* options, wide_members** out);

/* A whole file in memory, which is not copied and must outlive what a mapped file would. */
typedef struct wide_onnx_file {
  size_t struct_size;
  const void* data;
  int64_t bytes;
  const char* name; /* used in errors; not NULL */
} wide_onnx_file;

/* The same of files in memory; tensors in other files are refused. */
WIDE_API wide_status wide_onnx_parse(const wide_onnx_file* files, int64_t num_files,
                                     const wide_onnx_options* options, wide_members** out);

#ifdef __cplusplus
}
#endif

#endif
