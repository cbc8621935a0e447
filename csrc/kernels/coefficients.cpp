// coefficients: sums the records of each tensor and solves the AdaSum tree for the weights of its r vectors.
//
// `rule` holds two fp32 numbers: in its low half the tolerance of the tree (tree.h), in its high half a limit on the norm
// of the result, 0 for none. Where the norm is above the limit, the weights are scaled so that it becomes the limit;
// statistics are those from before. The sign of the tolerance, which is not negative, says that only weights are wanted:
// statistics are zero then, where they are not NaN (layout.h).
//
// A record that never came (layout.h) gives weights of NaN that look as if they had not come either, and the block signs that
// it missed it.
//
// Blocks share the tensors and solve up to 64 at a time, one in each lane of the vector unit (tree_lanes.h). Tensors that are
// not ordinary, by norms or by what cancels, are solved one by one in two-float numbers with separate exponents, so that no
// finite input leaves the range (tree.h). What is written for a tensor is in layout.h.
#include "adasum_ascendc.h"
#include "device.h"
#include "entry.h"
#include "layout.h"
#include "records.h"
#include "tree.h"
#include "tree_lanes.h"
#include "two_float.h"

namespace adasum {

using namespace AscendC;

// From this power of two on, a weight is split into a factor and the square of a scale.
constexpr int32_t SCALE_LOG2 = 100;
constexpr int32_t MAX_SCALE_LOG2 = 120;
// Squared norms from which on a weighted vector may overflow although the sum does not, or up to which products lose
// bits to subnormals. There the weights take 2^-post or 2^post along and the sum is scaled back.
constexpr int32_t HUGE_NORM_LOG2 = 248;
constexpr int32_t TINY_NORM_LOG2 = -180;
constexpr int32_t POST_LOG2 = 24;
constexpr int32_t MAX_POST_LOG2 = 120;

// Sums of vectors that nearly cancel are kept in two fp32 numbers, where the norms leave room for splitting numbers.
constexpr int32_t SPLIT_NORM_LOG2 = 200;

class Coefficients {
public:
    __aicore__ inline Coefficients() {}

    __aicore__ inline void init(TPipe &pipe, GM_ADDR records, GM_ADDR references, GM_ADDR indices, GM_ADDR out,
                                uint32_t radix, uint64_t tensor_count, uint64_t rule) {
        radix_ = radix;
        zero_tol_ = float_of(static_cast<uint32_t>(rule) & 0x7fffffffU);
        statistics_ = (static_cast<uint32_t>(rule) >> 31) == 0;
        norm_limit_ = float_of(static_cast<uint32_t>(rule >> 32));
        words_ = record_words(radix);
        result_words_ = coefficient_words(radix);
        tensor_count_ = tensor_count;
        records_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(records));
        out_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(out));
        references_.init(pipe, references);
        indices_.init(pipe, indices);
        pipe.InitBuffer(window_buffer_, WINDOW * words_ * sizeof(float));
        pipe.InitBuffer(sums_buffer_, LANES * words_ * sizeof(float));
        pipe.InitBuffer(lanes_buffer_, TreeLanes::ub_bytes());
        pipe.InitBuffer(results_buffer_, LANES * result_words_ * sizeof(float));
        window_ = window_buffer_.Get<float>();
        sums_ = sums_buffer_.Get<float>();
        lanes_.init(lanes_buffer_.Get<float>(), radix);
        results_ = results_buffer_.Get<float>();
    }

    // Whether all records were there.
    __aicore__ inline bool run(Share tensors) {
        for (uint64_t first = tensors.begin; first < tensors.end; first += LANES) {
            uint32_t count = static_cast<uint32_t>(smaller(LANES, tensors.end - first));
            sum_records(first, count);
            lanes_.solve(sums_, count, zero_tol_, statistics_, is_limited());
            clear(count);
            lanes_.store(results_);
            wait_for<HardEvent::V_S>();
            for (uint32_t i = 0; i < count; ++i) {
                complete_tensor(i);
            }
            wait_for<HardEvent::S_MTE3>();
            copy_out(out_[first * result_words_], results_, count * result_words_);
        }
        return complete_;
    }

private:
    // Record numbers looked up, and records copied, in one go.
    static constexpr uint32_t WINDOW = 64;
    static constexpr uint32_t LANES = TreeLanes::LANES;
    // The tensors that are solved together are in the window.
    using References = Table<2 * REFERENCE_WORDS, LANES>;
    using Indices = Table<2, WINDOW>;

    static constexpr uint32_t TABLE_BYTES = References::WINDOW_BYTES + Indices::WINDOW_BYTES;
    static constexpr uint32_t WINDOW_BYTES = WINDOW * record_words(MAX_RADIX) * 4;
    static constexpr uint32_t SUM_BYTES = LANES * record_words(MAX_RADIX) * 4;
    static constexpr uint32_t RESULT_BYTES = LANES * coefficient_words(MAX_RADIX) * 4;
    static_assert(TABLE_BYTES + WINDOW_BYTES + SUM_BYTES + TreeLanes::ub_bytes() + RESULT_BYTES <= UB_BUDGET,
                  "coefficients: too much UB");

    // What most words of a result are.
    __aicore__ inline void clear(uint32_t count) {
        wait_for<HardEvent::MTE3_V>();
        Duplicate(results_, 0.0f, static_cast<int32_t>(count * result_words_));
        PipeBarrier<PIPE_V>();
    }

    // The sum of the records of each tensor, as a record.
    __aicore__ inline void sum_records(uint64_t first, uint32_t count) {
        references_.seek(first, tensor_count_);
        uint64_t last = first + count - 1;
        list_end_ = references_.number(last, 0) + references_.number(last, 1);
        wait_for<HardEvent::S_V>();
        for (uint32_t i = 0; i < count;) {
            i += sum_tensors(first + i, count - i, sums_[i * words_]);
        }
        wait_for<HardEvent::V_S>();
    }

    // Sums the first of `count` tensors, or copies the records of as many as have but one; returns how many it was.
    __aicore__ inline uint32_t sum_tensors(uint64_t tensor, uint32_t count, const LocalTensor<float> &results) {
        uint64_t place = references_.number(tensor, 0);
        uint64_t end = place + references_.number(tensor, 1);
        if (end - place == 1) {
            LocalTensor<float> records = record(place);
            count = static_cast<uint32_t>(smaller(count, window_end_ - place));
            uint32_t single = 1;
            while (single < count && references_.number(tensor + single, 0) == place + single &&
                   references_.number(tensor + single, 1) == 1) {
                ++single;
            }
            copy_bits(results.ReinterpretCast<int32_t>(), records.ReinterpretCast<int32_t>(), single * words_);
            return single;
        }
        sum_.reset(radix_);
        for (; place < end; ++place) {
            sum_.add_record(record(place));
        }
        sum_.store(results);
        return 1;
    }

    // The record at a place in the list.
    __aicore__ inline LocalTensor<float> record(uint64_t place) {
        if (place < window_begin_ || place >= window_end_) {
            load(place);
        }
        return window_[static_cast<uint32_t>(place - window_begin_) * words_];
    }

    // Fills the window from a place in the list on: the records of tensors follow one another there. Those that lie one after
    // the other in memory come by one copy.
    __aicore__ inline void load(uint64_t first) {
        uint32_t count = static_cast<uint32_t>(smaller(WINDOW, list_end_ - first));
        indices_.load(first, first + count);
        wait_for<HardEvent::S_MTE2>();
        wait_for<HardEvent::V_MTE2>();
        uint32_t done = 0;
        uint64_t record = indices_.number(first, 0);
        for (uint32_t i = 1; i <= count; ++i) {
            uint64_t next = i < count ? indices_.number(first + i, 0) : 0;
            if (i == count || next != record + (i - done)) {
                copy_in(window_[done * words_], records_[record * words_], (i - done) * words_);
                done = i;
                record = next;
            }
        }
        wait_for<HardEvent::MTE2_S>();
        window_begin_ = first;
        window_end_ = first + count;
    }

    // What the lanes leave to the scalar unit.
    __aicore__ inline void complete_tensor(uint32_t i) {
        LocalTensor<float> result = results_[i * result_words_];
        if (!lanes_.solved(i)) {
            sum_.reset(radix_);
            sum_.add_record(sums_[i * words_]);
            complete_ = complete_ && !sum_.missing();
            solve(result);
            return;
        }
        bool cancelling = lanes_.nearly_cancels(i);
        if (is_limited() || cancelling) {
            for (uint32_t leaf = 0; leaf < radix_; ++leaf) {
                weights_[leaf] = lanes_.weight(leaf, i);
            }
            set_weights(result, lanes_.result_square(i), 0, cancelling);
        }
    }

    __aicore__ inline void solve(const LocalTensor<float> &result) {
        if (sum_.nonfinite()) {
            give_up(result);
            return;
        }
        tree_.solve(sum_, radix_, zero_tol_, statistics_ || is_limited());
        int32_t post = post_log2();
        if (post != 0) {
            result.SetValue(COEFFICIENT_POST, power_of_two(post));
        }
        for (uint32_t leaf = 0; leaf < radix_; ++leaf) {
            weights_[leaf] = tree_.weight(leaf);
        }
        set_weights(result, tree_.result_square(), post, is_cancelling(post));
        if (statistics_) {
            set_statistics(result);
        }
    }

    __aicore__ inline void give_up(const LocalTensor<float> &result) {
        result.SetValue(COEFFICIENT_FLAGS, sum_.missing() ? float_of(MISSING) : 1.0f);
        result.SetValue(COEFFICIENT_KAPPA, quiet_nan());
        result.SetValue(COEFFICIENT_RESULT_NORM, quiet_nan());
        for (uint32_t i = 0; i < radix_; ++i) {
            result.SetValue(COEFFICIENT_WEIGHT + i, quiet_nan());
            result.SetValue(coefficient_leaf_norm(radix_) + i, quiet_nan());
        }
    }

    __aicore__ inline bool is_limited() const { return norm_limit_ > 0.0f; }

    // Writes the weights of a tensor whose result has this squared norm.
    __aicore__ inline void set_weights(const LocalTensor<float> &result, const Scaled &square, int32_t post,
                                       bool cancelling) const {
        Scaled factor = is_limited() ? limiting_factor(square) : scaled_one();
        for (uint32_t leaf = 0; leaf < radix_; ++leaf) {
            Scaled weight = is_limited() ? multiply(weights_[leaf], factor) : weights_[leaf];
            set_weight(result, leaf, shift(weight, -post), cancelling);
        }
    }

    // What takes the norm of the result down to the limit; 1 if it is within.
    __aicore__ inline Scaled limiting_factor(const Scaled &square) const {
        Scaled norm = square_root(square);
        Scaled limit = normalise(TwoFloat{norm_limit_, 0.0f}, 0);
        return !is_less(limit, norm) ? scaled_one() : divide(limit, norm);
    }

    // The power of two that the weights leave to the end of the sum.
    __aicore__ inline int32_t post_log2() const {
        int32_t largest = TINY_NORM_LOG2;
        bool any = false;
        for (uint32_t i = 0; i < radix_; ++i) {
            Scaled square = tree_.square(i);
            if (is_zero(square)) {
                continue;
            }
            int32_t weighted = square.exponent + 2 * tree_.weight(i).exponent;
            int32_t exponent = weighted > square.exponent ? weighted : square.exponent;
            largest = any && largest > exponent ? largest : exponent;
            any = true;
        }
        if (largest >= HUGE_NORM_LOG2) {
            int32_t post = (largest - HUGE_NORM_LOG2) / 2 + 2;
            post = post > POST_LOG2 ? post : POST_LOG2;
            return post < MAX_POST_LOG2 ? post : MAX_POST_LOG2;
        }
        return largest < TINY_NORM_LOG2 ? -POST_LOG2 : 0;
    }

    // Whether the sum needs more than fp32.
    __aicore__ inline bool is_cancelling(int32_t post) const {
        if (post > 0 || !tree_.nearly_cancels()) {
            return false;
        }
        for (uint32_t i = 0; i < radix_; ++i) {
            Scaled square = tree_.square(i);
            if (tree_.weight(i).exponent >= SCALE_LOG2 || (!is_zero(square) && square.exponent >= SPLIT_NORM_LOG2)) {
                return false;
            }
        }
        return true;
    }

    // A weight with one rounding to fp32, as value * scale * scale; the rest of it where the vectors cancel.
    __aicore__ inline void set_weight(const LocalTensor<float> &result, uint32_t i, const Scaled &weight,
                                      bool cancelling) const {
        int32_t scale = 0;
        if (weight.exponent >= SCALE_LOG2) {
            scale = static_cast<int32_t>(smaller(static_cast<uint64_t>(weight.exponent / 2), MAX_SCALE_LOG2));
            result.SetValue(coefficient_scale(radix_) + i, power_of_two(scale));
        }
        result.SetValue(COEFFICIENT_WEIGHT + i, to_float(shift(weight, -2 * scale)));
        if (cancelling) {
            result.SetValue(coefficient_weight_low(radix_) + i, shift(weight.m, weight.exponent).lo);
        }
    }

    __aicore__ inline void set_statistics(const LocalTensor<float> &result) const {
        for (uint32_t i = 0; i < radix_; ++i) {
            result.SetValue(coefficient_leaf_norm(radix_) + i, to_float(square_root(tree_.square(i))));
        }
        result.SetValue(COEFFICIENT_KAPPA, to_float(tree_.kappa()));
        result.SetValue(COEFFICIENT_RESULT_NORM, to_float(square_root(tree_.result_square())));
    }

    References references_;
    Indices indices_;
    GlobalTensor<float> records_;
    GlobalTensor<float> out_;
    TBuf<TPosition::VECIN> window_buffer_;
    TBuf<TPosition::VECCALC> sums_buffer_;
    TBuf<TPosition::VECCALC> lanes_buffer_;
    TBuf<TPosition::VECOUT> results_buffer_;
    LocalTensor<float> window_;
    LocalTensor<float> sums_;
    LocalTensor<float> results_;
    TreeLanes lanes_;
    RecordSum sum_;
    Tree tree_;
    Scaled weights_[MAX_RADIX];
    uint64_t tensor_count_ = 0;
    uint64_t list_end_ = 0;
    uint64_t window_begin_ = 0;
    uint64_t window_end_ = 0;
    float zero_tol_ = 0.0f;
    float norm_limit_ = 0.0f;
    bool statistics_ = true;
    bool complete_ = true;
    uint32_t radix_ = 0;
    uint32_t words_ = 0;
    uint32_t result_words_ = 0;
};

__aicore__ inline void solve_all(GM_ADDR records, GM_ADDR references, GM_ADDR indices, GM_ADDR out, uint64_t radix,
                                 uint64_t tensor_count, uint64_t rule, GM_ADDR receipt) {
    TPipe pipe;
    Coefficients kernel;
    kernel.init(pipe, records, references, indices, out, static_cast<uint32_t>(radix), tensor_count, rule);
    bool complete = kernel.run(share_of(tensor_count));
    sign(pipe, receipt, complete);
}

} // namespace adasum

ADASUM_VECTOR_KERNEL(coefficients);

extern "C" __global__ __aicore__ void coefficients(GM_ADDR records, GM_ADDR references, GM_ADDR indices, GM_ADDR out,
                                                   uint64_t radix, uint64_t tensor_count, uint64_t rule,
                                                   GM_ADDR receipt) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    adasum::solve_all(records, references, indices, out, radix, tensor_count, rule, receipt);
    adasum::leave();
}
