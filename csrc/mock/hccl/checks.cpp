#include "checks.h"

#include "creation.h"

namespace mock {

std::shared_ptr<Comm> find_ready(HcclComm handle) {
    std::shared_ptr<Comm> comm = find_comm(handle);
    if (comm->suspended) {
        fault(HCCL_E_SUSPENDING, "EI9999: %s is suspended: HcclCommResume ends that", comm->self().c_str());
    }
    return comm;
}

namespace {

constexpr uint64_t MOST_ELEMENTS = 0x7FFFFFFFFULL;

} // namespace

bool nothing_to_do(uint64_t count, const char *function) {
    if (count == 0) {
        warn_once(std::string(function) + " with count 0 does nothing");
    }
    return count == 0;
}

void check_count(uint64_t count) {
    if (count > MOST_ELEMENTS) {
        fault(HCCL_E_PARA, "EI0003: count %llu is larger than %llu", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(MOST_ELEMENTS));
    }
}

void check_rank(const Comm &comm, uint32_t rank, const char *name) {
    if (rank >= comm.size()) {
        fault(HCCL_E_PARA, "EI0003: %s %u: the communicator %s has %u ranks", name, rank, comm.plan().name.c_str(),
              comm.size());
    }
}

void check_place(const Comm &comm, aclrtStream stream) {
    const int device = require_device();
    if (device != comm.device()) {
        fault(HCCL_E_PARA, "EI0003: %s belongs to device %d, this thread works on device %d", comm.self().c_str(),
              comm.device(), device);
    }
    if (!stream_is_usable(stream)) {
        fault(HCCL_E_RUNTIME, "EI9999: the handle is not a live stream of this thread's context");
    }
}

uint64_t check_buffer(const Comm &comm, const void *buffer, uint64_t bytes, uint32_t dtype, const char *name) {
    Region region;
    if (!find_memory(buffer, &region) || (region.device != comm.device() && !region.imported)) {
        fault(HCCL_E_PARA, "EI0003: %s %p is not memory of device %d", name, buffer, comm.device());
    }
    // The library shares buffers with its peers itself, and imported memory is not shared again.
    if (region.imported) {
        fault(HCCL_E_PARA, "EI0003: %s %p is memory of another process", name, buffer);
    }
    if (bytes > region.bytes) {
        fault(HCCL_E_PARA, "EI0003: %s: %llu bytes from %p on, but its allocation ends after %llu", name,
              static_cast<unsigned long long>(bytes), buffer, static_cast<unsigned long long>(region.bytes));
    }
    if (reinterpret_cast<uintptr_t>(buffer) % type_bytes(dtype) != 0) {
        fault(HCCL_E_PARA, "EI0003: %s %p is not aligned to its elements of %u bytes", name, buffer, type_bytes(dtype));
    }
    return region.offset;
}

std::vector<uint32_t> all_but(const Comm &comm) {
    std::vector<uint32_t> peers;
    for (uint32_t rank = 0; rank < comm.size(); rank++) {
        if (rank != comm.rank()) {
            peers.push_back(rank);
        }
    }
    return peers;
}

Transfer checked_item(const Comm &comm, const HcclSendRecvItem &item, uint32_t index) {
    if (item.sendRecvType != HCCL_SEND && item.sendRecvType != HCCL_RECV) {
        fault(HCCL_E_PARA, "EI0003: item %u has sendRecvType %d", index, static_cast<int>(item.sendRecvType));
    }
    require(static_cast<char *>(item.buf), "buf of an item");
    check_movable(item.dataType);
    check_count(item.count);
    check_rank(comm, item.remoteRank, "remoteRank");
    return make_transfer(comm, item.sendRecvType == HCCL_SEND, item.buf, item.count, item.dataType, item.remoteRank);
}

Transfer make_transfer(const Comm &comm, bool send, void *buffer, uint64_t count, uint32_t dtype, uint32_t peer) {
    Transfer transfer;
    transfer.send = send;
    transfer.peer = peer;
    transfer.dtype = dtype;
    transfer.bytes = count * type_bytes(dtype);
    transfer.address = static_cast<char *>(buffer);
    if (transfer.bytes > 0) {
        transfer.offset = check_buffer(comm, buffer, transfer.bytes, dtype, send ? "sendBuf" : "recvBuf");
    }
    return transfer;
}

} // namespace mock
