// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The distributions that tests and intervals need, from Boost.Math: its headers are large, so only
// one file includes them.
#pragma once

namespace wide::bench {

double normal_below(double z);  ///< P(Z <= z)
double normal_above(double z);  ///< P(Z > z), accurate where it is tiny
double normal_quantile(double p);

/// P(|T| >= |t|) of Student's t; for infinite dof the normal distribution's.
double student_two_sided(double t, double dof);
double student_quantile(double p, double dof);

/// The first and second derivative of log Gamma, of x above 0.
double digamma(double x);
double trigamma(double x);

/// P(F >= f) of Fisher's F.
double fisher_above(double f, double dof_between, double dof_within);

}  // namespace wide::bench
