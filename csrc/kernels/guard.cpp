// guard: stops the stream that it runs on unless all `count` words are zero, and sets them to 1 for the next time.
//
// Another stream zeroes the words when its work is done. Work that failed leaves them, and what follows here must not
// take its leftovers for results.
#include "adasum_ascendc.h"
#include "device.h"

namespace adasum {

using namespace AscendC;

__aicore__ inline bool take_words(GM_ADDR words, uint32_t count) {
  constexpr uint32_t MOST = 64;
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, MOST * static_cast<uint32_t>(sizeof(int32_t)));
  LocalTensor<int32_t> local = buffer.Get<int32_t>();
  GlobalTensor<int32_t> memory;
  memory.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t *>(words));
  count = static_cast<uint32_t>(smaller(count, MOST));
  copy_in(local, memory, count);
  wait_for<HardEvent::MTE2_S>();
  bool done = true;
  for (uint32_t i = 0; i < count; ++i) {
    done = done && local.GetValue(i) == 0;
  }
  wait_for<HardEvent::S_V>();
  Duplicate(local, 1, static_cast<int32_t>(padded(count)));
  wait_for<HardEvent::V_MTE3>();
  copy_out(memory, local, count);
  return done;
}

}  // namespace adasum

extern "C" __global__ __aicore__ void guard(GM_ADDR words, uint64_t count) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  if (!adasum::take_words(words, static_cast<uint32_t>(count))) {
    AscendC::Trap();
  }
}
