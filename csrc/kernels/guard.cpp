// guard: keeps a stream from taking leftovers of failed work for results.
//
// Work of another stream signs a receipt, block by block (entry.h), and a stream that waits for an event of that work goes
// on also if it failed. So `guard` compares the signatures with `due`, the bits of the fp32 number of blocks that were
// launched. If all have signed, the receipt begins again at zero. If not, `places`, the addresses of `count` elements of
// `size` bytes, get a NaN each (on arch 1001 the 32 bytes that begin there), the receipt becomes NaN, which no signature
// ever makes a number of blocks again, and the stream fails, unless `due` has GUARD_GOES_ON: a stream that carries the failed
// work itself tells that failure, and a later one would take its place. Arch 1001 knows no way to fail: there the NaNs have to do.
// The first guard that finds a receipt wrong writes why (REASON_, layout.h) to the fp32 number at `reason`, which has 32
// bytes of its own and is 0 before.
//
// It runs on one block.
#include "adasum_ascendc.h"
#include "device.h"
#include "entry.h"
#include "layout.h"
#include "two_float.h"

namespace adasum {

using namespace AscendC;

class Guard {
public:
    __aicore__ inline Guard() {}

    __aicore__ inline void init(TPipe &pipe, GM_ADDR receipt, GM_ADDR places, uint64_t count, GM_ADDR reason) {
        receipt_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(receipt));
        reason_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(reason));
        count_ = count;
        pipe.InitBuffer(found_buffer_, BLOCK * static_cast<uint32_t>(sizeof(float)));
        pipe.InitBuffer(words_buffer_, BLOCK * static_cast<uint32_t>(sizeof(float)));
        found_ = found_buffer_.Get<float>();
        words_ = words_buffer_.Get<float>();
        places_.init(pipe, places);
    }

    // Whether all have signed; if not, results are spoilt.
    __aicore__ inline bool run(uint32_t due, uint64_t size) {
        float found = read(receipt_);
        bool done = bits_of(found) == due;
        if (!done && bits_of(found) != NO_NUMBER) {
            tell(found, float_of(due));
        }
        for (uint32_t i = 0; i < BLOCK; ++i) {
            words_.SetValue(i, done ? 0.0f : float_of(NO_NUMBER));
        }
        wait_for<HardEvent::S_MTE3>();
        copy_out(receipt_, words_, BLOCK);
        for (uint64_t i = 0; !done && i < count_; ++i) {
            places_.seek(i, count_);
            GM_ADDR place = reinterpret_cast<GM_ADDR>(places_.number(i, 0));
            if (size == sizeof(float)) {
                spoil<int32_t>(place);
            } else {
                spoil<int16_t>(place);
            }
        }
        return done;
    }

private:
    // A NaN of every type.
    static constexpr uint32_t NO_NUMBER = 0xffffffffU;

    __aicore__ inline float read(const GlobalTensor<float> &number) {
        wait_for<HardEvent::S_MTE2>();
        copy_in(found_, number, BLOCK);
        wait_for<HardEvent::MTE2_S>();
        return found_.GetValue(0);
    }

    // Why `found` is not `due`, unless an earlier guard has told.
    __aicore__ inline void tell(float found, float due) {
        float missed = to_float(to_integer(found / static_cast<float>(MISSED_SIGNATURE)));
        // To the nearest, which is one too many where more than half as many have signed.
        if (missed * static_cast<float>(MISSED_SIGNATURE) > found) {
            missed -= 1.0f;
        }
        bool all_ran = found - missed * static_cast<float>(MISSED_SIGNATURE) + missed == due;
        if (read(reason_) != 0.0f) {
            return;
        }
        for (uint32_t i = 0; i < BLOCK; ++i) {
            words_.SetValue(i, i > 0 ? 0.0f : static_cast<float>(all_ran ? REASON_OTHERS : REASON_OWN));
        }
        wait_for<HardEvent::S_MTE3>();
        copy_out(reason_, words_, BLOCK);
        wait_for<HardEvent::MTE3_S>();
    }

    template <typename T>
    __aicore__ inline void spoil(GM_ADDR place) {
        GlobalTensor<T> element;
        element.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(place));
        copy_out(element, words_.template ReinterpretCast<T>(), 1);
    }

    GlobalTensor<float> receipt_;
    GlobalTensor<float> reason_;
    TBuf<TPosition::VECIN> found_buffer_;
    TBuf<TPosition::VECOUT> words_buffer_;
    LocalTensor<float> found_;
    LocalTensor<float> words_;
    Table<2, 64> places_;
    uint64_t count_ = 0;
};

__aicore__ inline bool all_signed(GM_ADDR receipt, uint64_t due, GM_ADDR places, uint64_t count, uint64_t size,
                                  GM_ADDR reason) {
    TPipe pipe;
    Guard kernel;
    kernel.init(pipe, receipt, places, count, reason);
    return kernel.run(static_cast<uint32_t>(due), size);
}

} // namespace adasum

ADASUM_VECTOR_KERNEL(guard);

extern "C" __global__ __aicore__ void guard(GM_ADDR receipt, uint64_t due, GM_ADDR places, uint64_t count,
                                            uint64_t size, GM_ADDR reason) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    bool done = adasum::all_signed(receipt, due, places, count, size, reason);
#if ADASUM_NPU_ARCH != 1001
    if (!done && (due & adasum::GUARD_GOES_ON) == 0) {
        AscendC::Trap();
    }
#else
    static_cast<void>(done);
#endif
    adasum::leave();
}
