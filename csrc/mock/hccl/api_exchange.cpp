// Collectives that consist of transfers between pairs of ranks: scatter, all to all, and the forms with one count per
// rank. Transfers without bytes take place too, so that ranks that disagree about counts learn of it.

#include <functional>

#include "checks.h"
#include "group.h"

using namespace mock;

namespace {

void check_common(const Comm &comm, aclrtStream stream, uint32_t dtype) {
    check_movable(dtype);
    check_place(comm, stream);
}

// A place past any memory wraps around; such an address is none.
char *advance(const void *buffer, uint64_t elements, uint32_t dtype) {
    uint64_t bytes = 0;
    uint64_t address = 0;
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(type_bytes(dtype)), &bytes) ||
        __builtin_add_overflow(reinterpret_cast<uint64_t>(buffer), bytes, &address)) {
        fault(HCCL_E_PARA, "EI0003: a displacement of %llu elements is outside any memory",
              static_cast<unsigned long long>(elements));
    }
    return reinterpret_cast<char *>(address);
}

Operation make_operation(Op op, uint32_t dtype) {
    Operation operation;
    operation.signature.op = op;
    operation.signature.dtype = dtype;
    return operation;
}

// What a rank gives or gets, an entry for each rank.
struct Parts {
    const void *buffer;
    uint32_t dtype;
    const uint64_t *counts;
    const uint64_t *places;

    bool empty(uint32_t ranks) const {
        for (uint32_t rank = 0; rank < ranks; rank++) {
            if (counts[rank] != 0) {
                return false;
            }
        }
        return true;
    }
};

void add(Operation *operation, const Comm &comm, bool send, const Parts &parts, uint32_t peer) {
    const uint64_t count = parts.counts[peer];
    check_count(count);
    char *place = count > 0 ? advance(parts.buffer, parts.places[peer], parts.dtype) : nullptr;
    operation->transfers.push_back(make_transfer(comm, send, place, count, parts.dtype, peer));
    operation->signature.bytes += operation->transfers.back().bytes;
}

void require_buffer(const Parts &parts, uint32_t ranks, const char *name) {
    if (!parts.empty(ranks)) {
        require(static_cast<const char *>(parts.buffer), name);
    }
}

void refuse_same(const void *send, const void *recv) {
    if (send == recv && send != nullptr) {
        fault(HCCL_E_PARA, "EI0003: sendBuf and recvBuf cannot be same.");
    }
}

// The 910A needs the counts of all ranks on the host: they are gathered on the stream, for which the host waits. Source: hcomm,
// src/legacy/ascend910, alltoall_operator.cc, JudgeIfNeedPreProcessAndGetParam, and hccl_communicator_host.cc, RegressCalPreOp.
void gather_counts(Comm &comm, aclrtStream stream) {
    if (family() != Family::Ascend910A) {
        return;
    }
    // A fault strikes here, as it comes first, but counts have nothing to corrupt.
    const Injection injection = Injected::take();
    const bool corrupts = injection.kind == Injection::Kind::Corrupt;
    Injected::give(corrupts ? Injection{} : injection);
    Operation operation;
    operation.signature.op = Op::AlltoAllVCounts;
    comm.submit(std::move(operation), all_but(comm), stream);
    const std::chrono::milliseconds limit = comm.plan().settings.execution_timeout;
    const aclError code = aclrtSynchronizeStreamWithTimeout(stream, static_cast<int32_t>(limit.count()));
    if (code != ACL_SUCCESS) {
        fault(HCCL_E_RUNTIME, "EI9999: %s: the stream gave %d while the host waited for the counts of all ranks",
              comm.self().c_str(), code);
    }
    if (corrupts) {
        Injected::give(injection);
    }
}

// Where the two types differ each side counts in its own, but on the 950, which looks at recvType only.
Operation all_to_all(Op op, Parts send, const Parts &recv, const Comm &comm, aclrtStream stream) {
    if (family() == Family::Ascend950) {
        send.dtype = recv.dtype;
    }
    check_common(comm, stream, send.dtype);
    check_movable(recv.dtype);
    refuse_same(send.buffer, recv.buffer);
    require_buffer(send, comm.size(), "sendBuf");
    require_buffer(recv, comm.size(), "recvBuf");
    Operation operation = make_operation(op, send.dtype);
    for (uint32_t peer = 0; peer < comm.size(); peer++) {
        add(&operation, comm, true, send, peer);
        add(&operation, comm, false, recv, peer);
    }
    const uint64_t given = send.counts[comm.rank()] * type_bytes(send.dtype);
    const uint64_t got = recv.counts[comm.rank()] * type_bytes(recv.dtype);
    if (given != got) {
        fault(HCCL_E_PARA, "EI0003: the rank sends itself %llu bytes and receives %llu",
              static_cast<unsigned long long>(given), static_cast<unsigned long long>(got));
    }
    return operation;
}

std::vector<uint64_t> places_of(const std::vector<uint64_t> &counts) {
    std::vector<uint64_t> places(counts.size());
    for (size_t i = 1; i < counts.size(); i++) {
        places[i] = places[i - 1] + counts[i - 1];
    }
    return places;
}

void scatter(void *send, void *recv, uint64_t count, uint32_t dtype, uint32_t root, Comm &comm, aclrtStream stream) {
    check_common(comm, stream, dtype);
    check_rank(comm, root, "root");
    check_count(count);
    Operation operation = make_operation(Op::Scatter, dtype);
    operation.signature.root = root;
    operation.transfers.push_back(make_transfer(comm, false, recv, count, dtype, root));
    operation.signature.bytes = operation.transfers.back().bytes;
    if (comm.rank() != root) {
        comm.submit(std::move(operation), {root}, stream);
        return;
    }
    require(static_cast<char *>(send), "sendBuf");
    const std::vector<uint64_t> counts(comm.size(), count);
    const std::vector<uint64_t> places = places_of(counts);
    for (uint32_t peer = 0; peer < comm.size(); peer++) {
        add(&operation, comm, true, {send, dtype, counts.data(), places.data()}, peer);
    }
    comm.submit(std::move(operation), all_but(comm), stream);
}

void check_counts(const Parts &parts, uint32_t ranks) {
    for (uint32_t rank = 0; rank < ranks; rank++) {
        check_count(parts.counts[rank]);
    }
}

// With counts that are all 0 it is over at once; that comes before what this rank gives is compared.
void all_gather_v(void *send, uint64_t count, const Parts &recv, Comm &comm, aclrtStream stream) {
    check_count(count);
    check_common(comm, stream, recv.dtype);
    check_counts(recv, comm.size());
    if (recv.empty(comm.size())) {
        nothing_to_do(0, "HcclAllGatherV");
        return;
    }
    require(static_cast<const char *>(recv.buffer), "recvBuf");
    refuse_same(send, recv.buffer);
    if (recv.counts[comm.rank()] != count) {
        fault(HCCL_E_PARA, "EI0003: sendCount is %llu, but recvCounts has %llu for this rank",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(recv.counts[comm.rank()]));
    }
    const std::vector<uint64_t> counts(comm.size(), count);
    const std::vector<uint64_t> places(comm.size());
    Operation operation = make_operation(Op::AllGatherV, recv.dtype);
    for (uint32_t peer = 0; peer < comm.size(); peer++) {
        add(&operation, comm, true, {send, recv.dtype, counts.data(), places.data()}, peer);
        add(&operation, comm, false, recv, peer);
    }
    comm.submit(std::move(operation), all_but(comm), stream);
}

void reduce_scatter_v(const Parts &send, void *recv, uint64_t count, uint32_t reduce, Comm &comm, aclrtStream stream) {
    const uint32_t dtype = send.dtype;
    check_count(count);
    check_common(comm, stream, dtype);
    check_reducible(dtype, reduce);
    check_counts(send, comm.size());
    if (send.empty(comm.size())) {
        nothing_to_do(0, "HcclReduceScatterV");
        return;
    }
    require(static_cast<const char *>(send.buffer), "sendBuf");
    if (send.counts[comm.rank()] != count) {
        fault(HCCL_E_PARA, "EI0003: recvCount is %llu, but sendCounts has %llu for this rank",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(send.counts[comm.rank()]));
    }
    refuse_same(send.buffer, recv);
    Operation operation = make_operation(Op::ReduceScatterV, dtype);
    operation.signature.reduce = reduce;
    operation.count = count;
    operation.recv = static_cast<char *>(recv);
    const uint64_t bytes = count * type_bytes(dtype);
    if (count > 0) {
        operation.recv_offset = check_buffer(comm, recv, bytes, dtype, "recvBuf");
    }
    operation.scratch = std::make_shared<std::vector<char>>(bytes * comm.size());
    for (uint32_t peer = 0; peer < comm.size(); peer++) {
        add(&operation, comm, true, send, peer);
        Transfer part;
        part.peer = peer;
        part.dtype = dtype;
        part.bytes = bytes;
        part.address = operation.scratch->data() + peer * bytes;
        operation.transfers.push_back(part);
    }
    comm.submit(std::move(operation), all_but(comm), stream);
}

const uint64_t *counts_of(const void *array, const char *name) {
    require(static_cast<const char *>(array), name);
    return static_cast<const uint64_t *>(array);
}

// Runs it now, or when the group ends.
void run_or_defer(HcclComm comm, aclrtStream stream, uint64_t bytes, bool varying,
                  const std::function<void(Comm &)> &work) {
    require(static_cast<char *>(stream), "stream");
    require(static_cast<char *>(comm), "comm");
    const auto run = [comm, work] { work(*find_ready(comm)); };
    if (!defer_collective(comm, stream, bytes, varying, run)) {
        run();
    }
}

} // namespace

HcclResult HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                       HcclComm comm, aclrtStream stream) {
    return guarded("HcclScatter", [&] {
        if (!nothing_to_do(recvCount, "HcclScatter")) {
            require(static_cast<char *>(recvBuf), "recvBuf");
            run_or_defer(comm, stream, recvCount * type_bytes(dataType), false,
                         [=](Comm &found) { scatter(sendBuf, recvBuf, recvCount, dataType, root, found, stream); });
        }
    });
}

HcclResult HcclAlltoAll(const void *sendBuf, uint64_t sendCount, HcclDataType sendType, const void *recvBuf,
                        uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    return guarded("HcclAlltoAll", [&] {
        if (sendCount == 0 && nothing_to_do(recvCount, "HcclAlltoAll")) {
            return;
        }
        require(static_cast<const char *>(sendBuf), "sendBuf");
        require(static_cast<const char *>(recvBuf), "recvBuf");
        if (sendCount != recvCount) {
            fault(HCCL_E_PARA, "EI0003: sendCount[%llu] and recvCount[%llu] are not equal",
                  static_cast<unsigned long long>(sendCount), static_cast<unsigned long long>(recvCount));
        }
        if (sendType != recvType) {
            fault(HCCL_E_PARA, "EI0003: sendType[%s] and recvType[%s] are not equal", type_name(sendType),
                  type_name(recvType));
        }
        require(static_cast<char *>(stream), "stream");
        require(static_cast<char *>(comm), "comm");
        refuse_same(sendBuf, recvBuf);
        check_count(sendCount);
        run_or_defer(comm, stream, sendCount * type_bytes(sendType), false, [=](Comm &found) {
            const std::vector<uint64_t> counts(found.size(), sendCount);
            const std::vector<uint64_t> places = places_of(counts);
            Operation operation = all_to_all(Op::AlltoAll, {sendBuf, sendType, counts.data(), places.data()},
                                             {recvBuf, sendType, counts.data(), places.data()}, found, stream);
            found.submit(std::move(operation), all_but(found), stream);
        });
    });
}

// In a group the arrays are read when it ends.
HcclResult HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls, HcclDataType sendType,
                         const void *recvBuf, const void *recvCounts, const void *rdispls, HcclDataType recvType,
                         HcclComm comm, aclrtStream stream) {
    return guarded("HcclAlltoAllV", [&] {
        const Parts send{sendBuf, sendType, counts_of(sendCounts, "sendCounts"), counts_of(sdispls, "sdispls")};
        const Parts recv{recvBuf, recvType, counts_of(recvCounts, "recvCounts"), counts_of(rdispls, "rdispls")};
        run_or_defer(comm, stream, 0, true, [=](Comm &found) {
            Operation operation = all_to_all(Op::AlltoAllV, send, recv, found, stream);
            gather_counts(found, stream);
            found.submit(std::move(operation), all_but(found), stream);
        });
    });
}

// Row i of the matrix holds what rank i sends to each rank; data lies without gaps.
HcclResult HcclAlltoAllVC(const void *sendBuf, const void *sendCountMatrix, HcclDataType sendType, const void *recvBuf,
                          HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    return guarded("HcclAlltoAllVC", [&] {
        const uint64_t *matrix = counts_of(sendCountMatrix, "sendCountMatrix");
        run_or_defer(comm, stream, 0, true, [=](Comm &found) {
            const uint32_t ranks = found.size();
            std::vector<uint64_t> sends(ranks);
            std::vector<uint64_t> recvs(ranks);
            for (uint32_t peer = 0; peer < ranks; peer++) {
                sends[peer] = matrix[found.rank() * ranks + peer];
                recvs[peer] = matrix[peer * ranks + found.rank()];
            }
            const std::vector<uint64_t> send_places = places_of(sends);
            const std::vector<uint64_t> recv_places = places_of(recvs);
            Operation operation = all_to_all(Op::AlltoAllV, {sendBuf, sendType, sends.data(), send_places.data()},
                                             {recvBuf, recvType, recvs.data(), recv_places.data()}, found, stream);
            found.submit(std::move(operation), all_but(found), stream);
        });
    });
}

HcclResult HcclAllGatherV(void *sendBuf, uint64_t sendCount, void *recvBuf, const void *recvCounts,
                          const void *recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
    return guarded("HcclAllGatherV", [&] {
        const Parts recv{recvBuf, dataType, counts_of(recvCounts, "recvCounts"), counts_of(recvDispls, "recvDispls")};
        if (sendCount > 0) {
            require(static_cast<char *>(sendBuf), "sendBuf");
        }
        run_or_defer(comm, stream, 0, true,
                     [=](Comm &found) { all_gather_v(sendBuf, sendCount, recv, found, stream); });
    });
}

HcclResult HcclReduceScatterV(void *sendBuf, const void *sendCounts, const void *sendDispls, void *recvBuf,
                              uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                              aclrtStream stream) {
    return guarded("HcclReduceScatterV", [&] {
        const Parts send{sendBuf, dataType, counts_of(sendCounts, "sendCounts"), counts_of(sendDispls, "sendDispls")};
        if (recvCount > 0) {
            require(static_cast<char *>(recvBuf), "recvBuf");
        }
        run_or_defer(comm, stream, 0, true,
                     [=](Comm &found) { reduce_scatter_v(send, recvBuf, recvCount, op, found, stream); });
    });
}
