#include "execution.h"

#include <algorithm>

#include "checks.h"
#include "common.h"
#include "counters.h"

namespace mock {

Execution::Execution(Comm &comm, const Operation &operation, const Cancelled &cancelled)
    : shown(comm.board(), comm.plan().name, operation.signature.op, false, operation.serial), comm_(comm),
      operation_(operation), cancelled_(cancelled), others_(all_but(comm)) {}

// After a failure nobody waits any more for what was asked for, and its place may be gone.
Execution::~Execution() {
    for (const uint32_t peer : fetching_) {
        comm_.link(peer).wire->forget();
    }
}

void Execution::post(uint32_t peer, const Signature &signature, uint64_t offset) {
    Link &link = comm_.link(peer);
    link.post({signature, operation_.serial, offset});
}

bool Execution::has_post(uint32_t peer) const {
    const Link &link = comm_.link(peer);
    return static_cast<int32_t>(link.here->posted.load() - link.taken) > 0;
}

const Post &Execution::take(uint32_t peer, const Signature &expected) {
    Link &link = comm_.link(peer);
    const Post &post = link.here->posts[link.taken % POSTS];
    if (post.signature != expected) {
        Signature own = expected;
        own.op = operation_.signature.op; // a receive expects a send
        fault(HCCL_E_PARA,
              "EI0005: The parameters of the operation differ between ranks: operation %llu of %s is %s, but operation "
              "%llu of %s is %s",
              static_cast<unsigned long long>(operation_.serial), comm_.self().c_str(), describe(own).c_str(),
              static_cast<unsigned long long>(post.serial), comm_.peer_name(peer).c_str(),
              describe(post.signature).c_str());
    }
    link.taken++;
    return post;
}

bool Execution::fetch(uint32_t peer, uint64_t offset, char *target, uint64_t bytes) {
    Link &link = comm_.link(peer);
    if (link.wire == nullptr) {
        copy_bytes(target, read(peer, offset, bytes), bytes);
        count(Counter::CopiedBytes, bytes);
        return true;
    }
    count(Counter::Messages);
    link.fetches++;
    fetching_.insert(peer);
    link.wire->fetch(offset, bytes, target);
    return false;
}

const char *Execution::read(uint32_t peer, uint64_t offset, uint64_t bytes) {
    const Link &link = comm_.link(peer);
    if (link.wire != nullptr) {
        copies_.emplace_back(new char[bytes]);
        fetch(peer, offset, copies_.back().get(), bytes);
        return copies_.back().get();
    }
    count(Counter::Messages);
    count(Counter::TransferredBytes, bytes);
    if (offset > link.arena_bytes || bytes > link.arena_bytes - offset) {
        fault(HCCL_E_INTERNAL, "EI9999: %s names a place outside its memory", comm_.peer_name(peer).c_str());
    }
    return link.base + offset;
}

void Execution::finish() {
    if (fetching_.empty()) {
        return;
    }
    wait({fetching_.begin(), fetching_.end()}, false, "to send its data", [&](uint32_t peer) {
        const Link &link = comm_.link(peer);
        return link.wire->fetched() != link.fetches;
    });
    fetching_.clear();
}

uint64_t Execution::stage(const char *data, uint64_t bytes) {
    const uint64_t offset = comm_.take_stage();
    std::memcpy(comm_.arena() + offset, data, bytes);
    return offset;
}

void Execution::acknowledge(uint32_t peer) { comm_.link(peer).acknowledge(); }

bool Execution::await_posts(const std::vector<uint32_t> &peers, bool any) {
    return wait(peers, any, "to start it", [&](uint32_t peer) { return !has_post(peer); });
}

bool Execution::await_acknowledgements(const std::vector<uint32_t> &peers) {
    const bool there = wait(peers, false, "to take part to the end", [&](uint32_t peer) {
        const Link &link = comm_.link(peer);
        return static_cast<int32_t>(link.here->acknowledged.load() - link.acknowledgements_seen) <= 0;
    });
    if (!there) {
        return false;
    }
    for (const uint32_t peer : peers) {
        comm_.link(peer).acknowledgements_seen++;
    }
    return true;
}

template <class Missing>
bool Execution::wait(std::vector<uint32_t> peers, bool any, const char *what, Missing missing) {
    const size_t all = peers.size();
    const auto count = [&] {
        peers.erase(std::remove_if(peers.begin(), peers.end(), [&](uint32_t peer) { return !missing(peer); }),
                    peers.end());
        if (any) {
            return peers.size() == all && all > 0 ? 1U : 0U;
        }
        return static_cast<uint32_t>(peers.size());
    };
    if (comes_soon([&] { return count() == 0; })) {
        return true;
    }
    if (!may_sleep) {
        return false;
    }
    wait_for(comm_.block().header.operations, count, [&](bool late) {
        for (const uint32_t peer : peers) {
            comm_.check_peer(peer, late, [&] { return missing(peer); });
        }
        check(peers, what);
    });
    return true;
}

// A barrier of the 910A or A3 waits as long as the hardware can; on the A2 its tasks are a graph, which has the usual limit. Source:
// hcomm, src/legacy/ascend910: framework/op_base/src/op_base_host.cc:252, platform/task/dispatcher.cc:296, dispatcher_graph.cc:87,
// framework/device/framework/aicpu_communicator.cc:430.
std::chrono::seconds Execution::limit() const {
    constexpr std::chrono::seconds LONGEST(17340); // of the 910A; the A3 may wait for ever
    const bool unlimited = family() == Family::Ascend910A || family() == Family::Ascend910C;
    return operation_.signature.op == Op::Barrier && unlimited ? LONGEST : comm_.plan().settings.execution_timeout;
}

void Execution::check(const std::vector<uint32_t> &missing, const char *what) const {
    if (cancelled_) {
        fault(HCCL_E_INTERNAL, "EI9999: %s: %s was aborted with its stream", comm_.self().c_str(),
              describe(operation_.signature).c_str());
    }
    comm_.check_failed();
    const std::chrono::seconds most = limit();
    if (most.count() == 0 || Clock::now() - start_ < most) {
        return;
    }
    std::string text =
        format("EI0002: The wait execution of the Notify register times out. %s: operation %llu, %s, "
               "waited %.1f s for %s %s",
               comm_.self().c_str(), static_cast<unsigned long long>(operation_.serial),
               describe(operation_.signature).c_str(), seconds_since(start_), comm_.peer_names(missing).c_str(), what);
    for (size_t i = 0; i < missing.size() && i < Comm::MOST_NAMED; i++) {
        text += activity(missing[i]);
    }
    throw Fault(HCCL_E_TIMEOUT, text);
}

std::string Execution::activity(uint32_t peer) const {
    const Link &link = comm_.link(peer);
    const std::string elsewhere = link.elsewhere(comm_.plan().name); // refreshes the header of a rank reached by TCP
    const Header &header = *link.header;
    const auto executing = static_cast<Op>(header.executing.load());
    const auto serial = static_cast<unsigned long long>(header.serial.load());
    const auto building = static_cast<Op>(header.building.load());
    if (executing == Op::None && building != Op::None) {
        return format("; rank %u builds links for %s", peer, op_name(building));
    }
    if (executing == Op::None) {
        return format("; rank %u runs nothing of this communicator, its last operation was number %llu%s", peer, serial,
                      elsewhere.c_str());
    }
    return format("; rank %u is in its operation %llu, %s", peer, serial, op_name(executing));
}

namespace {

// HCCL_MOCK_FAULT with corrupt: the result of a rank that gets one is wrong; what a rank only gives is wrong for the
// time of the operation.
class Corruption {
public:
    explicit Corruption(const Operation &operation) {
        if (operation.injection.kind != Injection::Kind::Corrupt) {
            return;
        }
        if (operation.scratch != nullptr) { // the transfers bring parts, the result is made of them
            set(operation.recv, operation.count * type_bytes(operation.signature.dtype), false);
            return;
        }
        const Transfer *given = nullptr;
        for (const Transfer &transfer : operation.transfers) {
            if (transfer.bytes > 0 && !transfer.send) {
                set(transfer.address, transfer.bytes, false);
                return;
            }
            given = transfer.bytes > 0 ? &transfer : given;
        }
        if (given != nullptr) {
            set(given->address, given->bytes, true);
        } else if (operation.recv != nullptr) {
            set(operation.recv, operation.signature.bytes, false);
        } else if (operation.send != nullptr) {
            set(const_cast<char *>(operation.send), operation.signature.bytes, true);
        }
    }
    ~Corruption() { corrupt(data_, bytes_); }
    Corruption(const Corruption &) = delete;
    Corruption &operator=(const Corruption &) = delete;

private:
    void set(char *data, uint64_t bytes, bool given) {
        data_ = data;
        bytes_ = bytes;
        if (given) {
            corrupt(data_, bytes_); // the destructor makes it right again
        }
    }
    char *data_ = nullptr;
    uint64_t bytes_ = 0;
};

} // namespace

bool is_staged(const Signature &signature) {
    return (signature.op == Op::AllReduce || signature.op == Op::AllGather) && signature.bytes <= STAGE_BYTES;
}

bool can_be_left(const Signature &signature) {
    return made_of_transfers(signature.op) || is_staged(signature) || brings_nothing(signature.op);
}

bool run_operation(Execution &execution) {
    const Corruption corruption(execution.operation());
    return made_of_transfers(execution.operation().signature.op) ? run_transfers(execution) : run_collective(execution);
}

} // namespace mock
