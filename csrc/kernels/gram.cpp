// gram: the Gram matrix of r vectors, one record a unit, in one pass over memory.
//
// A unit is summed in LANES fp32 accumulators an entry, which a tree of additions then joins. A unit whose squared
// norms leave the range of fp32 products is summed again with powers of two on its vectors.
#include "adasum_ascendc.h"
#include "device.h"
#include "layout.h"
#include "two_float.h"

namespace adasum {

using namespace AscendC;

// Accumulators an entry, and what the last instruction of the tree sums.
constexpr uint32_t LANES = 512;
constexpr uint32_t REPEAT = 64;
constexpr uint32_t BLOCK = 8;
// Records wait for their range check and their copy in buffers of this size.
constexpr uint32_t STAGE_BYTES = 8192;

__aicore__ inline constexpr uint32_t gram_ub_bytes(uint32_t radix) {
  uint32_t tiles = 2 * radix * tile_stride(radix) * 4;
  uint32_t lanes = entries(radix) * LANES * 4;
  return tiles + lanes + 2 * STAGE_BYTES + UnitCursor::UB_BYTES;
}

static_assert(gram_ub_bytes(2) <= UB_BUDGET, "gram: too much UB for r = 2");
static_assert(gram_ub_bytes(3) <= UB_BUDGET, "gram: too much UB for r = 3");
static_assert(gram_ub_bytes(4) <= UB_BUDGET, "gram: too much UB for r = 4");
static_assert(gram_ub_bytes(5) <= UB_BUDGET, "gram: too much UB for r = 5");
static_assert(gram_ub_bytes(6) <= UB_BUDGET, "gram: too much UB for r = 6");
static_assert(gram_ub_bytes(7) <= UB_BUDGET, "gram: too much UB for r = 7");
static_assert(gram_ub_bytes(8) <= UB_BUDGET, "gram: too much UB for r = 8");

class Gram {
 public:
  __aicore__ inline Gram() {}

  __aicore__ inline void init(TPipe &pipe, GM_ADDR vectors, GM_ADDR segments, GM_ADDR partials, uint32_t radix,
                              uint64_t segment_count) {
    radix_ = radix;
    entries_ = entries(radix);
    words_ = record_words(radix);
    tile_ = tile_of(radix);
    stride_ = tile_stride(radix);
    open_vectors(vectors_, vectors, radix);
    partials_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(partials));
    pipe.InitBuffer(tiles_, 2, radix * stride_ * sizeof(float));
    pipe.InitBuffer(stages_, 2, STAGE_BYTES);
    pipe.InitBuffer(lanes_buffer_, entries_ * LANES * sizeof(float));
    lanes_ = lanes_buffer_.Get<float>();
    cursor_.init(pipe, segments, segment_count);
  }

  __aicore__ inline void run(Share units) {
    uint64_t limit = STAGE_BYTES / sizeof(float) / words_;
    limit = smaller(limit, MAX_RUN);
    if (units.begin < units.end) {
      cursor_.seek(units.begin);
    }
    for (uint64_t unit = units.begin; unit < units.end; unit += limit) {
      run_of_units(unit, static_cast<uint32_t>(smaller(limit, units.end - unit)));
    }
  }

 private:
  static constexpr uint32_t MAX_RUN = 128;

  __aicore__ inline void run_of_units(uint64_t first, uint32_t count) {
    LocalTensor<float> stage = stages_.AllocTensor<float>();
    Duplicate(stage, 0.0f, static_cast<int32_t>(count * words_));
    PipeBarrier<PIPE_V>();
    for (uint32_t i = 0; i < count; ++i) {
      spans_[i] = cursor_.next();
      sum_unit(stage[i * words_], spans_[i], false);
    }
    wait_for<HardEvent::V_S>();
    for (uint32_t i = 0; i < count; ++i) {
      check_unit(stage[i * words_], spans_[i]);
    }
    stages_.EnQue(stage);
    stage = stages_.DeQue<float>();
    wait_for<HardEvent::S_MTE3>();
    copy_out(partials_[first * words_], stage, count * words_);
    stages_.FreeTensor(stage);
  }

  // Writes the hi words of the unit's record; its other words stay zero.
  __aicore__ inline void sum_unit(const LocalTensor<float> &record, const UnitSpan &unit, bool scaled) {
    // A short unit needs few lanes, and not all of them get a product.
    uint32_t lanes = unit.len <= REPEAT ? REPEAT : LANES;
    bool fresh = unit.len >= lanes;
    if (!fresh) {
      for (uint32_t entry = 0; entry < entries_; ++entry) {
        Duplicate(lanes_[entry * LANES], 0.0f, static_cast<int32_t>(lanes));
      }
      PipeBarrier<PIPE_V>();
    }
    for (uint32_t done = 0; done < unit.len; done += tile_) {
      uint32_t count = static_cast<uint32_t>(smaller(tile_, unit.len - done));
      load_tiles(unit.offset + done, count);
      LocalTensor<float> tiles = tiles_.DeQue<float>();
      if (scaled) {
        scale_tiles(tiles, count);
      }
      sum_tiles(tiles, count, lanes, fresh && done == 0);
      tiles_.FreeTensor(tiles);
    }
    join_lanes(record, lanes);
  }

  __aicore__ inline void load_tiles(uint64_t offset, uint32_t count) {
    LocalTensor<float> tiles = tiles_.AllocTensor<float>();
    for (uint32_t i = 0; i < radix_; ++i) {
      copy_in(tiles[i * stride_], vectors_[i][offset], count);
    }
    tiles_.EnQue(tiles);
  }

  __aicore__ inline void scale_tiles(const LocalTensor<float> &tiles, uint32_t count) {
    for (uint32_t i = 0; i < radix_; ++i) {
      LocalTensor<float> tile = tiles[i * stride_];
      if (exponents_[i] != 0) {
        Muls(tile, tile, power_of_two(-exponents_[i]), static_cast<int32_t>(count));
      }
    }
    PipeBarrier<PIPE_V>();
  }

  // Adds the products of a tile to the lanes; the first ones of a unit are set where there is one for each lane.
  __aicore__ inline void sum_tiles(const LocalTensor<float> &tiles, uint32_t count, uint32_t lanes, bool fresh) {
    for (uint32_t done = 0; done < count; done += lanes) {
      int32_t part = static_cast<int32_t>(smaller(lanes, count - done));
      uint32_t entry = 0;
      for (uint32_t i = 0; i < radix_; ++i) {
        LocalTensor<float> x = tiles[i * stride_ + done];
        for (uint32_t j = i; j < radix_; ++j, ++entry) {
          LocalTensor<float> y = tiles[j * stride_ + done];
          LocalTensor<float> sums = lanes_[entry * LANES];
          if (fresh && done == 0) {
            Mul(sums, x, y, part);
          } else {
            MulAddDst(sums, x, y, part);
          }
        }
      }
      PipeBarrier<PIPE_V>();
    }
  }

  __aicore__ inline void join_lanes(const LocalTensor<float> &record, uint32_t lanes) {
    for (uint32_t half = lanes / 2; half >= REPEAT; half /= 2) {
      for (uint32_t entry = 0; entry < entries_; ++entry) {
        LocalTensor<float> sums = lanes_[entry * LANES];
        Add(sums, sums, sums[half], static_cast<int32_t>(half));
      }
      PipeBarrier<PIPE_V>();
    }
    WholeReduceSum(record, lanes_, static_cast<int32_t>(REPEAT), static_cast<int32_t>(entries_), 2, 1,
                   static_cast<int32_t>(LANES / BLOCK));
    PipeBarrier<PIPE_V>();
  }

  // The range rule: afterwards the record is final.
  __aicore__ inline void check_unit(const LocalTensor<float> &record, const UnitSpan &unit) {
    bool redo = false;
    for (uint32_t i = 0; i < radix_; ++i) {
      float norm = diagonal(record, i);
      exponents_[i] = exponent_for(norm);
      redo = redo || exponents_[i] != 0;
      if (norm != norm) {
        give_up(record);
        return;
      }
    }
    if (!redo) {
      return;
    }
    wait_for<HardEvent::S_V>();
    sum_unit(record, unit, true);
    wait_for<HardEvent::V_S>();
    for (uint32_t i = 0; i < radix_; ++i) {
      if (!is_finite(diagonal(record, i))) {
        give_up(record);
        return;
      }
    }
    for (uint32_t i = 0; i < radix_; ++i) {
      int32_t exponent = diagonal(record, i) == 0.0f ? ZERO_EXPONENT : exponents_[i];
      record.SetValue(record_exponents(radix_) + i, to_float(exponent));
    }
  }

  __aicore__ inline float diagonal(const LocalTensor<float> &record, uint32_t vector) const {
    return record.GetValue(2 * entry_index(vector, vector, radix_));
  }

  static __aicore__ inline int32_t exponent_for(float norm) {
    if (norm > power_of_two(DIAGONAL_LOG2_MAX)) {
      return EXPONENT_OF_HUGE;
    }
    return norm < power_of_two(DIAGONAL_LOG2_MIN) ? EXPONENT_OF_TINY : 0;
  }

  // A NaN or an infinity: a record without numbers.
  __aicore__ inline void give_up(const LocalTensor<float> &record) {
    for (uint32_t entry = 0; entry < entries_; ++entry) {
      record.SetValue(2 * entry, 0.0f);
    }
    for (uint32_t i = 0; i < radix_; ++i) {
      record.SetValue(record_exponents(radix_) + i, to_float(ZERO_EXPONENT));
    }
    record.SetValue(record_flags(radix_), 1.0f);
  }

  TQue<TPosition::VECIN, 1> tiles_;
  TQue<TPosition::VECOUT, 1> stages_;
  TBuf<TPosition::VECCALC> lanes_buffer_;
  LocalTensor<float> lanes_;
  UnitCursor cursor_;
  GlobalTensor<float> vectors_[MAX_RADIX];
  GlobalTensor<float> partials_;
  UnitSpan spans_[MAX_RUN];
  int32_t exponents_[MAX_RADIX];
  uint32_t radix_ = 0;
  uint32_t entries_ = 0;
  uint32_t words_ = 0;
  uint32_t tile_ = 0;
  uint32_t stride_ = 0;
};

}  // namespace adasum

// The host passes only fp32 so far.
extern "C" __global__ __aicore__ void gram(GM_ADDR vectors, GM_ADDR segments, GM_ADDR partials, uint64_t radix,
                                           uint64_t dtype, uint64_t segment_count, uint64_t unit_count) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  if (dtype != adasum::DTYPE_FLOAT) {
    return;
  }
  AscendC::TPipe pipe;
  adasum::Gram kernel;
  kernel.init(pipe, vectors, segments, partials, static_cast<uint32_t>(radix), segment_count);
  kernel.run(adasum::share_of(unit_count));
}
