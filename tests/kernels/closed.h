// What the vendor's open headers of Ascend C take from headers that are closed, for a type check by g++ in their CPU mode.
//
// Types and enumerations only, without what they mean: our own, so that the open declarations can be parsed. Functions of
// the closed headers are not here: vendor_headers.sh declares each that the open headers call.
#pragma once

// Lists of names, not code.
// clang-format off

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

// Words of the compiler that g++ does not know.
#define __aicore__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __ssbuf__
#define __biasbuf__
#define __global__
#define __sync_alias__
#define __sync_noalias__
#define __check_sync_alias__
#define __inout_pipe__(...)
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __BLOCK_LOCAL__
#define __WORKGROUP_LOCAL__
#define __simd_callee__
#define __simd_vf__
#define __simt_callee__
#define __VEC_SCOPE__
#define __disable_kernel_type_autoinfer__
#define __SIMT_DEVICE_FUNCTIONS_DECL__
#define ASCENDC_HOST
#define ASCENDC_AICORE
#define ASCENDC_HOST_AICORE
#define GM_ADDR uint8_t *

// Element types.
template <typename Bits>
struct ClosedNumber {
  Bits val;
  ClosedNumber() = default;
  template <typename T>
  ClosedNumber(T);
  operator float() const;
  float ToFloat() const;
};
struct half : ClosedNumber<uint16_t> { using ClosedNumber::ClosedNumber; };
struct bfloat16_t : ClosedNumber<uint16_t> { using ClosedNumber::ClosedNumber; };
struct fp8_e4m3fn_t : ClosedNumber<uint8_t> { using ClosedNumber::ClosedNumber; };
struct fp8_e5m2_t : ClosedNumber<uint8_t> { using ClosedNumber::ClosedNumber; };
struct fp8_e8m0_t : ClosedNumber<uint8_t> { using ClosedNumber::ClosedNumber; };
struct fp4x2_e1m2_t : ClosedNumber<uint8_t> { using ClosedNumber::ClosedNumber; };
struct fp4x2_e2m1_t : ClosedNumber<uint8_t> { using ClosedNumber::ClosedNumber; };
struct hifloat8_t : ClosedNumber<uint8_t> { using ClosedNumber::ClosedNumber; };
struct int4x2_t { uint8_t val; };
namespace bfloat16 {
struct Bf16T {
  template <typename T>
  Bf16T(T);
  operator bfloat16_t() const;
};
}  // namespace bfloat16

// Pipes, events, caches.
enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_MTE4, PIPE_MTE5, PIPE_V2, PIPE_FIX };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum mem_dsb_t { DSB_ALL };
enum mem_t { L1, L0A, L0B, L0C, UB };
enum class dcci_dst_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };

// Modes of instructions.
enum class QuantMode_t {
  NoQuant, DEQF16, DEQS16, F322BF16, F322F16, QF162B8_PRE, QF162S16_PRE, QF162S4_PRE, QF322B8_PRE, QF322BF16_PRE,
  QF322F16_PRE, QF322F32_PRE, QF322FP8_PRE, QF322HIF8_PRE, QF322HIF8_PRE_HYBRID, QS322BF16_PRE, REQ4, REQ8, VDEQF16,
  VDEQS16, VQF162B8_PRE, VQF162S16_PRE, VQF162S4_PRE, VQF322B8_PRE, VQF322BF16_PRE, VQF322F16_PRE, VQF322F32_PRE,
  VQF322FP8_PRE, VQF322HIF8_PRE, VQF322HIF8_PRE_HYBRID, VQS322BF16_PRE, VREQ4, VREQ8
};
enum class QuantMode_post { NoConv };
enum class Order_t { VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };
enum class ROUND {
  A, C, F, H, O, R, Z, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD, CAST_HYBRID
};
enum class pad_t { PAD_NONE };
enum class atomic_type_t {};
enum class atomic_op_t {};
enum addr_cal_mode_t { inc, dec };
enum ub_addr8_t { VA0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 };
enum half_t { L128, H128 };
enum csize_t { CSIZE0, CSIZE1 };
enum CRMode_t {
  CRMODE_NONE, CRMODE_DEQSCALE_DEQ16, CRMODE_DEQSCALE_DEQ8, CRMODE_DEQSCALE_DEQS16, CRMODE_DEQSCALE_VDEQ16,
  CRMODE_DEQSCALE_VDEQ8, CRMODE_DEQSCALE_VDEQS16, CRMODE_F16_MUL, CRMODE_F16toF32_NONE, CRMODE_F32toF16_NONE,
  CRMODE_F32toF16_RELU, CRMODE_NONE_RELU, CRMODE_S32toF16_DEQSCALE_SPR, CRMODE_S32toF16_NONE
};
enum vector_mode_t {
  PAT_ALL, PAT_ALLF, HIGHER, LOWER, MODE_ZEROING, PART_EVEN, POST_UPDATE, ROUND_R, ROUND_Z, RS_DISABLE, LD_VST, ST_VLD,
  ST_VST, SV_ALL, VLD_ST, VLD_VST, VST_LD, VST_ST, VST_VLD, VST_VST, VS_ALL, VV_ALL
};
#define CLOSED_MODES(X) \
  X(Spr) X(Pat) X(HiloPart) X(Part) X(Part_T) X(Post) X(Dist) X(DistVST) X(RoundingSaturation) X(Pos) X(Order) \
  X(StoreMode) X(CpuMode) X(Bin) X(Mode)
#define CLOSED_MODE(name) enum class name : uint8_t {};
CLOSED_MODES(CLOSED_MODE)

// Vector registers of Ascend 950.
#define CLOSED_REGISTERS(X) \
  X(bool) X(address) X(align) X(u8) X(u16) X(u32) X(u64) X(s8) X(s16) X(s32) X(s64) X(s4x2) X(f16) X(f32) X(bf16) \
  X(hif8) X(f8e4m3) X(f8e5m2) X(f8e8m0) X(f4e2m1x2) X(f4e1m2x2) X(2xvl_s32)
#define CLOSED_REGISTER(name) \
  struct vector_##name { vector_##name() = default; vector_##name(int); };
CLOSED_REGISTERS(CLOSED_REGISTER)

// What the CPU mode keeps of the core that it stands for.
extern int64_t block_idx;
extern int64_t sub_block_idx;
extern int64_t block_num;
extern int64_t g_taskRation;
enum class KernelMode { NORMAL_MODE, AIC_MODE, AIV_MODE, MIX_MODE };
extern KernelMode g_kernelMode;
namespace AscendC {
enum CoreType { AIC_TYPE, AIV_TYPE, MIX_TYPE };
extern CoreType g_coreType;
extern bool g_isVdeq;
}  // namespace AscendC

// Any function of the closed headers: it takes whatever the open ones give it.
#define CLOSED_FUNCTION(name) \
  template <typename... Arguments> \
  int name(Arguments &&...);
#include "closed_functions.h"
