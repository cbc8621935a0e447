// weighted_sum: out = ((w0 x0 + w1 x1) + w2 x2) + ..., each product and each sum rounded to fp32.
//
// The weights are those of the tensor that a unit belongs to. out may be any of the inputs: a tile is read before
// it is written. A NaN weight, and 0 times an infinity, give NaN.
#include "adasum_ascendc.h"
#include "device.h"
#include "layout.h"

namespace adasum {

using namespace AscendC;

// Elements of a step between barriers: short enough for a product that stays close to the vector unit.
constexpr uint32_t PART = 512;
constexpr uint32_t COEFFICIENT_BYTES = COEFFICIENT_WORDS * 4;

__aicore__ inline constexpr uint32_t sum_ub_bytes(uint32_t radix) {
  uint32_t tiles = 2 * radix * tile_stride(radix) * 4;
  return tiles + 2 * tile_of(radix) * 4 + PART * 4 + COEFFICIENT_BYTES + UnitCursor::UB_BYTES;
}

static_assert(sum_ub_bytes(2) <= UB_BUDGET, "weighted_sum: too much UB for r <= 2");
static_assert(sum_ub_bytes(4) <= UB_BUDGET, "weighted_sum: too much UB for r <= 4");
static_assert(sum_ub_bytes(8) <= UB_BUDGET, "weighted_sum: too much UB for r <= 8");

class WeightedSum {
 public:
  __aicore__ inline WeightedSum() {}

  __aicore__ inline void init(TPipe &pipe, GM_ADDR vectors, GM_ADDR segments, GM_ADDR coefficients, GM_ADDR out,
                              uint32_t radix, uint64_t segment_count) {
    radix_ = radix;
    tile_ = tile_of(radix);
    stride_ = tile_stride(radix);
    open_vectors(vectors_, vectors, radix);
    coefficients_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(coefficients));
    out_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(out));
    pipe.InitBuffer(tiles_, 2, radix * stride_ * sizeof(float));
    pipe.InitBuffer(sums_, 2, tile_ * sizeof(float));
    pipe.InitBuffer(product_buffer_, PART * sizeof(float));
    pipe.InitBuffer(coefficient_buffer_, COEFFICIENT_BYTES);
    product_ = product_buffer_.Get<float>();
    coefficient_ = coefficient_buffer_.Get<float>();
    cursor_.init(pipe, segments, segment_count);
  }

  __aicore__ inline void run(Share units) {
    if (units.begin < units.end) {
      cursor_.seek(units.begin);
    }
    for (uint64_t unit = units.begin; unit < units.end; ++unit) {
      UnitSpan span = cursor_.next();
      use_tensor(span.tensor);
      for (uint32_t done = 0; done < span.len; done += tile_) {
        sum_tile(span.offset + done, static_cast<uint32_t>(smaller(tile_, span.len - done)));
      }
    }
  }

 private:
  static constexpr uint64_t NO_TENSOR = ~0ULL;

  __aicore__ inline void use_tensor(uint64_t tensor) {
    if (tensor == tensor_) {
      return;
    }
    tensor_ = tensor;
    wait_for<HardEvent::S_MTE2>();
    copy_in(coefficient_, coefficients_[tensor * COEFFICIENT_WORDS], COEFFICIENT_WORDS);
    wait_for<HardEvent::MTE2_S>();
    for (uint32_t i = 0; i < radix_; ++i) {
      weights_[i] = coefficient_.GetValue(COEFFICIENT_WEIGHT + i);
      scales_[i] = coefficient_.GetValue(COEFFICIENT_SCALE + i);
    }
    post_ = coefficient_.GetValue(COEFFICIENT_POST);
  }

  __aicore__ inline void sum_tile(uint64_t offset, uint32_t count) {
    LocalTensor<float> tiles = tiles_.AllocTensor<float>();
    for (uint32_t i = 0; i < radix_; ++i) {
      copy_in(tiles[i * stride_], vectors_[i][offset], count);
    }
    tiles_.EnQue(tiles);
    tiles = tiles_.DeQue<float>();
    LocalTensor<float> sum = sums_.AllocTensor<float>();
    for (uint32_t done = 0; done < count; done += PART) {
      sum_part(sum[done], tiles[done], static_cast<int32_t>(smaller(PART, count - done)));
    }
    tiles_.FreeTensor(tiles);
    sums_.EnQue(sum);
    sum = sums_.DeQue<float>();
    copy_out(out_[offset], sum, count);
    sums_.FreeTensor(sum);
  }

  __aicore__ inline void sum_part(const LocalTensor<float> &sum, const LocalTensor<float> &tiles, int32_t count) {
    scale(sum, tiles, 0, count);
    for (uint32_t i = 1; i < radix_; ++i) {
      scale(product_, tiles[i * stride_], i, count);
      Add(sum, sum, product_, count);
      PipeBarrier<PIPE_V>();
    }
    if (post_ != 0.0f && post_ != 1.0f) {
      Muls(sum, sum, post_, count);
      PipeBarrier<PIPE_V>();
    }
  }

  // dst = src * scale * scale * weight of vector i.
  __aicore__ inline void scale(const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t i,
                               int32_t count) {
    if (scales_[i] == 1.0f) {
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
  TBuf<TPosition::VECCALC> coefficient_buffer_;
  LocalTensor<float> product_;
  LocalTensor<float> coefficient_;
  UnitCursor cursor_;
  GlobalTensor<float> vectors_[MAX_RADIX];
  GlobalTensor<float> coefficients_;
  GlobalTensor<float> out_;
  float weights_[MAX_RADIX];
  float scales_[MAX_RADIX];
  float post_ = 0.0f;
  uint64_t tensor_ = NO_TENSOR;
  uint32_t radix_ = 0;
  uint32_t tile_ = 0;
  uint32_t stride_ = 0;
};

}  // namespace adasum

// The host passes only fp32 so far.
extern "C" __global__ __aicore__ void weighted_sum(GM_ADDR vectors, GM_ADDR segments, GM_ADDR coefficients,
                                                   GM_ADDR out, uint64_t radix, uint64_t dtype,
                                                   uint64_t segment_count, uint64_t unit_count) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  if (dtype != adasum::DTYPE_FLOAT) {
    return;
  }
  AscendC::TPipe pipe;
  adasum::WeightedSum kernel;
  kernel.init(pipe, vectors, segments, coefficients, out, static_cast<uint32_t>(radix), segment_count);
  kernel.run(adasum::share_of(unit_count));
}
