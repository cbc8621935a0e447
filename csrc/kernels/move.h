// Copies between tensors anywhere in device memory and one fused buffer, with a change of type and a factor: the
// common part of `pack` and `unpack`.
//
// A segment says where the elements of a tensor stand in the fused buffer, a table of addresses where the tensor is:
// entry `segment.tensor` is the address of the segment's first element. Arithmetic is fp32, rounded once, to nearest.
// Without a change of type and with the factor 1 every bit stays as it is.
#ifndef ADASUM_MOVE_H
#define ADASUM_MOVE_H

#include "adasum_ascendc.h"
#include "device.h"
#include "entry.h"
#include "layout.h"
#include "two_float.h"

namespace adasum {

struct MoveArguments {
    GM_ADDR addresses;
    GM_ADDR segments;
    GM_ADDR fused;
    float factor;
    uint64_t tensor_count;
    uint64_t segment_count;
    uint64_t unit_count;
};

// Integers of the size of an element: no bit changes, whatever a float would do.
template <typename T>
class KeepBits {
public:
    using From = T;
    using To = T;
    static constexpr uint32_t WIDE_BYTES = 0;
    static constexpr bool KEEPS_BITS = true;

    static __aicore__ inline void apply(const AscendC::LocalTensor<T> &to, const AscendC::LocalTensor<T> &from,
                                        const AscendC::LocalTensor<float> &, float, uint32_t count) {
        copy_bits(to, from, count);
        AscendC::PipeBarrier<PIPE_V>();
    }

#ifdef ADASUM_FUSED
    static void move(T *to, const T *from, float, uint32_t count) { std::memmove(to, from, count * sizeof(T)); }
#endif
};

template <typename FromType, typename ToType>
class Convert {
public:
    using From = FromType;
    using To = ToType;
    static constexpr uint32_t WIDE_BYTES = sizeof(To) == sizeof(float) ? 0 : UNIT * 4;
    static constexpr bool KEEPS_BITS = false;

    // The product goes straight into an fp32 result.
    static __aicore__ inline void apply(const AscendC::LocalTensor<float> &to, const AscendC::LocalTensor<From> &from,
                                        const AscendC::LocalTensor<float> &, float factor, uint32_t count) {
        AscendC::LocalTensor<float> values = widen(to, from, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Muls(to, values, factor, static_cast<int32_t>(count));
        AscendC::PipeBarrier<PIPE_V>();
    }

    template <typename T>
    static __aicore__ inline void apply(const AscendC::LocalTensor<T> &to, const AscendC::LocalTensor<From> &from,
                                        const AscendC::LocalTensor<float> &wide, float factor, uint32_t count) {
        AscendC::LocalTensor<float> values = widen(wide, from, count);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Muls(wide, values, factor, static_cast<int32_t>(count));
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(to, wide, TO_NEAREST, count);
        AscendC::PipeBarrier<PIPE_V>();
    }

#ifdef ADASUM_FUSED
    static void move(To *to, const From *from, float factor, uint32_t count) { fused::scale(to, from, factor, count); }
#endif
};

// PACK: from the tensors to the fused buffer; else back.
template <typename Operation, bool PACK>
class Mover {
public:
    using From = typename Operation::From;
    using To = typename Operation::To;

    static constexpr uint32_t UB_BYTES = 2 * UNIT * (sizeof(From) + sizeof(To)) + Operation::WIDE_BYTES +
                                         UnitCursor::UB_BYTES + Table<2, 64>::WINDOW_BYTES;
    static_assert(UB_BYTES <= UB_BUDGET, "pack and unpack: too much UB");

    __aicore__ inline Mover() {}

    __aicore__ inline void run(AscendC::TPipe &pipe, const MoveArguments &arguments) {
        Share units = share_of(arguments.unit_count);
        if (units.begin == units.end) {
            return;
        }
        pipe.InitBuffer(sources_, 2, UNIT * static_cast<uint32_t>(sizeof(From)));
        pipe.InitBuffer(results_, 2, UNIT * static_cast<uint32_t>(sizeof(To)));
        if (Operation::WIDE_BYTES != 0) {
            pipe.InitBuffer(wide_buffer_, UNIT * 4);
            wide_ = wide_buffer_.template Get<float>();
        }
        addresses_.init(pipe, arguments.addresses);
        cursor_.init(pipe, arguments.segments, arguments.segment_count);
        cursor_.seek(units.begin);
        for (uint64_t unit = units.begin; unit < units.end; ++unit) {
            UnitSpan span = cursor_.next();
            addresses_.seek(span.tensor, arguments.tensor_count);
            GM_ADDR tensor = reinterpret_cast<GM_ADDR>(addresses_.number(span.tensor, 0));
            GM_ADDR from = PACK ? tensor : arguments.fused;
            GM_ADDR to = PACK ? arguments.fused : tensor;
            from_.SetGlobalBuffer(reinterpret_cast<__gm__ From *>(from));
            to_.SetGlobalBuffer(reinterpret_cast<__gm__ To *>(to));
            uint64_t start = PACK ? span.within : span.offset;
            uint64_t end = PACK ? span.offset : span.within;
            // What lies where it is to go stays as it is: other ranks may read it meanwhile.
            if (Operation::KEEPS_BITS && from + start * sizeof(From) == to + end * sizeof(To)) {
                continue;
            }
            move(start, end, padded(span.len), arguments.factor);
        }
    }

private:
    __aicore__ inline void move(uint64_t from, uint64_t to, uint32_t count, float factor) {
#ifdef ADASUM_FUSED
        Operation::move(to_.access(to, count), from_.access(from, count), factor, count);
        return;
#endif
        AscendC::LocalTensor<From> source = sources_.template AllocTensor<From>();
        copy_in(source, from_[from], count);
        sources_.EnQue(source);
        source = sources_.template DeQue<From>();
        AscendC::LocalTensor<To> result = results_.template AllocTensor<To>();
        Operation::apply(result, source, wide_, factor, count);
        sources_.FreeTensor(source);
        results_.EnQue(result);
        result = results_.template DeQue<To>();
        copy_out(to_[to], result, count);
        results_.FreeTensor(result);
    }

    AscendC::TQue<AscendC::TPosition::VECIN, 1> sources_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> results_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> wide_buffer_;
    AscendC::LocalTensor<float> wide_;
    AscendC::GlobalTensor<From> from_;
    AscendC::GlobalTensor<To> to_;
    Table<2, 64> addresses_;
    UnitCursor cursor_;
};

template <typename Operation, bool PACK>
__aicore__ inline void run_mover(AscendC::TPipe &pipe, const MoveArguments &arguments) {
    Mover<Operation, PACK> mover;
    mover.run(pipe, arguments);
}

template <typename From, bool PACK>
__aicore__ inline void move_from(AscendC::TPipe &pipe, const MoveArguments &arguments, uint64_t to) {
    if (to == DTYPE_FLOAT) {
        run_mover<Convert<From, float>, PACK>(pipe, arguments);
    } else if (to == DTYPE_FLOAT16) {
        run_mover<Convert<From, half>, PACK>(pipe, arguments);
    }
#if ADASUM_HAS_BF16
    if (to == DTYPE_BF16) {
        run_mover<Convert<From, bfloat16_t>, PACK>(pipe, arguments);
    }
#endif
}

template <bool PACK>
__aicore__ inline void move_between(AscendC::TPipe &pipe, const MoveArguments &arguments, uint64_t from, uint64_t to) {
    if (from == to && arguments.factor == 1.0f) {
        if (from == DTYPE_FLOAT) {
            run_mover<KeepBits<int32_t>, PACK>(pipe, arguments);
        } else {
            run_mover<KeepBits<int16_t>, PACK>(pipe, arguments);
        }
        return;
    }
    if (from == DTYPE_FLOAT) {
        move_from<float, PACK>(pipe, arguments, to);
    } else if (from == DTYPE_FLOAT16) {
        move_from<half, PACK>(pipe, arguments, to);
    }
#if ADASUM_HAS_BF16
    if (from == DTYPE_BF16) {
        move_from<bfloat16_t, PACK>(pipe, arguments, to);
    }
#endif
}

template <bool PACK>
__aicore__ inline void move_all(const MoveArguments &arguments, uint64_t from, uint64_t to, GM_ADDR receipt) {
    AscendC::TPipe pipe;
    move_between<PACK>(pipe, arguments, from, to);
    sign(pipe, receipt);
}

} // namespace adasum

#endif
