// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The keys of problems in a tuning cache. Each primitive has both functions.
#pragma once

#include <string>

#include "wide/tuning.hpp"

namespace wide {

struct AttentionProblem;
struct BatchnormProblem;
struct BinaryProblem;
struct ChainProblem;
struct ConvProblem;
struct DropoutProblem;
struct EmbeddingProblem;
struct EnsembleProblem;
struct FlashAttentionProblem;
struct GroupnormProblem;
struct LayernormProblem;
struct LinearProblem;
struct MlpProblem;
struct PointwiseProblem;
struct PoolingProblem;
struct RaggedLinearProblem;
struct RecurrentProblem;
struct RmsnormProblem;
struct RoutedLinearProblem;
struct RoutedMlpProblem;
struct RoutingProblem;
struct SoftmaxProblem;
struct TopKProblem;

/// A complete problem in words, on one line; different for different problems.
std::string problem_key(const AttentionProblem& complete);
std::string problem_key(const BatchnormProblem& complete);
std::string problem_key(const BinaryProblem& complete);
std::string problem_key(const ChainProblem& complete);
std::string problem_key(const ConvProblem& complete);
std::string problem_key(const DropoutProblem& complete);
std::string problem_key(const EmbeddingProblem& complete);
std::string problem_key(const EnsembleProblem& complete);
std::string problem_key(const FlashAttentionProblem& complete);
std::string problem_key(const GroupnormProblem& complete);
std::string problem_key(const LayernormProblem& complete);
std::string problem_key(const LinearProblem& complete);
std::string problem_key(const MlpProblem& complete);
std::string problem_key(const PointwiseProblem& complete);
std::string problem_key(const PoolingProblem& complete);
std::string problem_key(const RaggedLinearProblem& complete);
std::string problem_key(const RecurrentProblem& complete);
std::string problem_key(const RmsnormProblem& complete);
std::string problem_key(const RoutedLinearProblem& complete);
std::string problem_key(const RoutedMlpProblem& complete);
std::string problem_key(const RoutingProblem& complete);
std::string problem_key(const SoftmaxProblem& complete);
std::string problem_key(const TopKProblem& complete);

/// Completes any problem; returns the name that plans give their primitive, and the key. Throws
/// invalid_argument where the problem is not legal.
TuningKey tuning_key(const AttentionProblem& problem);
TuningKey tuning_key(const BatchnormProblem& problem);
TuningKey tuning_key(const BinaryProblem& problem);
TuningKey tuning_key(const ChainProblem& problem);
TuningKey tuning_key(const ConvProblem& problem);
TuningKey tuning_key(const DropoutProblem& problem);
TuningKey tuning_key(const EmbeddingProblem& problem);
TuningKey tuning_key(const EnsembleProblem& problem);
TuningKey tuning_key(const FlashAttentionProblem& problem);
TuningKey tuning_key(const GroupnormProblem& problem);
TuningKey tuning_key(const LayernormProblem& problem);
TuningKey tuning_key(const LinearProblem& problem);
TuningKey tuning_key(const MlpProblem& problem);
TuningKey tuning_key(const PointwiseProblem& problem);
TuningKey tuning_key(const PoolingProblem& problem);
TuningKey tuning_key(const RaggedLinearProblem& problem);
TuningKey tuning_key(const RecurrentProblem& problem);
TuningKey tuning_key(const RmsnormProblem& problem);
TuningKey tuning_key(const RoutedLinearProblem& problem);
TuningKey tuning_key(const RoutedMlpProblem& problem);
TuningKey tuning_key(const RoutingProblem& problem);
TuningKey tuning_key(const SoftmaxProblem& problem);
TuningKey tuning_key(const TopKProblem& problem);

}  // namespace wide
