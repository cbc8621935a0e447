// When fp32 sums are enough for a unit of more than two vectors.
//
// The tree (tree.h) needs norms and products of its nodes, which are weighted sums w = c1 x1 + ... + cr xr. It has them from
// the Gram matrix of the vectors, so where the terms of w cancel, the errors of the matrix are large beside |w|. How much can
// cancel is in the matrix G of a unit: if its vectors, scaled to norm 1, have a Gram matrix without an eigenvalue below d,
// then |w|^2 >= d (c1^2 |x1|^2 + ... + cr^2 |xr|^2) for all weights. With sums that are wrong by at most e |xi| |xj|,
//
//   the error of |w|^2, and of a product w v relative to |w| |v|, is at most e (|c1| |x1| + ... + |cr| |xr|)^2 <= (e r / d) |w|^2.
//
// This holds unit by unit, and so, added up, for a tensor. So norms and products of nodes are as good as if the nodes themselves
// had been multiplied, but for the factor r / d, and only as much of it as cancels: e r kappa (layout.h). The e of two vectors
// has no limit of kappa at all. e is as many roundings as an element goes through, 17 of 2^-24, and 24 with r = 8, which
// has half the lanes; they rarely all go the same way. Each level of the tree adds its own. Units that do not pass are summed
// exactly. Vectors of zeros add nothing to w and are left out.
#ifndef ADASUM_SEPARATION_H
#define ADASUM_SEPARATION_H

#include "adasum_ascendc.h"
#include "layout.h"

namespace adasum {

// The d above. Vectors whose cosines are all c > 0 pass while c <= 1 - d, so gradients do that are not nearly the same.
constexpr float SEPARATION = 1.0f / 64.0f;

// Whether G - d diag(G) is positive definite: whether elimination without exchanges meets positive pivots only. The matrix is
// that of a record without exponents. Where numbers leave the range of fp32 no pivot is above what it is compared with.
__aicore__ inline bool is_separated(const AscendC::LocalTensor<float> &record, uint32_t radix) {
    // Of a diagonal entry: less is rounding.
    constexpr float LEAST_PIVOT = 1.0f / 65536.0f;
    float rest[MAX_RADIX][MAX_RADIX];
    float squares[MAX_RADIX];
    for (uint32_t i = 0; i < radix; ++i) {
        for (uint32_t j = i; j < radix; ++j) {
            rest[i][j] = record.GetValue(2 * entry_index(i, j, radix));
        }
        squares[i] = rest[i][i];
        rest[i][i] = rest[i][i] - SEPARATION * rest[i][i];
    }
    for (uint32_t k = 0; k < radix; ++k) {
        if (squares[k] == 0.0f) {
            continue;
        }
        float pivot = rest[k][k];
        if (!(pivot > LEAST_PIVOT * squares[k])) {
            return false;
        }
        for (uint32_t i = k + 1; i < radix; ++i) {
            float factor = rest[k][i] / pivot;
            for (uint32_t j = i; j < radix; ++j) {
                rest[i][j] = rest[i][j] - factor * rest[k][j];
            }
        }
    }
    return true;
}

} // namespace adasum

#endif
