#include "operation.h"

namespace mock {
namespace {

struct Type {
    uint32_t number;
    uint32_t bytes;
    const char *name;
};

const Type TYPES[] = {
    {HCCL_DATA_TYPE_INT8, 1, "int8"},       {HCCL_DATA_TYPE_INT16, 2, "int16"},
    {HCCL_DATA_TYPE_INT32, 4, "int32"},     {HCCL_DATA_TYPE_FP16, 2, "fp16"},
    {HCCL_DATA_TYPE_FP32, 4, "fp32"},       {HCCL_DATA_TYPE_INT64, 8, "int64"},
    {HCCL_DATA_TYPE_UINT64, 8, "uint64"},   {HCCL_DATA_TYPE_UINT8, 1, "uint8"},
    {HCCL_DATA_TYPE_UINT16, 2, "uint16"},   {HCCL_DATA_TYPE_UINT32, 4, "uint32"},
    {HCCL_DATA_TYPE_FP64, 8, "fp64"},       {HCCL_DATA_TYPE_BFP16, 2, "bfp16"},
    {HCCL_DATA_TYPE_INT128, 16, "int128"},  {HCCL_DATA_TYPE_HIF8, 1, "hif8"},
    {HCCL_DATA_TYPE_FP8E4M3, 1, "fp8e4m3"}, {HCCL_DATA_TYPE_FP8E5M2, 1, "fp8e5m2"},
    {HCCL_DATA_TYPE_FP8E8M0, 1, "fp8e8m0"},
};

const Type *find_type(uint32_t dtype) {
    for (const Type &type : TYPES) {
        if (type.number == dtype) {
            return &type;
        }
    }
    return nullptr;
}

bool any_of(uint32_t value, std::initializer_list<uint32_t> list) {
    for (const uint32_t item : list) {
        if (item == value) {
            return true;
        }
    }
    return false;
}

bool small_integer(uint32_t dtype) {
    return any_of(dtype, {HCCL_DATA_TYPE_INT8, HCCL_DATA_TYPE_INT16, HCCL_DATA_TYPE_INT32});
}

bool can_move(uint32_t dtype) {
    if (find_type(dtype) == nullptr) {
        return false;
    }
    if (dtype >= HCCL_DATA_TYPE_HIF8) {
        return family() == Family::Ascend950;
    }
    return dtype != HCCL_DATA_TYPE_INT128 && (dtype != HCCL_DATA_TYPE_BFP16 || family() != Family::Ascend910A);
}

bool can_reduce(uint32_t dtype, uint32_t reduce) {
    const bool common = any_of(dtype, {HCCL_DATA_TYPE_FP16, HCCL_DATA_TYPE_FP32});
    if (reduce > HCCL_REDUCE_MIN ||
        (reduce == HCCL_REDUCE_PROD && any_of(dtype, {HCCL_DATA_TYPE_INT16, HCCL_DATA_TYPE_BFP16}))) {
        return false;
    }
    switch (family()) {
    case Family::Ascend910A:
        return common || any_of(dtype, {HCCL_DATA_TYPE_INT8, HCCL_DATA_TYPE_INT32, HCCL_DATA_TYPE_INT64});
    case Family::Ascend310P: return common || small_integer(dtype);
    case Family::Ascend950:
        return common || small_integer(dtype) ||
               any_of(dtype, {HCCL_DATA_TYPE_INT64, HCCL_DATA_TYPE_UINT64, HCCL_DATA_TYPE_FP64, HCCL_DATA_TYPE_BFP16});
    case Family::Ascend910C: // its modes, AICPU and AIV, have no int64
        return common || small_integer(dtype) || dtype == HCCL_DATA_TYPE_BFP16;
    default: return common || small_integer(dtype) || any_of(dtype, {HCCL_DATA_TYPE_INT64, HCCL_DATA_TYPE_BFP16});
    }
}

const char *reduce_name(uint32_t reduce) {
    static const char *const NAMES[] = {"sum", "prod", "max", "min"};
    return reduce < 4 ? NAMES[reduce] : "an unknown reduction";
}

} // namespace

const char *op_name(Op op) {
    switch (op) {
    case Op::None: return "nothing";
    case Op::Send: return "HcclSend";
    case Op::Recv: return "HcclRecv";
    case Op::Batch: return "HcclBatchSendRecv";
    case Op::AllReduce: return "HcclAllReduce";
    case Op::AllGather: return "HcclAllGather";
    case Op::ReduceScatter: return "HcclReduceScatter";
    case Op::Broadcast: return "HcclBroadcast";
    case Op::Reduce: return "HcclReduce";
    case Op::Barrier: return "HcclBarrier";
    case Op::Scatter: return "HcclScatter";
    case Op::AlltoAll: return "HcclAlltoAll";
    case Op::AlltoAllV: return "HcclAlltoAllV";
    case Op::AlltoAllVCounts: return "HcclAlltoAllV (its counts)";
    case Op::AllGatherV: return "HcclAllGatherV";
    case Op::ReduceScatterV: return "HcclReduceScatterV";
    case Op::Group: return "HcclGroupEnd";
    }
    return "an unknown operation";
}

bool brings_nothing(Op op) { return op == Op::Barrier || op == Op::AlltoAllVCounts; }

bool made_of_transfers(Op op) {
    switch (op) {
    case Op::Send:
    case Op::Recv:
    case Op::Batch:
    case Op::Group:
    case Op::Scatter:
    case Op::AlltoAll:
    case Op::AlltoAllV:
    case Op::AllGatherV:
    case Op::ReduceScatterV: return true;
    default: return false;
    }
}

uint32_t type_bytes(uint32_t dtype) {
    const Type *type = find_type(dtype);
    return type == nullptr ? 0 : type->bytes;
}

const char *type_name(uint32_t dtype) {
    const Type *type = find_type(dtype);
    return type == nullptr ? "an unknown type" : type->name;
}

std::string describe(const Signature &signature) {
    std::string text = op_name(signature.op);
    if (brings_nothing(signature.op) || signature.op == Op::None) {
        return text;
    }
    text += format(" (%llu bytes, %s", static_cast<unsigned long long>(signature.bytes), type_name(signature.dtype));
    if (signature.reduce != NO_VALUE) {
        text += format(", %s", reduce_name(signature.reduce));
    }
    if (signature.root != NO_VALUE) {
        text += format(", root %u", signature.root);
    }
    return text + ")";
}

void check_movable(uint32_t dtype) {
    if (!can_move(dtype)) {
        fault(HCCL_E_NOT_SUPPORT, "EI0003: dataType %u, %s, is not supported by this processor", dtype,
              type_name(dtype));
    }
}

void check_reducible(uint32_t dtype, uint32_t reduce) {
    if (!can_reduce(dtype, reduce)) {
        fault(HCCL_E_NOT_SUPPORT, "EI0003: op %u, %s, of dataType %u, %s, is not supported by this processor", reduce,
              reduce_name(reduce), dtype, type_name(dtype));
    }
}

} // namespace mock
