// The AdaSum tree of tree.h for up to 64 tensors at a time, one in each lane of the vector unit.
//
// Lanes have neither branches nor exponents of their own, so they serve ordinary tensors only, which nearly all are:
//
//   - their records have no flag, and exponents of vectors of zeros only;
//   - the squared norms of vectors are zero or from 2^-60 to 2^60, and within 2^60 of each other;
//   - two vectors (r = 2) are not almost opposite: their cosine is at least -0.9995. With more vectors every node has a squared
//     norm of at least 2^-39 of its spread (tree.h);
//   - with a tolerance, no node counts as zero beside its partner.
//
// `solved` tells for each lane whether it was one; tree.h serves the others. That depends on nothing but the matrix and the
// tolerance, so statistics do not change weights. A matrix is scaled by a power of two so that its largest squared norm is from
// 1 to 4: all that follows stays far from overflow, and what underflows is far below the error that the matrix leaves in the
// same number.
//
// Weights come from additions, products, multiply-adds and scalar divisions: if multiply-add rounds twice, they have the same
// bits on all chips (README.md). Norms and statistics come from Div and Sqrt, too, whose last bit is the chip's.
#ifndef ADASUM_TREE_LANES_H
#define ADASUM_TREE_LANES_H

#include "adasum_ascendc.h"
#include "arch.h"
#include "layout.h"
#include "tree.h"
#include "two_float.h"
#include "two_float_lanes.h"

namespace adasum {

class TreeLanes {
public:
    static constexpr uint32_t LANES = 64;

    static __aicore__ inline constexpr uint32_t ub_bytes() { return ROWS * LANES * 4; }

    __aicore__ inline TreeLanes() {}

    // Works in `all`, which has ub_bytes().
    __aicore__ inline void init(const AscendC::LocalTensor<float> &all, uint32_t radix) {
        all_ = all;
        radix_ = radix;
        for (uint32_t i = 0; i < PRODUCT_WORK; ++i) {
            work_[i] = row(WORK + i);
        }
    }

    // Solves the trees of the tensors with these records, which the scalar unit may read, as it may read what is found. The
    // squared norm of the result is only there with `statistics` or if it is `limited`.
    __aicore__ inline void solve(const AscendC::LocalTensor<float> &records, uint32_t count, float zero_tol,
                                 bool statistics, bool limited) {
        // Whole blocks: the lanes behind the last one hold anything, and nobody looks at them.
        count_ = static_cast<int32_t>((count + BLOCK - 1) / BLOCK * BLOCK);
        lanes_ = count;
        statistics_ = statistics;
        combined_ = statistics || limited || radix_ > 2;
        zero_tol_ = zero_tol;
        find_ordinary(records);
        load(records);
        merges_.start(radix_);
        while (merges_.next()) {
            merge(merges_.a(), merges_.b());
        }
        wait_for<AscendC::HardEvent::V_S>();
    }

    // Whether a lane had an ordinary tensor. If not, all else about it is meaningless.
    __aicore__ inline bool solved(uint32_t lane) const { return ordinary_[lane] && row(DOUBT).GetValue(lane) <= 0.0f; }

    // Whether vectors nearly cancel (tree.h).
    __aicore__ inline bool nearly_cancels(uint32_t lane) const { return row(CANCELLED).GetValue(lane) > 0.0f; }

    __aicore__ inline Scaled weight(uint32_t leaf, uint32_t lane) const { return number(weight_of(leaf), lane, 0); }

    // The squared norm of the result.
    __aicore__ inline Scaled result_square(uint32_t lane) const { return number(gram(0, 0), lane, exponents_[lane]); }

    // Writes weights, and statistics if there are any, as the words of coefficients.
    __aicore__ inline void store(const AscendC::LocalTensor<float> &coefficients) {
        for (uint32_t i = 0; i < radix_; ++i) {
            put(coefficients, COEFFICIENT_WEIGHT + i, weight_of(i).hi);
        }
        if (statistics_) {
            find_statistics();
            for (uint32_t i = 0; i < radix_; ++i) {
                put(coefficients, coefficient_leaf_norm(radix_) + i, row(LEAF_NORMS + i));
            }
            put(coefficients, COEFFICIENT_KAPPA, row(KAPPA));
            put(coefficients, COEFFICIENT_RESULT_NORM, row(RESULT_NORM));
        }
    }

private:
    // Squared norms, before and after they are scaled.
    static constexpr int32_t MOST_LOG2 = 60;
    // What stands for a squared norm of zero where it divides: far below all others.
    static constexpr int32_t FLOOR_LOG2 = -110;
    // The squared cosine from which on two opposite vectors are left to tree.h: little is left of the norm of their sum, which
    // statistics and limits need. It counts without these as well, so that weights do not depend on them.
    static constexpr float OPPOSED_SQUARE = 1.0f - 1.0f / 1024.0f;
    // The kappa from which on vectors nearly cancel, less a unit in the last place: it counts itself, where 0 is above 0.
    static constexpr float CANCELLING_KAPPA = 3.9999998f;
    static_assert(CANCELLING_KAPPA_LOG2 == 2, "the number above is another one");

    // Rows of LANES numbers: hi and lo of the entries of the matrices and of the weights, and others.
    static constexpr uint32_t GRAM = 0;
    static constexpr uint32_t WEIGHTS = GRAM + 2 * entries(MAX_RADIX);
    static constexpr uint32_t SPREADS = WEIGHTS + 2 * MAX_RADIX;
    static constexpr uint32_t LEAF_NORMS = SPREADS + MAX_RADIX;
    static constexpr uint32_t NODE_WEIGHTS = LEAF_NORMS + MAX_RADIX;
    static constexpr uint32_t NORMS = NODE_WEIGHTS + 4;
    static constexpr uint32_t INVERSES = NORMS + 4;
    static constexpr uint32_t ONE = INVERSES + 2;
    static constexpr uint32_t FACTOR = ONE + 2;
    static constexpr uint32_t ROOT = FACTOR + 1;
    static constexpr uint32_t FLOOR = ROOT + 1;
    static constexpr uint32_t ZERO = FLOOR + 1;
    static constexpr uint32_t DOUBT = ZERO + 1;
    static constexpr uint32_t CANCELLED = DOUBT + 1;
    static constexpr uint32_t KAPPA = CANCELLED + 1;
    static constexpr uint32_t RESULT_NORM = KAPPA + 1;
    static constexpr uint32_t TERMS = RESULT_NORM + 1;
    static constexpr uint32_t WORK = TERMS + 8;
    static constexpr uint32_t ROWS = WORK + PRODUCT_WORK;

    __aicore__ inline AscendC::LocalTensor<float> row(uint32_t index) const { return all_[index * LANES]; }
    __aicore__ inline TwoFloatLanes pair(uint32_t index) const { return TwoFloatLanes{row(index), row(index + 1)}; }

    __aicore__ inline TwoFloatLanes gram(uint32_t i, uint32_t j) const {
        return pair(GRAM + 2 * (i < j ? entry_index(i, j, radix_) : entry_index(j, i, radix_)));
    }
    __aicore__ inline TwoFloatLanes weight_of(uint32_t leaf) const { return pair(WEIGHTS + 2 * leaf); }
    __aicore__ inline TwoFloatLanes one() const { return pair(ONE); }
    __aicore__ inline TwoFloatLanes term(uint32_t index) const { return pair(TERMS + 2 * index); }

    __aicore__ inline Scaled number(const TwoFloatLanes &lanes, uint32_t lane, int32_t exponent) const {
        return normalise(TwoFloat{lanes.hi.GetValue(lane), lanes.lo.GetValue(lane)}, exponent);
    }

    // Finds out which tensors are ordinary by their squared norms, and the powers of two that scale these.
    __aicore__ inline void find_ordinary(const AscendC::LocalTensor<float> &records) {
        constexpr float MOST = static_cast<float>(1ULL << MOST_LOG2);
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            AscendC::LocalTensor<float> record = records[lane * record_words(radix_)];
            float squares[MAX_RADIX];
            float largest = 0.0f;
            for (uint32_t i = 0; i < radix_; ++i) {
                squares[i] = record.GetValue(2 * entry_index(i, i, radix_));
                largest = squares[i] > largest ? squares[i] : largest;
            }
            bool in_range = largest == 0.0f || (largest <= MOST && largest * MOST >= 1.0f);
            bool ordinary = in_range && record.GetValue(record_flags(radix_)) == 0.0f;
            for (uint32_t i = 0; i < radix_; ++i) {
                float exponent = record.GetValue(record_exponents(radix_) + i);
                bool zero = squares[i] == 0.0f && exponent == static_cast<float>(ZERO_EXPONENT);
                ordinary =
                    ordinary && (zero || (exponent == 0.0f && (squares[i] == 0.0f || squares[i] * MOST >= largest)));
            }
            // An even power of two: norms have its root.
            int32_t power = (static_cast<int32_t>(bits_of(largest) >> 23) - 127) & ~1;
            ordinary_[lane] = ordinary;
            exponents_[lane] = ordinary && largest > 0.0f ? power : 0;
            row(FACTOR).SetValue(lane, power_of_two(-exponents_[lane]));
            row(ROOT).SetValue(lane, power_of_two(exponents_[lane] / 2));
        }
        wait_for<AscendC::HardEvent::S_V>();
    }

    __aicore__ inline void load(const AscendC::LocalTensor<float> &records) {
        for (uint32_t word = 0; word < 2 * entries(radix_); ++word) {
            take_column(row(GRAM + word), records, word, record_words(radix_), lanes_);
        }
        fill(ONE, 1.0f);
        fill(ONE + 1, 0.0f);
        fill(FLOOR, power_of_two(FLOOR_LOG2));
        fill(ZERO, 0.0f);
        fill(DOUBT, 0.0f);
        fill(CANCELLED, 0.0f);
        fill(KAPPA, 1.0f);
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t word = 0; word < 2 * entries(radix_); ++word) {
            AscendC::Mul(row(GRAM + word), row(GRAM + word), row(FACTOR), count_);
        }
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t i = 0; i < radix_; ++i) {
            copy(row(SPREADS + i), gram(i, i).hi);
            copy(row(LEAF_NORMS + i), gram(i, i).hi);
        }
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void fill(uint32_t index, float value) { AscendC::Duplicate(row(index), value, count_); }

    __aicore__ inline void copy(const AscendC::LocalTensor<float> &to, const AscendC::LocalTensor<float> &from) {
        AscendC::Muls(to, from, 1.0f, count_);
    }

    // Node a becomes the AdaSum of a and b.
    __aicore__ inline void merge(uint32_t a, uint32_t b) {
        TwoFloatLanes norm_a = pair(NORMS);
        TwoFloatLanes norm_b = pair(NORMS + 2);
        floor_norm(norm_a, gram(a, a));
        floor_norm(norm_b, gram(b, b));
        AscendC::PipeBarrier<PIPE_V>();
        if (radix_ == 2) {
            look_for_opposed();
        }
        if (zero_tol_ > 0.0f) {
            look_for_vanishing(gram(a, a).hi, gram(b, b).hi);
            look_for_vanishing(gram(b, b).hi, gram(a, a).hi);
        }
        find_inverses(norm_a.hi, norm_b.hi);
        TwoFloatLanes weight_a = pair(NODE_WEIGHTS);
        TwoFloatLanes weight_b = pair(NODE_WEIGHTS + 2);
        find_weight(weight_a, gram(a, b), norm_a, row(INVERSES));
        find_weight(weight_b, gram(a, b), norm_b, row(INVERSES + 1));
        for (uint32_t leaf = 0; leaf < radix_; ++leaf) {
            if (merges_.node_of(leaf) == a) {
                apply(leaf, merges_.is_leaf(a), weight_a);
            } else if (merges_.node_of(leaf) == b) {
                apply(leaf, merges_.is_leaf(b), weight_b);
            }
        }
        if (combined_) {
            combine(a, b, weight_a, weight_b);
        }
        merges_.join();
    }

    __aicore__ inline void floor_norm(const TwoFloatLanes &norm, const TwoFloatLanes &square) {
        AscendC::Max(norm.hi, square.hi, row(FLOOR), count_);
        copy(norm.lo, square.lo);
    }

    // Two vectors nearly cancel where d^2 > A B / 2 for a negative d, and are almost opposite where d^2 is nearly A B.
    __aicore__ inline void look_for_opposed() {
        AscendC::LocalTensor<float> back = row(TERMS);
        AscendC::LocalTensor<float> squares = row(TERMS + 1);
        AscendC::LocalTensor<float> half = row(TERMS + 2);
        AscendC::LocalTensor<float> most = row(TERMS + 3);
        AscendC::Muls(back, gram(0, 1).hi, -1.0f, count_);
        AscendC::Mul(squares, gram(0, 0).hi, gram(1, 1).hi, count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Max(back, back, row(ZERO), count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(back, back, back, count_);
        AscendC::Muls(half, squares, 0.5f, count_);
        AscendC::Muls(most, squares, OPPOSED_SQUARE, count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(row(CANCELLED), back, half, count_);
        AscendC::Sub(most, back, most, count_);
        AscendC::PipeBarrier<PIPE_V>();
        raise(DOUBT, most);
    }

    // Doubtful where a norm is at most about the tolerance times another one that is not zero.
    __aicore__ inline void look_for_vanishing(const AscendC::LocalTensor<float> &norm,
                                              const AscendC::LocalTensor<float> &beside) {
        AscendC::LocalTensor<float> limit = row(TERMS);
        AscendC::Muls(limit, beside, zero_tol_ * 1.0001f, count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sub(limit, limit, norm, count_);
        AscendC::PipeBarrier<PIPE_V>();
        raise(DOUBT, limit);
    }

    __aicore__ inline void raise(uint32_t index, const AscendC::LocalTensor<float> &value) {
        AscendC::Max(row(index), row(index), value, count_);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void find_inverses(const AscendC::LocalTensor<float> &a, const AscendC::LocalTensor<float> &b) {
        wait_for<AscendC::HardEvent::V_S>();
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            row(INVERSES).SetValue(lane, 1.0f / a.GetValue(lane));
            row(INVERSES + 1).SetValue(lane, 1.0f / b.GetValue(lane));
        }
        wait_for<AscendC::HardEvent::S_V>();
    }

    // weight = 1 - dot / (2 norm), by long division of two steps.
    __aicore__ inline void find_weight(const TwoFloatLanes &weight, const TwoFloatLanes &dot, const TwoFloatLanes &norm,
                                       const AscendC::LocalTensor<float> &inverse) {
        TwoFloatLanes digits = term(0);
        TwoFloatLanes rest = term(1);
        TwoFloatLanes product = term(2);
        AscendC::Mul(digits.hi, dot.hi, inverse, count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Muls(digits.lo, digits.hi, -1.0f, count_);
        AscendC::PipeBarrier<PIPE_V>();
        multiply(product, norm, digits.lo, work_, count_);
        adasum::add(rest, product, dot, term(3), count_);
        AscendC::Mul(digits.lo, rest.hi, inverse, count_);
        AscendC::PipeBarrier<PIPE_V>();
        quick_two_sum(product, digits.hi, digits.lo, count_);
        AscendC::Muls(digits.hi, product.hi, -0.5f, count_);
        AscendC::Muls(digits.lo, product.lo, -0.5f, count_);
        AscendC::PipeBarrier<PIPE_V>();
        adasum::add(weight, digits, one(), term(3), count_);
    }

    // A leaf that is a node by itself has had no weight yet.
    __aicore__ inline void apply(uint32_t leaf, bool alone, const TwoFloatLanes &weight) {
        TwoFloatLanes own = weight_of(leaf);
        if (alone) {
            copy(own.hi, weight.hi);
            copy(own.lo, weight.lo);
            AscendC::PipeBarrier<PIPE_V>();
        } else {
            multiply(own, own, weight, work_, count_);
        }
    }

    __aicore__ inline void combine(uint32_t a, uint32_t b, const TwoFloatLanes &weight_a,
                                   const TwoFloatLanes &weight_b) {
        for (uint32_t other = 0; other < radix_; ++other) {
            if (merges_.is_apart(other)) {
                sum_of(gram(a, other), weight_a, gram(a, other), weight_b, gram(b, other));
            }
        }
        TwoFloatLanes with_b = term(3);
        sum_of(with_b, weight_a, gram(a, b), weight_b, gram(b, b));
        sum_of(gram(a, b), weight_a, gram(a, a), weight_b, gram(a, b));
        sum_of(gram(a, a), weight_a, gram(a, b), weight_b, with_b);
        combine_spreads(a, b, weight_a.hi, weight_b.hi);
        look_at_node(gram(a, a).hi, row(SPREADS + a));
    }

    // sum = u x + v y; it may be one of these.
    __aicore__ inline void sum_of(const TwoFloatLanes &sum, const TwoFloatLanes &u, const TwoFloatLanes &x,
                                  const TwoFloatLanes &v, const TwoFloatLanes &y) {
        multiply(term(0), u, x, work_, count_);
        multiply(term(1), v, y, work_, count_);
        adasum::add(sum, term(0), term(1), term(2), count_);
    }

    // The sum of the squared norms of a node's weighted vectors.
    __aicore__ inline void combine_spreads(uint32_t a, uint32_t b, const AscendC::LocalTensor<float> &weight_a,
                                           const AscendC::LocalTensor<float> &weight_b) {
        AscendC::LocalTensor<float> part_a = row(TERMS);
        AscendC::LocalTensor<float> part_b = row(TERMS + 1);
        AscendC::Mul(part_a, weight_a, weight_a, count_);
        AscendC::Mul(part_b, weight_b, weight_b, count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(part_a, part_a, row(SPREADS + a), count_);
        AscendC::Mul(part_b, part_b, row(SPREADS + b), count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Add(row(SPREADS + a), part_a, part_b, count_);
        AscendC::PipeBarrier<PIPE_V>();
    }

    // What cancelled in a node: raises DOUBT where it is more than lanes serve, CANCELLED where it is more than fp32 weights serve.
    __aicore__ inline void look_at_node(const AscendC::LocalTensor<float> &square,
                                        const AscendC::LocalTensor<float> &spread) {
        AscendC::LocalTensor<float> part = row(TERMS);
        AscendC::LocalTensor<float> norm = row(TERMS + 1);
        if (radix_ > 2) {
            AscendC::Muls(part, spread, power_of_two(NOISE_LOG2 + 1), count_);
            AscendC::Muls(norm, square, CANCELLING_KAPPA, count_);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Sub(part, part, square, count_);
            AscendC::Sub(norm, spread, norm, count_);
            AscendC::PipeBarrier<PIPE_V>();
            raise(DOUBT, part);
            raise(CANCELLED, norm);
        }
        if (statistics_) {
            AscendC::Max(norm, square, row(FLOOR), count_);
            AscendC::PipeBarrier<PIPE_V>();
            AscendC::Div(part, spread, norm, count_);
            AscendC::PipeBarrier<PIPE_V>();
            raise(KAPPA, part);
        }
    }

    __aicore__ inline void find_statistics() {
        for (uint32_t i = 0; i < radix_; ++i) {
            find_root(LEAF_NORMS + i);
            AscendC::Mul(row(LEAF_NORMS + i), row(LEAF_NORMS + i), row(ROOT), count_);
        }
        copy(row(RESULT_NORM), gram(0, 0).hi);
        AscendC::PipeBarrier<PIPE_V>();
        find_root(RESULT_NORM);
        AscendC::Mul(row(RESULT_NORM), row(RESULT_NORM), row(ROOT), count_);
        AscendC::PipeBarrier<PIPE_V>();
    }

    // The root of a square, 0 for what is not above 0: x / sqrt(x), as Sqrt takes positive numbers only.
    __aicore__ inline void find_root(uint32_t index) {
        AscendC::LocalTensor<float> square = row(index);
        AscendC::LocalTensor<float> root = row(TERMS);
        AscendC::Max(square, square, row(ZERO), count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Max(root, square, row(FLOOR), count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Sqrt(root, root, count_);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Div(square, square, root, count_);
        AscendC::PipeBarrier<PIPE_V>();
    }

    __aicore__ inline void put(const AscendC::LocalTensor<float> &coefficients, uint32_t word,
                               const AscendC::LocalTensor<float> &lanes) {
        uint32_t words = coefficient_words(radix_);
        transpose_blocks(coefficients[word], words, BLOCK * words, lanes, lanes_);
    }

    AscendC::LocalTensor<float> all_;
    AscendC::LocalTensor<float> work_[PRODUCT_WORK];
    bool ordinary_[LANES];
    int32_t exponents_[LANES];
    Merges merges_;
    // Lanes in use, and whole blocks of them.
    uint32_t lanes_ = 0;
    int32_t count_ = 0;
    uint32_t radix_ = 0;
    float zero_tol_ = 0.0f;
    bool statistics_ = true;
    // Whether nodes have entries of the matrix: all but the only merge of two vectors need them.
    bool combined_ = true;
};

} // namespace adasum

#endif
