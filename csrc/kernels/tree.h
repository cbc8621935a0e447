// The AdaSum tree over the r vectors of a round, solved from their Gram matrix alone.
//
// Shape: neighbours pair up, level by level; an odd one at the end is carried to the next level. So 5 vectors are
// merged as (((01)(23))4), 6 as (((01)(23))(45)), 7 as (((01)(23))((45)6)). Up to r = 8 this is also the order of a
// tree that works prime by prime. In a pair with dot product d and squared norms A and B
//
//   w = (1 - d / 2A) a + (1 - d / 2B) b,
//
// and a zero vector is the identity: it has d = 0, which gives both the weight 1. Every node is a linear
// combination of the vectors, so a merge takes two rows and columns of the matrix to one.
//
// With a tolerance above 0, a node whose squared norm is at most so many times that of its partner counts as zero: the
// pair is the partner.
//
// A node whose leaves nearly cancel has a squared norm below the error of the matrix. It is taken to be no smaller
// than that error, which bounds its weights.
#ifndef ADASUM_TREE_H
#define ADASUM_TREE_H

#include "adasum_ascendc.h"
#include "layout.h"
#include "records.h"
#include "two_float.h"

namespace adasum {

// The relative error that two-float sums of a whole tensor stay well below.
constexpr int32_t NOISE_LOG2 = -40;

// The kappa from which on vectors nearly cancel.
constexpr int32_t CANCELLING_KAPPA_LOG2 = 2;

// The merges of the tree in their order. A node goes by the number of its first leaf.
class Merges {
public:
    __aicore__ inline Merges() {}

    __aicore__ inline void start(uint32_t radix) {
        radix_ = radix;
        count_ = radix;
        done_ = 0;
        for (uint32_t i = 0; i < radix; ++i) {
            nodes_[i] = i;
            node_of_[i] = i;
        }
    }

    // Goes to the next merge; false if there is none.
    __aicore__ inline bool next() {
        if (2 * done_ + 1 >= count_) {
            // The next level: an odd node is carried there.
            if (count_ % 2 != 0) {
                nodes_[count_ / 2] = nodes_[count_ - 1];
            }
            count_ = (count_ + 1) / 2;
            done_ = 0;
        }
        if (count_ == 1) {
            return false;
        }
        a_ = nodes_[2 * done_];
        b_ = nodes_[2 * done_ + 1];
        nodes_[done_] = a_;
        ++done_;
        return true;
    }

    // The nodes that are merged: `a` is what they become.
    __aicore__ inline uint32_t a() const { return a_; }
    __aicore__ inline uint32_t b() const { return b_; }

    // The node that a leaf is in, and whether a node has but one leaf.
    __aicore__ inline uint32_t node_of(uint32_t leaf) const { return node_of_[leaf]; }
    __aicore__ inline bool is_leaf(uint32_t node) const {
        uint32_t leaves = 0;
        for (uint32_t leaf = 0; leaf < radix_; ++leaf) {
            leaves += node_of_[leaf] == node ? 1 : 0;
        }
        return leaves == 1;
    }
    // Whether a number is that of a node which takes no part in this merge.
    __aicore__ inline bool is_apart(uint32_t number) const {
        return node_of_[number] == number && number != a_ && number != b_;
    }

    // The leaves of b are a's from here on.
    __aicore__ inline void join() {
        for (uint32_t leaf = 0; leaf < radix_; ++leaf) {
            node_of_[leaf] = node_of_[leaf] == b_ ? a_ : node_of_[leaf];
        }
    }

private:
    uint32_t nodes_[MAX_RADIX];
    uint32_t node_of_[MAX_RADIX];
    uint32_t radix_ = 0;
    // Nodes of this level, and those of them that are merged.
    uint32_t count_ = 0;
    uint32_t done_ = 0;
    uint32_t a_ = 0;
    uint32_t b_ = 0;
};

class Tree {
public:
    __aicore__ inline Tree() {}

    // Solves for the weights. The vectors of `sum` are finite; `zero_tol` is at least 0 and below 1. The norm of the result
    // and kappa are only there if `statistics` are wanted.
    __aicore__ inline void solve(const RecordSum &sum, uint32_t radix, float zero_tol, bool statistics) {
        radix_ = radix;
        statistics_ = statistics;
        tolerance_ = normalise(TwoFloat{zero_tol, 0.0f}, 0);
        load(sum);
        merges_.start(radix);
        while (merges_.next()) {
            merge(merges_.a(), merges_.b());
            merges_.join();
        }
    }

    __aicore__ inline Scaled weight(uint32_t leaf) const { return weights_[leaf]; }

    // The squared norm of a vector.
    __aicore__ inline Scaled square(uint32_t leaf) const { return squares_[leaf]; }

    // The squared norm of the result.
    __aicore__ inline Scaled result_square() const { return positive(gram_[0][0]); }

    // The largest ratio of the squared norms of a node's weighted vectors to that of the node: what cancelled.
    __aicore__ inline Scaled kappa() const { return kappa_; }

    // Whether vectors nearly cancel, so that the rounding of fp32 weights and products would be much of their sum. Two do so
    // where their cosine is below -0.7, more where kappa is at least 4.
    __aicore__ inline bool nearly_cancels() const { return radix_ > 2 ? cancelled_ : opposed_; }

private:
    static __aicore__ inline Scaled positive(const Scaled &a) {
        return a.m.hi > 0.0f ? a : Scaled{TwoFloat{0.0f, 0.0f}, 0};
    }

    __aicore__ inline void load(const RecordSum &sum) {
        for (uint32_t i = 0; i < radix_; ++i) {
            for (uint32_t j = i; j < radix_; ++j) {
                gram_[i][j] = sum.entry(i, j);
                gram_[j][i] = gram_[i][j];
            }
            squares_[i] = gram_[i][i];
            spread_[i] = gram_[i][i];
            weights_[i] = scaled_one();
        }
        kappa_ = scaled_one();
        cancelled_ = false;
    }

    // Node a becomes the AdaSum of a and b.
    __aicore__ inline void merge(uint32_t a, uint32_t b) {
        Scaled norm_a = norm_of(a);
        Scaled norm_b = norm_of(b);
        Scaled zero = Scaled{TwoFloat{0.0f, 0.0f}, 0};
        bool without_a = vanishes(norm_a, norm_b);
        bool without_b = vanishes(norm_b, norm_a);
        Scaled dot = without_a || without_b ? zero : gram_[a][b];
        Scaled weight_a = without_a ? zero : weight_of(a, dot, norm_a);
        Scaled weight_b = without_b ? zero : weight_of(b, dot, norm_b);
        opposed_ = radix_ == 2 && dot.m.hi < 0.0f && is_less(shift(multiply(norm_a, norm_b), -1), multiply(dot, dot));
        for (uint32_t leaf = 0; leaf < radix_; ++leaf) {
            if (merges_.node_of(leaf) == a) {
                weights_[leaf] = multiply(weights_[leaf], weight_a);
            } else if (merges_.node_of(leaf) == b) {
                weights_[leaf] = multiply(weights_[leaf], weight_b);
            }
        }
        if (statistics_ || radix_ > 2) {
            combine(a, b, weight_a, weight_b);
        }
    }

    // Whether a squared norm counts as zero beside another one.
    __aicore__ inline bool vanishes(const Scaled &norm, const Scaled &beside) const {
        return !is_zero(tolerance_) && !is_zero(beside) && !is_less(multiply(tolerance_, beside), norm);
    }

    // The squared norm of a node, at least the error that its leaves leave in it; 0 only if it is zero.
    __aicore__ inline Scaled norm_of(uint32_t node) const {
        Scaled norm = positive(gram_[node][node]);
        Scaled noise = shift(spread_[node], NOISE_LOG2);
        return is_less(norm, noise) ? noise : norm;
    }

    // 1 - dot / (2 norm). Leaves that cancelled exactly are left out: their sum need not be exact.
    __aicore__ inline Scaled weight_of(uint32_t node, const Scaled &dot, const Scaled &norm) const {
        if (is_zero(gram_[node][node]) && !is_zero(spread_[node])) {
            return Scaled{TwoFloat{0.0f, 0.0f}, 0};
        }
        if (is_zero(dot) || is_zero(norm)) {
            return scaled_one();
        }
        return add(scaled_one(), negate(shift(divide(dot, norm), -1)));
    }

    __aicore__ inline void combine(uint32_t a, uint32_t b, const Scaled &weight_a, const Scaled &weight_b) {
        Scaled with_a = sum_of(weight_a, gram_[a][a], weight_b, gram_[a][b]);
        Scaled with_b = sum_of(weight_a, gram_[a][b], weight_b, gram_[b][b]);
        for (uint32_t other = 0; other < radix_; ++other) {
            if (merges_.is_apart(other)) {
                gram_[a][other] = sum_of(weight_a, gram_[a][other], weight_b, gram_[b][other]);
                gram_[other][a] = gram_[a][other];
            }
        }
        gram_[a][a] = sum_of(weight_a, with_a, weight_b, with_b);
        Scaled spread_a = multiply(multiply(weight_a, weight_a), spread_[a]);
        Scaled spread_b = multiply(multiply(weight_b, weight_b), spread_[b]);
        spread_[a] = add(spread_a, spread_b);
        // What cancels exactly does no harm.
        if (is_zero(gram_[a][a])) {
            return;
        }
        Scaled norm = norm_of(a);
        cancelled_ = cancelled_ || !is_less(spread_[a], shift(norm, CANCELLING_KAPPA_LOG2));
        if (statistics_) {
            Scaled kappa = divide(spread_[a], norm);
            kappa_ = is_less(kappa_, kappa) ? kappa : kappa_;
        }
    }

    static __aicore__ inline Scaled sum_of(const Scaled &u, const Scaled &x, const Scaled &v, const Scaled &y) {
        return add(multiply(u, x), multiply(v, y));
    }

    Scaled gram_[MAX_RADIX][MAX_RADIX];
    Scaled weights_[MAX_RADIX];
    Scaled squares_[MAX_RADIX];
    // The sum of the squared norms of a node's weighted vectors.
    Scaled spread_[MAX_RADIX];
    Scaled tolerance_;
    Scaled kappa_;
    bool opposed_ = false;
    bool cancelled_ = false;
    Merges merges_;
    uint32_t radix_ = 0;
    bool statistics_ = true;
};

} // namespace adasum

#endif
