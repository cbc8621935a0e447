// One operation as a rank was asked for it, and the part of it on which ranks have to agree.

#ifndef ASCEND_MOCK_HCCL_OPERATION_H
#define ASCEND_MOCK_HCCL_OPERATION_H

#include <memory>
#include <string>
#include <vector>

#include "failure.h"

namespace mock {

enum class Op : uint32_t {
    None,
    Send,
    Recv,
    Batch,
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    Reduce,
    Barrier,
    Scatter,
    AlltoAll,
    AlltoAllV,
    AlltoAllVCounts, // what ranks tell each other before it
    AllGatherV,
    ReduceScatterV,
    Group // of sends and receives
};

constexpr uint32_t NO_VALUE = 0xffffffff; // a field that the operation does not have

// What two ranks compare before data moves. `bytes` is what one of them contributes to the other.
struct Signature {
    Op op = Op::None;
    uint32_t dtype = NO_VALUE;
    uint32_t reduce = NO_VALUE;
    uint32_t root = NO_VALUE;
    uint64_t bytes = 0;

    bool operator==(const Signature &other) const {
        return op == other.op && dtype == other.dtype && reduce == other.reduce && root == other.root &&
               bytes == other.bytes;
    }
    bool operator!=(const Signature &other) const { return !(*this == other); }
};

// One transfer of a point-to-point operation.
struct Transfer {
    bool send = false;
    uint32_t peer = 0;
    uint32_t dtype = 0;
    uint64_t bytes = 0;
    char *address = nullptr;
    uint64_t offset = 0; // of the address, in this device's arena
};

struct Operation {
    Signature signature;
    uint64_t serial = 0;        // n-th operation of this rank on the communicator, from 0
    const char *send = nullptr; // collectives: what this rank gives
    char *recv = nullptr;       // collectives: where the result goes
    uint64_t send_offset = 0;
    uint64_t recv_offset = 0;
    uint64_t count = 0; // elements, as the caller gave them
    std::vector<Transfer> transfers;
    std::shared_ptr<std::vector<char>> scratch; // where parts arrive that are reduced afterwards
    Injection injection{};                      // a fault that was asked for
    bool on_ai_cpus = false;                    // by streams of HCCL's own
};

// Whether the operation consists of transfers between pairs of ranks.
bool made_of_transfers(Op op);
bool brings_nothing(Op op); // ranks only meet

const char *op_name(Op op);
// Bytes of an element; 0 for a number that is no type.
uint32_t type_bytes(uint32_t dtype);
const char *type_name(uint32_t dtype);
// "HcclAllReduce (4096 bytes, fp32, sum)"
std::string describe(const Signature &signature);

// Fail with the vendor's code for what this processor cannot move or reduce.
void check_movable(uint32_t dtype);
void check_reducible(uint32_t dtype, uint32_t reduce);

} // namespace mock

#endif
