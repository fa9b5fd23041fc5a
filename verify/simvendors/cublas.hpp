// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a test that links the simulated cuBLAS asks of it.
#pragma once

namespace wide::simvendors {

struct CublasControl {
  int num_products = 0;        ///< matrices multiplied
  int num_enqueued = 0;        ///< of cublasLtMatmul, outside of captures
  bool refuses_fused = false;  ///< cublasLt has no epilogues, and of its algorithms only the last
  bool saw_fused = false;
};
CublasControl& cublas_control();

}  // namespace wide::simvendors
