// coefficients: sums the records of each tensor and solves the AdaSum pair for the weights of its two vectors.
//
//   weight(a) = 1 - ab / (2 aa),  weight(b) = 1 - ab / (2 bb);  next to a zero vector both are 1.
//
// Blocks share the tensors. Everything is two-float with separate exponents, so no finite input leaves the range.
#include "adasum_ascendc.h"
#include "device.h"
#include "layout.h"
#include "records.h"
#include "two_float.h"

namespace adasum {

using namespace AscendC;

// From this power of two on, a weight is split into a factor and the square of a scale.
constexpr int32_t SCALE_LOG2 = 100;
constexpr int32_t MAX_SCALE_LOG2 = 120;
// Squared norms from which on a weighted vector may overflow although the sum does not, or up to which products lose
// bits to subnormals. There the weights take 2^-POST_LOG2 or 2^POST_LOG2 along and the sum is scaled back.
constexpr int32_t HUGE_NORM_LOG2 = 248;
constexpr int32_t TINY_NORM_LOG2 = -180;
constexpr int32_t POST_LOG2 = 24;

// The true weight is value * scale * scale.
struct Weight {
  float value;
  float scale;
};

// 1 - ab / (2 norm), with one rounding to fp32.
__aicore__ inline Weight pair_weight(const Scaled &ab, const Scaled &norm) {
  if (ab.m.hi == 0.0f) {
    return Weight{1.0f, 1.0f};
  }
  TwoFloat quotient = divide(ab.m, norm.m);
  int32_t exponent = ab.exponent - norm.exponent - 1;
  if (exponent < SCALE_LOG2) {
    TwoFloat half = shift(quotient, exponent);
    return Weight{add(TwoFloat{1.0f, 0.0f}, negate(half)).hi, 1.0f};
  }
  // The 1 is far below the last bit.
  int32_t scale = static_cast<int32_t>(smaller(static_cast<uint64_t>(exponent / 2), MAX_SCALE_LOG2));
  return Weight{-shift(quotient, exponent - 2 * scale).hi, power_of_two(scale)};
}

class Coefficients {
 public:
  __aicore__ inline Coefficients() {}

  __aicore__ inline void init(TPipe &pipe, GM_ADDR records, GM_ADDR references, GM_ADDR indices, GM_ADDR out,
                              uint32_t radix, uint64_t tensor_count) {
    radix_ = radix;
    words_ = record_words(radix);
    tensor_count_ = tensor_count;
    records_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(records));
    out_.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(out));
    references_.init(pipe, references);
    indices_.init(pipe, indices);
    pipe.InitBuffer(window_buffer_, WINDOW * words_ * sizeof(float));
    pipe.InitBuffer(results_buffer_, RESULTS * COEFFICIENT_WORDS * sizeof(float));
    window_ = window_buffer_.Get<float>();
    results_ = results_buffer_.Get<float>();
  }

  __aicore__ inline void run(Share tensors) {
    for (uint64_t first = tensors.begin; first < tensors.end; first += RESULTS) {
      uint32_t count = static_cast<uint32_t>(smaller(RESULTS, tensors.end - first));
      wait_for<HardEvent::MTE3_S>();
      for (uint32_t i = 0; i < count; ++i) {
        sum_tensor(first + i);
        solve(results_[i * COEFFICIENT_WORDS]);
      }
      wait_for<HardEvent::S_MTE3>();
      copy_out(out_[first * COEFFICIENT_WORDS], results_, count * COEFFICIENT_WORDS);
    }
  }

 private:
  // Record numbers looked up, and records copied, in one go.
  static constexpr uint32_t WINDOW = 64;
  static constexpr uint32_t RESULTS = 64;
  using References = Table<2 * REFERENCE_WORDS, 64>;
  using Indices = Table<2, WINDOW>;

  static constexpr uint32_t TABLE_BYTES = References::WINDOW_BYTES + Indices::WINDOW_BYTES;
  static constexpr uint32_t WINDOW_BYTES = WINDOW * record_words(MAX_RADIX) * 4;
  static constexpr uint32_t RESULT_BYTES = RESULTS * COEFFICIENT_WORDS * 4;
  static_assert(TABLE_BYTES + WINDOW_BYTES + RESULT_BYTES <= UB_BUDGET, "coefficients: too much UB");

  __aicore__ inline void sum_tensor(uint64_t tensor) {
    references_.seek(tensor, tensor_count_);
    uint64_t next = references_.number(tensor, 0);
    uint64_t end = next + references_.number(tensor, 1);
    sum_.reset(radix_);
    while (next < end) {
      uint32_t count = static_cast<uint32_t>(smaller(WINDOW, end - next));
      load(next, count);
      for (uint32_t i = 0; i < count; ++i) {
        sum_.add_record(window_[i * words_]);
      }
      next += count;
    }
  }

  __aicore__ inline void load(uint64_t first, uint32_t count) {
    wait_for<HardEvent::S_MTE2>();
    for (uint32_t i = 0; i < count; ++i) {
      indices_.seek(first + i, first + count);
      uint64_t record = indices_.number(first + i, 0);
      copy_in(window_[i * words_], records_[record * words_], words_);
    }
    wait_for<HardEvent::MTE2_S>();
  }

  __aicore__ inline void solve(const LocalTensor<float> &result) {
    for (uint32_t word = 0; word < COEFFICIENT_WORDS; ++word) {
      result.SetValue(word, 0.0f);
    }
    for (uint32_t i = 0; i < MAX_RADIX; ++i) {
      result.SetValue(COEFFICIENT_SCALE + i, 1.0f);
    }
    result.SetValue(COEFFICIENT_POST, 1.0f);
    if (sum_.nonfinite()) {
      set_weights(result, Weight{quiet_nan(), 1.0f}, Weight{quiet_nan(), 1.0f});
      result.SetValue(COEFFICIENT_FLAGS, 1.0f);
    } else if (sum_.is_zero(0) || sum_.is_zero(1)) {
      set_weights(result, Weight{1.0f, 1.0f}, Weight{1.0f, 1.0f});
    } else {
      solve_pair(result);
    }
  }

  __aicore__ inline void solve_pair(const LocalTensor<float> &result) {
    Scaled aa = sum_.entry(0, 0);
    Scaled ab = sum_.entry(0, 1);
    Scaled bb = sum_.entry(1, 1);
    Weight a = pair_weight(ab, aa);
    Weight b = pair_weight(ab, bb);
    int32_t post = post_log2(aa.exponent, bb.exponent);
    a.value *= power_of_two(-post);
    b.value *= power_of_two(-post);
    result.SetValue(COEFFICIENT_POST, power_of_two(post));
    set_weights(result, a, b);
  }

  static __aicore__ inline int32_t post_log2(int32_t aa, int32_t bb) {
    int32_t larger = aa > bb ? aa : bb;
    if (larger >= HUGE_NORM_LOG2) {
      return POST_LOG2;
    }
    return larger < TINY_NORM_LOG2 ? -POST_LOG2 : 0;
  }

  static __aicore__ inline void set_weights(const LocalTensor<float> &result, Weight a, Weight b) {
    result.SetValue(COEFFICIENT_WEIGHT, a.value);
    result.SetValue(COEFFICIENT_WEIGHT + 1, b.value);
    result.SetValue(COEFFICIENT_SCALE, a.scale);
    result.SetValue(COEFFICIENT_SCALE + 1, b.scale);
  }

  References references_;
  Indices indices_;
  GlobalTensor<float> records_;
  GlobalTensor<float> out_;
  TBuf<TPosition::VECCALC> window_buffer_;
  TBuf<TPosition::VECCALC> results_buffer_;
  LocalTensor<float> window_;
  LocalTensor<float> results_;
  RecordSum sum_;
  uint64_t tensor_count_ = 0;
  uint32_t radix_ = 0;
  uint32_t words_ = 0;
};

}  // namespace adasum

// The host passes only radix 2 so far.
extern "C" __global__ __aicore__ void coefficients(GM_ADDR records, GM_ADDR references, GM_ADDR indices, GM_ADDR out,
                                                   uint64_t radix, uint64_t tensor_count) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  if (radix != 2) {
    return;
  }
  AscendC::TPipe pipe;
  adasum::Coefficients kernel;
  kernel.init(pipe, records, references, indices, out, static_cast<uint32_t>(radix), tensor_count);
  kernel.run(adasum::share_of(tensor_count));
}
