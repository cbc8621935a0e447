// Collectives that consist of transfers between pairs of ranks: scatter, all to all, and the forms with one count per
// rank. Transfers without bytes take place too, so that ranks that disagree about counts learn of it.

#include "checks.h"

using namespace mock;

namespace {

void check_common(const Comm &comm, aclrtStream stream, uint32_t dtype) {
    require(static_cast<char *>(stream), "stream");
    check_movable(dtype);
    check_place(comm, stream);
}

char *advance(const void *buffer, uint64_t elements, uint32_t dtype) {
    return static_cast<char *>(const_cast<void *>(buffer)) + elements * type_bytes(dtype);
}

Operation make_operation(Op op, uint32_t dtype) {
    Operation operation;
    operation.signature.op = op;
    operation.signature.dtype = dtype;
    return operation;
}

void add(Operation *operation, const Comm &comm, bool send, const void *buffer, uint64_t first, uint64_t count,
         uint32_t peer) {
    check_count(count);
    const uint32_t dtype = operation->signature.dtype;
    operation->transfers.push_back(make_transfer(comm, send, advance(buffer, first, dtype), count, dtype, peer));
    operation->signature.bytes += operation->transfers.back().bytes;
}

// Counts and displacements of one side, one entry per rank.
struct Parts {
    const void *buffer;
    const uint64_t *counts;
    const uint64_t *places;

    uint64_t total(uint32_t ranks) const {
        uint64_t sum = 0;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            sum += counts[rank];
        }
        return sum;
    }
};

void require_buffer(const Parts &parts, uint32_t ranks, const char *name) {
    if (parts.total(ranks) > 0) {
        require(static_cast<const char *>(parts.buffer), name);
    }
}

void refuse_same(const void *send, const void *recv) {
    if (send == recv && send != nullptr) {
        fault(HCCL_E_PARA, "EI0003: sendBuf and recvBuf cannot be same.");
    }
}

void refuse_different(uint32_t send, uint32_t recv) {
    if (send != recv) {
        fault(HCCL_E_PARA, "EI0003: sendType[%s] and recvType[%s] are not equal", type_name(send), type_name(recv));
    }
}

void all_to_all(Op op, const Parts &send, const Parts &recv, uint32_t dtype, Comm &comm, aclrtStream stream) {
    check_common(comm, stream, dtype);
    require_buffer(send, comm.size(), "sendBuf");
    require_buffer(recv, comm.size(), "recvBuf");
    refuse_same(send.buffer, recv.buffer);
    Operation operation = make_operation(op, dtype);
    for (uint32_t peer = 0; peer < comm.size(); peer++) {
        add(&operation, comm, true, send.buffer, send.places[peer], send.counts[peer], peer);
        add(&operation, comm, false, recv.buffer, recv.places[peer], recv.counts[peer], peer);
    }
    if (send.counts[comm.rank()] != recv.counts[comm.rank()]) {
        fault(HCCL_E_PARA, "EI0003: the rank sends itself %llu elements and receives %llu",
              static_cast<unsigned long long>(send.counts[comm.rank()]),
              static_cast<unsigned long long>(recv.counts[comm.rank()]));
    }
    comm.submit(std::move(operation), all_but(comm), stream);
}

std::vector<uint64_t> places_of(const std::vector<uint64_t> &counts) {
    std::vector<uint64_t> places(counts.size());
    for (size_t i = 1; i < counts.size(); i++) {
        places[i] = places[i - 1] + counts[i - 1];
    }
    return places;
}

void scatter(void *send, void *recv, uint64_t count, uint32_t dtype, uint32_t root, Comm &comm, aclrtStream stream) {
    require(static_cast<char *>(recv), "recvBuf");
    check_common(comm, stream, dtype);
    check_rank(comm, root, "root");
    Operation operation = make_operation(Op::Scatter, dtype);
    operation.signature.root = root;
    add(&operation, comm, false, recv, 0, count, root);
    if (comm.rank() != root) {
        comm.submit(std::move(operation), {root}, stream);
        return;
    }
    require(static_cast<char *>(send), "sendBuf");
    for (uint32_t peer = 0; peer < comm.size(); peer++) {
        add(&operation, comm, true, send, peer * count, count, peer);
    }
    comm.submit(std::move(operation), all_but(comm), stream);
}

void all_gather_v(void *send, uint64_t count, const Parts &recv, uint32_t dtype, Comm &comm, aclrtStream stream) {
    check_common(comm, stream, dtype);
    if (recv.counts[comm.rank()] != count) {
        fault(HCCL_E_PARA, "EI0003: sendCount is %llu, but recvCounts has %llu for this rank",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(recv.counts[comm.rank()]));
    }
    if (count > 0) {
        require(static_cast<char *>(send), "sendBuf");
    }
    require_buffer(recv, comm.size(), "recvBuf");
    Operation operation = make_operation(Op::AllGatherV, dtype);
    for (uint32_t peer = 0; peer < comm.size(); peer++) {
        add(&operation, comm, true, send, 0, count, peer);
        add(&operation, comm, false, recv.buffer, recv.places[peer], recv.counts[peer], peer);
    }
    comm.submit(std::move(operation), all_but(comm), stream);
}

void reduce_scatter_v(const Parts &send, void *recv, uint64_t count, uint32_t dtype, uint32_t reduce, Comm &comm,
                      aclrtStream stream) {
    check_common(comm, stream, dtype);
    check_reducible(dtype, reduce);
    if (send.counts[comm.rank()] != count) {
        fault(HCCL_E_PARA, "EI0003: recvCount is %llu, but sendCounts has %llu for this rank",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(send.counts[comm.rank()]));
    }
    require_buffer(send, comm.size(), "sendBuf");
    refuse_same(send.buffer, recv);
    check_count(count);
    Operation operation = make_operation(Op::ReduceScatterV, dtype);
    operation.signature.reduce = reduce;
    operation.count = count;
    operation.recv = static_cast<char *>(recv);
    const uint64_t bytes = count * type_bytes(dtype);
    if (count > 0) {
        require(static_cast<char *>(recv), "recvBuf");
        operation.recv_offset = check_buffer(comm, recv, bytes, dtype, "recvBuf");
    }
    operation.scratch = std::make_shared<std::vector<char>>(bytes * comm.size());
    for (uint32_t peer = 0; peer < comm.size(); peer++) {
        add(&operation, comm, true, send.buffer, send.places[peer], send.counts[peer], peer);
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

} // namespace

HcclResult HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                       HcclComm comm, aclrtStream stream) {
    return guarded("HcclScatter", [&] {
        if (!nothing_to_do(recvCount, "HcclScatter")) {
            scatter(sendBuf, recvBuf, recvCount, dataType, root, *find_ready(comm), stream);
        }
    });
}

HcclResult HcclAlltoAll(const void *sendBuf, uint64_t sendCount, HcclDataType sendType, const void *recvBuf,
                        uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    return guarded("HcclAlltoAll", [&] {
        if (sendCount == 0 && nothing_to_do(recvCount, "HcclAlltoAll")) {
            return;
        }
        const std::shared_ptr<Comm> found = find_ready(comm);
        require(static_cast<const char *>(sendBuf), "sendBuf");
        require(static_cast<const char *>(recvBuf), "recvBuf");
        if (sendCount != recvCount) {
            fault(HCCL_E_PARA, "EI0003: sendCount[%llu] and recvCount[%llu] are not equal",
                  static_cast<unsigned long long>(sendCount), static_cast<unsigned long long>(recvCount));
        }
        refuse_different(sendType, recvType);
        check_count(sendCount);
        const std::vector<uint64_t> counts(found->size(), sendCount);
        const std::vector<uint64_t> places = places_of(counts);
        all_to_all(Op::AlltoAll, {sendBuf, counts.data(), places.data()}, {recvBuf, counts.data(), places.data()},
                   sendType, *found, stream);
    });
}

HcclResult HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls, HcclDataType sendType,
                         const void *recvBuf, const void *recvCounts, const void *rdispls, HcclDataType recvType,
                         HcclComm comm, aclrtStream stream) {
    return guarded("HcclAlltoAllV", [&] {
        const std::shared_ptr<Comm> found = find_ready(comm);
        const Parts send{sendBuf, counts_of(sendCounts, "sendCounts"), counts_of(sdispls, "sdispls")};
        const Parts recv{recvBuf, counts_of(recvCounts, "recvCounts"), counts_of(rdispls, "rdispls")};
        refuse_different(sendType, recvType);
        all_to_all(Op::AlltoAllV, send, recv, sendType, *found, stream);
    });
}

// Row i of the matrix holds what rank i sends to each rank; data lies without gaps.
HcclResult HcclAlltoAllVC(const void *sendBuf, const void *sendCountMatrix, HcclDataType sendType, const void *recvBuf,
                          HcclDataType recvType, HcclComm comm, aclrtStream stream) {
    return guarded("HcclAlltoAllVC", [&] {
        const std::shared_ptr<Comm> found = find_ready(comm);
        const uint64_t *matrix = counts_of(sendCountMatrix, "sendCountMatrix");
        refuse_different(sendType, recvType);
        const uint32_t ranks = found->size();
        std::vector<uint64_t> sends(ranks);
        std::vector<uint64_t> recvs(ranks);
        for (uint32_t peer = 0; peer < ranks; peer++) {
            sends[peer] = matrix[found->rank() * ranks + peer];
            recvs[peer] = matrix[peer * ranks + found->rank()];
        }
        const std::vector<uint64_t> send_places = places_of(sends);
        const std::vector<uint64_t> recv_places = places_of(recvs);
        all_to_all(Op::AlltoAllV, {sendBuf, sends.data(), send_places.data()},
                   {recvBuf, recvs.data(), recv_places.data()}, sendType, *found, stream);
    });
}

HcclResult HcclAllGatherV(void *sendBuf, uint64_t sendCount, void *recvBuf, const void *recvCounts,
                          const void *recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
    return guarded("HcclAllGatherV", [&] {
        const std::shared_ptr<Comm> found = find_ready(comm);
        const Parts recv{recvBuf, counts_of(recvCounts, "recvCounts"), counts_of(recvDispls, "recvDispls")};
        all_gather_v(sendBuf, sendCount, recv, dataType, *found, stream);
    });
}

HcclResult HcclReduceScatterV(void *sendBuf, const void *sendCounts, const void *sendDispls, void *recvBuf,
                              uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                              aclrtStream stream) {
    return guarded("HcclReduceScatterV", [&] {
        const std::shared_ptr<Comm> found = find_ready(comm);
        const Parts send{sendBuf, counts_of(sendCounts, "sendCounts"), counts_of(sendDispls, "sendDispls")};
        reduce_scatter_v(send, recvBuf, recvCount, dataType, op, *found, stream);
    });
}
