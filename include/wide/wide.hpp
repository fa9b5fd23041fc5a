// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// wide: N models of identical architecture as one model. This header is all an application needs.
#pragma once

#include "wide/attention.hpp"
#include "wide/batchnorm.hpp"
#include "wide/binary.hpp"
#include "wide/channels.hpp"
#include "wide/context.hpp"
#include "wide/conv.hpp"
#include "wide/device.hpp"
#include "wide/dropout.hpp"
#include "wide/dtype.hpp"
#include "wide/embedding.hpp"
#include "wide/epilogue.hpp"
#include "wide/error.hpp"
#include "wide/flash_attention.hpp"
#include "wide/groupnorm.hpp"
#include "wide/layernorm.hpp"
#include "wide/linear.hpp"
#include "wide/pack.hpp"
#include "wide/plan.hpp"
#include "wide/pointwise.hpp"
#include "wide/pooling.hpp"
#include "wide/quantize.hpp"
#include "wide/ragged_linear.hpp"
#include "wide/rmsnorm.hpp"
#include "wide/shape.hpp"
#include "wide/softmax.hpp"
#include "wide/tensor.hpp"
#include "wide/tuning.hpp"
#include "wide/version.hpp"
