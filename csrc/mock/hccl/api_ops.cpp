// The exported operations: the vendor's checks in the vendor's order, then the operation goes to its stream.

#include <set>

#include "checks.h"
#include "group.h"

using namespace mock;

namespace {

struct Collective {
    Op op;
    void *send;
    void *recv;
    uint64_t count;
    uint32_t dtype;
    uint32_t reduce = NO_VALUE;
    uint32_t root = NO_VALUE;
};

void refuse_overlap(const Collective &call, uint64_t bytes) {
    const auto *send = static_cast<const char *>(call.send);
    const auto *recv = static_cast<const char *>(call.recv);
    if (send != recv && send < recv + bytes && recv < send + bytes) {
        fault(HCCL_E_PARA, "EI0003: sendBuf %p and recvBuf %p overlap, but are not the same", call.send, call.recv);
    }
}

void run_collective(const Collective &call, HcclComm handle, aclrtStream stream) {
    const std::shared_ptr<Comm> comm = find_ready(handle);
    check_count(call.count);
    if (call.reduce == NO_VALUE) {
        check_movable(call.dtype);
    } else {
        check_reducible(call.dtype, call.reduce);
    }
    if (call.root != NO_VALUE) {
        check_rank(*comm, call.root, "root");
    }
    check_place(*comm, stream);
    const uint64_t ranks = comm->size();
    const bool gets = call.op != Op::Reduce || comm->rank() == call.root; // of the ranks of a reduce only the root
    Operation operation;
    operation.signature = {call.op, call.dtype, call.reduce, call.root, call.count * type_bytes(call.dtype)};
    operation.count = call.count;
    operation.send = static_cast<const char *>(call.send);
    operation.recv = gets ? static_cast<char *>(call.recv) : nullptr;
    const uint64_t bytes = operation.signature.bytes;
    operation.send_offset =
        check_buffer(*comm, call.send, bytes * (call.op == Op::ReduceScatter ? ranks : 1), call.dtype, "sendBuf");
    if (gets) {
        operation.recv_offset =
            check_buffer(*comm, call.recv, bytes * (call.op == Op::AllGather ? ranks : 1), call.dtype, "recvBuf");
    }
    if (gets && (call.op == Op::AllReduce || call.op == Op::Reduce)) {
        refuse_overlap(call, bytes);
    }
    comm->submit(std::move(operation), all_but(*comm), stream);
}

void collective(const Collective &call, HcclComm comm, aclrtStream stream) {
    require(static_cast<char *>(comm), "comm");
    require(static_cast<char *>(call.send), "sendBuf");
    require(static_cast<char *>(call.recv), "recvBuf");
    require(static_cast<char *>(stream), "stream");
    const uint64_t bytes = call.count * type_bytes(call.dtype);
    if (!defer_collective(comm, stream, bytes, false, [=] { run_collective(call, comm, stream); })) {
        run_collective(call, comm, stream);
    }
}

// In a group most is checked when it ends, but on the 950.
void transfer(Op op, void *buffer, uint64_t count, HcclDataType dtype, uint32_t peer, HcclComm handle,
              aclrtStream stream) {
    const bool send = op == Op::Send;
    const HcclSendRecvItem item = {send ? HCCL_SEND : HCCL_RECV, buffer, count, dtype, peer};
    require(static_cast<char *>(handle), "comm");
    require(static_cast<char *>(buffer), send ? "sendBuf" : "recvBuf");
    require(static_cast<char *>(stream), "stream");
    check_count(count);
    if (in_group() && family() != Family::Ascend950) {
        add_to_group(handle, stream, item);
        return;
    }
    const std::shared_ptr<Comm> comm = find_ready(handle);
    check_movable(dtype);
    if (peer == comm->rank()) {
        fault(family() == Family::Ascend950 ? HCCL_E_NOT_SUPPORT : HCCL_E_PARA,
              "EI0003: %s: a rank cannot send to itself or receive from itself", comm->self().c_str());
    }
    check_rank(*comm, peer, send ? "destRank" : "srcRank");
    check_place(*comm, stream);
    Operation operation;
    operation.transfers.push_back(make_transfer(*comm, send, buffer, count, dtype, peer));
    operation.signature.op = op;
    operation.signature.dtype = dtype;
    operation.signature.bytes = operation.transfers[0].bytes;
    operation.count = count;
    if (in_group()) {
        add_to_group(handle, stream, item);
        return;
    }
    comm->submit(std::move(operation), {peer}, stream);
}

// From CANN 9.0 on a batch of nothing is nothing (on the 950 whatever else is passed), and a rank's own pair has one type.
bool newer_batches() { return cann_version() >= 900; }

// Among the transfers of a batch at most one send and one receive per peer; with itself a rank needs both, and equal.
void check_pairs(const Comm &comm, const std::vector<Transfer> &transfers) {
    std::set<std::pair<bool, uint32_t>> seen;
    const Transfer *self = nullptr;
    uint32_t with_self = 0;
    for (const Transfer &transfer : transfers) {
        if (!seen.insert({transfer.send, transfer.peer}).second) {
            fault(HCCL_E_PARA, "EI0003: two items %s rank %u: one send and one receive per peer are the limit",
                  transfer.send ? "send to" : "receive from", transfer.peer);
        }
        if (transfer.peer == comm.rank()) {
            with_self++;
            if (self != nullptr && newer_batches() && self->dtype != transfer.dtype) {
                fault(HCCL_E_PARA, "EI0003: the rank sends itself %s and receives %s", type_name(self->dtype),
                      type_name(transfer.dtype));
            }
            if (self != nullptr && self->bytes != transfer.bytes) {
                fault(HCCL_E_PARA, "EI0003: the rank sends itself %llu bytes and receives %llu",
                      static_cast<unsigned long long>(self->bytes), static_cast<unsigned long long>(transfer.bytes));
            }
            self = &transfer;
        }
    }
    if (with_self == 1) {
        fault(HCCL_E_PARA, "EI0003: an item with the own rank %u needs its counterpart in the same call", comm.rank());
    }
}

void batch(const HcclSendRecvItem *items, uint32_t count, HcclComm handle, aclrtStream stream) {
    const bool nothing = newer_batches() && nothing_to_do(count, "HcclBatchSendRecv");
    if (nothing && family() == Family::Ascend950) {
        return;
    }
    const std::shared_ptr<Comm> comm = find_ready(handle);
    require(static_cast<char *>(stream), "stream");
    require(items, "sendRecvInfo");
    if (nothing) {
        return;
    }
    if (count == 0 || count > 2 * comm->size()) {
        fault(HCCL_E_PARA, "EI0003: itemNum %u must be from 1 to %u, twice the number of ranks", count,
              2 * comm->size());
    }
    if (family() == Family::Ascend310P) {
        fault(HCCL_E_NOT_SUPPORT, "EI0003: HcclBatchSendRecv is not supported by this processor");
    }
    check_place(*comm, stream);
    Operation operation;
    operation.signature.op = Op::Batch;
    std::set<uint32_t> peers;
    for (uint32_t i = 0; i < count; i++) {
        operation.transfers.push_back(checked_item(*comm, items[i], i));
        operation.signature.bytes += operation.transfers.back().bytes;
        if (items[i].remoteRank != comm->rank()) {
            peers.insert(items[i].remoteRank);
        }
    }
    check_pairs(*comm, operation.transfers);
    operation.signature.dtype = items[0].dataType;
    comm->submit(std::move(operation), {peers.begin(), peers.end()}, stream);
}

} // namespace

HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                    aclrtStream stream) {
    return guarded("HcclSend", [&] {
        if (!nothing_to_do(count, "HcclSend")) {
            transfer(Op::Send, sendBuf, count, dataType, destRank, comm, stream);
        }
    });
}

HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                    aclrtStream stream) {
    return guarded("HcclRecv", [&] {
        if (!nothing_to_do(count, "HcclRecv")) {
            transfer(Op::Recv, recvBuf, count, dataType, srcRank, comm, stream);
        }
    });
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem *sendRecvInfo, uint32_t itemNum, HcclComm comm, aclrtStream stream) {
    return guarded("HcclBatchSendRecv", [&] {
        refuse_in_group("HcclBatchSendRecv");
        batch(sendRecvInfo, itemNum, comm, stream);
    });
}

HcclResult HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                         HcclComm comm, aclrtStream stream) {
    return guarded("HcclAllReduce", [&] {
        if (!nothing_to_do(count, "HcclAllReduce")) {
            collective({Op::AllReduce, sendBuf, recvBuf, count, dataType, op}, comm, stream);
        }
    });
}

HcclResult HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType, HcclComm comm,
                         aclrtStream stream) {
    return guarded("HcclAllGather", [&] {
        if (!nothing_to_do(sendCount, "HcclAllGather")) {
            collective({Op::AllGather, sendBuf, recvBuf, sendCount, dataType}, comm, stream);
        }
    });
}

HcclResult HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
                             HcclComm comm, aclrtStream stream) {
    return guarded("HcclReduceScatter", [&] {
        if (!nothing_to_do(recvCount, "HcclReduceScatter")) {
            collective({Op::ReduceScatter, sendBuf, recvBuf, recvCount, dataType, op}, comm, stream);
        }
    });
}

HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                         aclrtStream stream) {
    return guarded("HcclBroadcast", [&] {
        if (!nothing_to_do(count, "HcclBroadcast")) {
            collective({Op::Broadcast, buf, buf, count, dataType, NO_VALUE, root}, comm, stream);
        }
    });
}

// The result goes to the root, but every rank passes a buffer for it. In a group the vendor's library loses the count and
// reduces nothing.
HcclResult HcclReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                      uint32_t root, HcclComm comm, aclrtStream stream) {
    return guarded("HcclReduce", [&] {
        refuse_in_group("HcclReduce");
        if (!nothing_to_do(count, "HcclReduce")) {
            collective({Op::Reduce, sendBuf, recvBuf, count, dataType, op, root}, comm, stream);
        }
    });
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
    return guarded("HcclBarrier", [&] {
        const std::shared_ptr<Comm> found = find_ready(comm);
        require(static_cast<char *>(stream), "stream");
        if (family() == Family::Ascend310P) {
            fault(HCCL_E_NOT_SUPPORT, "EI0003: HcclBarrier is not supported by this processor");
        }
        check_place(*found, stream);
        Operation operation;
        operation.signature.op = Op::Barrier;
        found->submit(std::move(operation), all_but(*found), stream);
    });
}
