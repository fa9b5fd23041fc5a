// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics/distributions.hpp"

#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>

namespace wide::bench {

namespace {

namespace math = boost::math;
using math::complement;

}  // namespace

double normal_below(double z) {
  return math::cdf(math::normal(), z);
}

double normal_above(double z) {
  return math::cdf(complement(math::normal(), z));
}

double normal_quantile(double p) {
  return math::quantile(math::normal(), p);
}

double digamma(double x) {
  return math::digamma(x);
}

double trigamma(double x) {
  return math::trigamma(x);
}

double student_two_sided(double t, double dof) {
  if (std::isinf(dof)) return 2 * normal_above(std::fabs(t));
  return 2 * math::cdf(complement(math::students_t(dof), std::fabs(t)));
}

double student_quantile(double p, double dof) {
  return math::quantile(math::students_t(dof), p);
}

double fisher_above(double f, double dof_between, double dof_within) {
  return math::cdf(complement(math::fisher_f(dof_between, dof_within), f));
}

}  // namespace wide::bench
