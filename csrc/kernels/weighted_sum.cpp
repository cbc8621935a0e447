// weighted_sum: out = ((w0 x0 + w1 x1) + w2 x2) + ..., each product and each sum rounded to fp32.
//
// A result of a 16-bit type is rounded to it once at the end, to nearest, ties to even. The weights are those of the
// tensor that a unit belongs to. out may be any of the inputs: a tile is read before it is written. So may its copies, which
// lie where a table of addresses says, in this device's memory or in another one's. A NaN weight, and 0 times an infinity,
// give NaN.
//
// Where a tensor has low parts of weights, its weighted vectors nearly cancel: they are summed in two-float numbers.
//
// Weights that never came (layout.h) give NaN, and the block signs that it missed them.
#include "adasum_ascendc.h"
#include "device.h"
#include "entry.h"
#include "layout.h"
#include "two_float.h"

namespace adasum {

using namespace AscendC;

// Elements of a step between barriers: short enough for a product that stays close to the vector unit.
constexpr uint32_t PART = 512;
// Words of the coefficients of tensors, copied for several in one go.
using Weights = Table<1, 16 * coefficient_words(MAX_RADIX)>;
// The addresses of copies of the result.
using Copies = Table<2, 64>;

// Elements of fp32 between the arithmetic and a result of a 16-bit type.
template <typename T>
__aicore__ inline constexpr uint32_t wide_bytes(uint32_t radix) {
    return sizeof(T) == sizeof(float) ? 0 : (radix + 1) * PART * 4;
}

// Parts that a sum in two-float numbers needs beside the product.
constexpr uint32_t EXACT_PARTS = 7;

template <typename T>
__aicore__ inline constexpr uint32_t sum_ub_bytes(uint32_t radix) {
    uint32_t tiles = 2 * (radix * tile_stride<T>(radix) + tile_of<T>(radix)) * static_cast<uint32_t>(sizeof(T));
    return tiles + wide_bytes<T>(radix) + (1 + EXACT_PARTS) * PART * 4 + Weights::WINDOW_BYTES + Copies::WINDOW_BYTES +
           UnitCursor::UB_BYTES;
}

static_assert(sum_ub_bytes<float>(2) <= UB_BUDGET, "weighted_sum: too much UB for r <= 2");
static_assert(sum_ub_bytes<float>(4) <= UB_BUDGET, "weighted_sum: too much UB for r <= 4");
static_assert(sum_ub_bytes<float>(8) <= UB_BUDGET, "weighted_sum: too much UB for r <= 8");
static_assert(sum_ub_bytes<half>(2) <= UB_BUDGET, "weighted_sum: too much UB for 16 bits, r <= 2");
static_assert(sum_ub_bytes<half>(4) <= UB_BUDGET, "weighted_sum: too much UB for 16 bits, r <= 4");
static_assert(sum_ub_bytes<half>(8) <= UB_BUDGET, "weighted_sum: too much UB for 16 bits, r <= 8");

// The fp32 sum of a part goes straight into an fp32 result, or is rounded into a 16-bit one.
__aicore__ inline LocalTensor<float> sum_place(const LocalTensor<float> &result, const LocalTensor<float> &) {
    return result;
}

template <typename T>
__aicore__ inline LocalTensor<float> sum_place(const LocalTensor<T> &, const LocalTensor<float> &wide) {
    return wide;
}

__aicore__ inline void narrow(const LocalTensor<float> &, const LocalTensor<float> &, uint32_t) {}

template <typename T>
__aicore__ inline void narrow(const LocalTensor<T> &result, const LocalTensor<float> &sum, uint32_t count) {
    Cast(result, sum, TO_NEAREST, count);
    PipeBarrier<PIPE_V>();
}

template <typename T>
class WeightedSum {
public:
    __aicore__ inline WeightedSum() {}

    __aicore__ inline void init(TPipe &pipe, GM_ADDR vectors, GM_ADDR segments, GM_ADDR coefficients, GM_ADDR out,
                                uint32_t radix, uint64_t segment_count, GM_ADDR copies, uint64_t copy_count) {
        radix_ = radix;
        words_ = coefficient_words(radix);
        copy_count_ = copy_count;
        tile_ = tile_of<T>(radix);
        stride_ = tile_stride<T>(radix);
        open_vectors(pipe, vectors_, vectors, radix);
        out_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(out));
        pipe.InitBuffer(tiles_, 2, radix * stride_ * static_cast<uint32_t>(sizeof(T)));
        pipe.InitBuffer(sums_, 2, tile_ * static_cast<uint32_t>(sizeof(T)));
        if (sizeof(T) != sizeof(float)) {
            pipe.InitBuffer(wide_buffer_, wide_bytes<T>(radix));
            wide_ = wide_buffer_.Get<float>();
        }
        pipe.InitBuffer(product_buffer_, PART * sizeof(float));
        pipe.InitBuffer(exact_buffer_, EXACT_PARTS * PART * sizeof(float));
        product_ = product_buffer_.Get<float>();
        exact_ = exact_buffer_.Get<float>();
        coefficients_.init(pipe, coefficients);
        copies_.init(pipe, copies);
        cursor_.init(pipe, segments, segment_count);
    }

    // Whether all weights were there.
    __aicore__ inline bool run(Share units) {
        if (units.begin < units.end) {
            cursor_.seek(units.begin);
        }
        for (uint64_t unit = units.begin; unit < units.end; ++unit) {
            UnitSpan span = cursor_.next();
            use_tensor(span.tensor);
#ifdef ADASUM_FUSED
            if (plain_) {
                sum_unit(span.offset, padded(span.len));
                continue;
            }
#endif
            for (uint32_t done = 0; done < span.len; done += tile_) {
                sum_tile(span.offset + done, padded(static_cast<uint32_t>(smaller(tile_, span.len - done))));
            }
        }
        return complete_;
    }

private:
    static constexpr uint64_t NO_TENSOR = ~0ULL;

    __aicore__ inline void use_tensor(uint64_t tensor) {
        if (tensor == tensor_) {
            return;
        }
        tensor_ = tensor;
        if (!coefficients_.holds(tensor * words_) || !coefficients_.holds(tensor * words_ + words_ - 1)) {
            // As far as segments are known that name them.
            uint64_t known = cursor_.known_tensor();
            coefficients_.load(tensor * words_, ((known < tensor ? tensor : known) + 1) * words_);
        }
        if (coefficients_.word(tensor * words_ + COEFFICIENT_FLAGS, 0) == MISSING) {
            do_without_weights();
            return;
        }
        post_ = number(COEFFICIENT_POST);
        plain_ = post_ == 0.0f;
        cancelling_ = false;
        for (uint32_t i = 0; i < radix_; ++i) {
            weights_[i] = number(COEFFICIENT_WEIGHT + i);
            scales_[i] = number(coefficient_scale(radix_) + i);
            lows_[i] = number(coefficient_weight_low(radix_) + i);
            plain_ = plain_ && scales_[i] == 0.0f;
            cancelling_ = cancelling_ || lows_[i] != 0.0f;
        }
    }

    // A word of the tensor's coefficients, as the fp32 number that it is.
    __aicore__ inline float number(uint32_t index) const {
        return float_of(coefficients_.word(tensor_ * words_ + index, 0));
    }

    __aicore__ inline void do_without_weights() {
        for (uint32_t i = 0; i < radix_; ++i) {
            weights_[i] = quiet_nan();
            scales_[i] = 0.0f;
            lows_[i] = 0.0f;
        }
        post_ = 0.0f;
        cancelling_ = false;
        plain_ = true;
        complete_ = false;
    }

#ifdef ADASUM_FUSED
    // A whole unit at a time: a copy of so much is written in whole cache lines, which need not be read before.
    void sum_unit(uint64_t offset, uint32_t count) {
        fused::Weighted<T> from{{}, weights_, lows_};
        for (uint32_t i = 0; i < radix_; ++i) {
            from.x[i] = vectors_[i].access(offset, count);
        }
        T *out = out_.access(offset, count);
        fused::weighted_sum_of(out, from, radix_, cancelling_, count);
        for (uint64_t copy = 0; copy < copy_count_; ++copy) {
            std::memcpy(copy_of_out(copy).access(offset, count), out, count * sizeof(T));
        }
    }
#endif

    __aicore__ inline void sum_tile(uint64_t offset, uint32_t count) {
        LocalTensor<T> tiles = tiles_.template AllocTensor<T>();
        for (uint32_t i = 0; i < radix_; ++i) {
            copy_in(tiles[i * stride_], vectors_[i][offset], count);
        }
        tiles_.EnQue(tiles);
        tiles = tiles_.template DeQue<T>();
        LocalTensor<T> result = sums_.template AllocTensor<T>();
        for (uint32_t done = 0; done < count; done += PART) {
            sum_part(result[done], tiles[done], static_cast<uint32_t>(smaller(PART, count - done)));
        }
        tiles_.FreeTensor(tiles);
        sums_.EnQue(result);
        result = sums_.template DeQue<T>();
        copy_out(out_[offset], result, count);
        for (uint64_t copy = 0; copy < copy_count_; ++copy) {
            copy_out(copy_of_out(copy)[offset], result, count);
        }
        sums_.FreeTensor(result);
    }

    // Another place of the result.
    __aicore__ inline const GlobalTensor<T> &copy_of_out(uint64_t copy) {
        copies_.seek(copy, copy_count_);
        copy_.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(copies_.number(copy, 0)));
        return copy_;
    }

    __aicore__ inline void sum_part(const LocalTensor<T> &result, const LocalTensor<T> &tiles, uint32_t part) {
        int32_t count = static_cast<int32_t>(part);
        LocalTensor<float> sum = sum_place(result, wide_);
        for (uint32_t i = 0; i < radix_; ++i) {
            LocalTensor<float> buffer = sizeof(T) == sizeof(float) ? wide_ : wide_[(i + 1) * PART];
            values_[i] = widen(buffer, tiles[i * stride_], part);
        }
        if (sizeof(T) != sizeof(float)) {
            PipeBarrier<PIPE_V>();
        }
        if (cancelling_) {
            sum_exactly(sum, count);
        } else {
            sum_plainly(sum, count);
        }
        if (post_ != 0.0f) {
            Muls(sum, sum, post_, count);
            PipeBarrier<PIPE_V>();
        }
        narrow(result, sum, part);
    }

    __aicore__ inline void sum_plainly(const LocalTensor<float> &sum, int32_t count) {
        scale(sum, values_[0], 0, count);
        for (uint32_t i = 1; i < radix_; ++i) {
            scale(product_, values_[i], i, count);
            Add(sum, sum, product_, count);
            PipeBarrier<PIPE_V>();
        }
    }

    // The sum in two-float numbers, as in two_float.h, for a part of each vector at a time.
    __aicore__ inline void sum_exactly(const LocalTensor<float> &sum, int32_t count) {
        LocalTensor<float> rest = exact_[0];
        LocalTensor<float> error = exact_[PART];
        LocalTensor<float> high = exact_[2 * PART];
        LocalTensor<float> low = exact_[3 * PART];
        LocalTensor<float> term = exact_[4 * PART];
        LocalTensor<float> total = exact_[5 * PART];
        LocalTensor<float> other = exact_[6 * PART];
        Duplicate(sum, 0.0f, count);
        Duplicate(rest, 0.0f, count);
        PipeBarrier<PIPE_V>();
        for (uint32_t i = 0; i < radix_; ++i) {
            TwoFloat weight = split(weights_[i]);
            times(product_, values_[i], weights_[i], count);
            // The vector in two halves of 12 bits.
            times(error, values_[i], 4097.0f, count);
            subtract(other, error, values_[i], count);
            subtract(high, error, other, count);
            subtract(low, values_[i], high, count);
            // What the product lost, and what the weight left out.
            times(term, high, weight.hi, count);
            subtract(error, term, product_, count);
            add_times(error, low, weight.hi, term, count);
            add_times(error, high, weight.lo, term, count);
            add_times(error, low, weight.lo, term, count);
            add_times(error, values_[i], lows_[i], term, count);
            plus(rest, rest, error, count);
            // What the sum loses when the product joins it.
            plus(total, sum, product_, count);
            subtract(other, total, sum, count);
            subtract(high, total, other, count);
            subtract(low, sum, high, count);
            subtract(error, product_, other, count);
            plus(low, low, error, count);
            plus(rest, rest, low, count);
            times(sum, total, 1.0f, count);
        }
        plus(sum, sum, rest, count);
    }

    static __aicore__ inline void times(const LocalTensor<float> &dst, const LocalTensor<float> &src, float factor,
                                        int32_t count) {
        Muls(dst, src, factor, count);
        PipeBarrier<PIPE_V>();
    }

    static __aicore__ inline void plus(const LocalTensor<float> &dst, const LocalTensor<float> &a,
                                       const LocalTensor<float> &b, int32_t count) {
        Add(dst, a, b, count);
        PipeBarrier<PIPE_V>();
    }

    // dst = a - b; dst is neither of them.
    static __aicore__ inline void subtract(const LocalTensor<float> &dst, const LocalTensor<float> &a,
                                           const LocalTensor<float> &b, int32_t count) {
        times(dst, b, -1.0f, count);
        plus(dst, a, dst, count);
    }

    // sum += src * factor, rounded twice.
    static __aicore__ inline void add_times(const LocalTensor<float> &sum, const LocalTensor<float> &src, float factor,
                                            const LocalTensor<float> &product, int32_t count) {
        times(product, src, factor, count);
        plus(sum, sum, product, count);
    }

    // dst = src * scale * scale * weight of vector i.
    __aicore__ inline void scale(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t i,
                                 int32_t count) {
        if (scales_[i] == 0.0f) {
            Muls(dst, src, weights_[i], count);
        } else {
            Muls(dst, src, scales_[i], count);
            PipeBarrier<PIPE_V>();
            Muls(dst, dst, scales_[i], count);
            PipeBarrier<PIPE_V>();
            Muls(dst, dst, weights_[i], count);
        }
        PipeBarrier<PIPE_V>();
    }

    TQue<TPosition::VECIN, 1> tiles_;
    TQue<TPosition::VECOUT, 1> sums_;
    TBuf<TPosition::VECCALC> product_buffer_;
    TBuf<TPosition::VECCALC> wide_buffer_;
    TBuf<TPosition::VECCALC> exact_buffer_;
    LocalTensor<float> wide_;
    LocalTensor<float> values_[MAX_RADIX];
    LocalTensor<float> product_;
    LocalTensor<float> exact_;
    Weights coefficients_;
    Copies copies_;
    UnitCursor cursor_;
    GlobalTensor<T> vectors_[MAX_RADIX];
    GlobalTensor<T> out_;
    GlobalTensor<T> copy_;
    float weights_[MAX_RADIX];
    float scales_[MAX_RADIX];
    float lows_[MAX_RADIX];
    bool cancelling_ = false;
    bool complete_ = true;
    // No vector and no sum has a scale of its own.
    bool plain_ = false;
    float post_ = 0.0f;
    uint64_t tensor_ = NO_TENSOR;
    uint64_t copy_count_ = 0;
    uint32_t radix_ = 0;
    uint32_t words_ = 0;
    uint32_t tile_ = 0;
    uint32_t stride_ = 0;
};

template <typename T>
__aicore__ inline bool weighted_sum_of(TPipe &pipe, GM_ADDR vectors, GM_ADDR segments, GM_ADDR coefficients,
                                       GM_ADDR out, uint64_t radix, uint64_t segment_count, uint64_t unit_count,
                                       GM_ADDR copies, uint64_t copy_count) {
    WeightedSum<T> kernel;
    kernel.init(pipe, vectors, segments, coefficients, out, static_cast<uint32_t>(radix), segment_count, copies,
                copy_count);
    return kernel.run(share_of(unit_count));
}

__aicore__ inline void weighted_sum_any(GM_ADDR vectors, GM_ADDR segments, GM_ADDR coefficients, GM_ADDR out,
                                        uint64_t radix, uint64_t dtype, uint64_t segment_count, uint64_t unit_count,
                                        GM_ADDR copies, uint64_t copy_count, GM_ADDR receipt) {
    TPipe pipe;
    bool complete = true;
    if (dtype == DTYPE_FLOAT) {
        complete = weighted_sum_of<float>(pipe, vectors, segments, coefficients, out, radix, segment_count, unit_count,
                                          copies, copy_count);
    } else if (dtype == DTYPE_FLOAT16) {
        complete = weighted_sum_of<half>(pipe, vectors, segments, coefficients, out, radix, segment_count, unit_count,
                                         copies, copy_count);
    }
#if ADASUM_HAS_BF16
    if (dtype == DTYPE_BF16) {
        complete = weighted_sum_of<bfloat16_t>(pipe, vectors, segments, coefficients, out, radix, segment_count,
                                               unit_count, copies, copy_count);
    }
#endif
    sign(pipe, receipt, complete);
}

} // namespace adasum

ADASUM_VECTOR_KERNEL(weighted_sum);

extern "C" __global__ __aicore__ void weighted_sum(GM_ADDR vectors, GM_ADDR segments, GM_ADDR coefficients, GM_ADDR out,
                                                   uint64_t radix, uint64_t dtype, uint64_t segment_count,
                                                   uint64_t unit_count, GM_ADDR copies, uint64_t copy_count,
                                                   GM_ADDR receipt) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    adasum::weighted_sum_any(vectors, segments, coefficients, out, radix, dtype, segment_count, unit_count, copies,
                             copy_count, receipt);
    adasum::leave();
}
