#include "comm.h"

#include <list>
#include <set>

#include "calls.h"
#include "counters.h"
#include "socket.h"

namespace mock {
namespace {

// Blocks of destroyed communicators whose peers may still look at them.
struct Retired {
    struct Watcher {
        Slot *slot;
        bool expected; // the peer was given the block's place
        std::shared_ptr<PeerArena> process;
    };
    int device;
    uint64_t offset;
    std::vector<Watcher> watchers;

    bool in_use() const {
        for (const Watcher &watcher : watchers) {
            const Attachment attachment = watcher.slot->attachment.load();
            const bool expected = watcher.expected || attachment == Attachment::Attached;
            const bool alive = watcher.process == nullptr || watcher.process->alive();
            if (expected && attachment != Attachment::Detached && alive) {
                return true;
            }
        }
        return false;
    }
};

// A member that is a thread of this process.
struct LocalMember {
    char *base;
    uint64_t arena_bytes;
    uint64_t block_offset;
    const Board *board;
};

struct Comms {
    std::mutex mutex;
    std::map<HcclComm, std::shared_ptr<Comm>> handles;
    std::map<std::pair<std::string, uint32_t>, LocalMember> members;
    std::set<std::pair<int, std::string>> names; // per device
    std::list<Retired> retired;
};

Comms &comms() {
    static Comms &object = *new Comms;
    return object;
}

void free_retired(Comms &all) {
    for (auto block = all.retired.begin(); block != all.retired.end();) {
        if (block->in_use()) {
            ++block;
        } else {
            control_free(block->device, block->offset);
            block = all.retired.erase(block);
        }
    }
}

// Codes from here on are those of the runtime, not of HCCL.
constexpr int FIRST_RUNTIME_CODE = 100000;

// The code that a synchronisation of the stream returns.
aclError stream_code(HcclResult code) {
    return code == HCCL_E_TIMEOUT ? ACL_ERROR_RT_FFTS_PLUS_TIMEOUT : ACL_ERROR_RT_FFTS_PLUS_EXCEPTION;
}

} // namespace

// Counts an operation from its submission until it has run or was dropped.
class Comm::Pending {
public:
    Pending(std::shared_ptr<Comm> comm, Operation operation) : comm_(std::move(comm)), operation_(std::move(operation)) {
        comm_->pending_++;
    }
    ~Pending() {
        if (!ran_) {
            const std::string why = drop_reason().empty() ? "was aborted" : "had failed: " + drop_reason();
            comm_->fail(HCCL_E_INTERNAL, format("EI9999: %s: %s never ran, because its stream %s", comm_->self().c_str(),
                                                describe(operation_.signature).c_str(), why.c_str()));
        }
        comm_->pending_--;
    }
    Pending(const Pending &) = delete;
    Pending &operator=(const Pending &) = delete;

    Outcome run(const Cancelled &cancelled) {
        ran_ = true;
        return comm_->execute(operation_, cancelled);
    }

private:
    std::shared_ptr<Comm> comm_;
    Operation operation_;
    bool ran_ = false;
};

Comm::Comm(CommPlan plan) : plan_(std::move(plan)), links_(new Link[plan_.members.size()]) {
    std::string error;
    if (!mock::arena_view(device(), &arena_, &error)) {
        fault(HCCL_E_MEMORY, "EI0007: %s", error.c_str());
    }
    Comms &all = comms();
    std::lock_guard<std::mutex> lock(all.mutex);
    free_retired(all);
    if (all.names.count({device(), plan_.name}) != 0) {
        fault(HCCL_E_PARA, "EI0003: The comm name[%s] already exists in Group2Comm map", plan_.name.c_str());
    }
    if (all.members.count({plan_.id, rank()}) != 0) {
        fault(HCCL_E_PARA, "EI0003: %s: another thread of this process is that rank already", self().c_str());
    }
    if (rank() + 1 < size()) {
        listener_ = listen_on(listener_name(rank()));
        if (!listener_) {
            fault(HCCL_E_PARA, "EI0003: %s: another process is that rank already", self().c_str());
        }
    }
    if (!control_allocate(device(), Block::bytes(size()), &block_offset_)) {
        fault(HCCL_E_MEMORY, "EI0007: device %d has no room for one more communicator of %u ranks", device(), size());
    }
    block_ = reinterpret_cast<Block *>(arena_.base + block_offset_);
    board_ = board_of(device(), arena_.base, &board_offset_);
    for (uint32_t peer = 0; peer < size(); peer++) {
        links_[peer].here = &block_->slots[peer];
    }
    all.names.insert({device(), plan_.name});
    all.members[{plan_.id, rank()}] = {arena_.base, arena_.bytes, block_offset_, board_};
}

Comm::~Comm() { destroy(); }

std::string Comm::self() const {
    std::string text = format("communicator %s, rank %u of %u", plan_.name.c_str(), rank(), size());
    if (plan_.members[rank()].world_rank != rank()) {
        text += format(" (world rank %u)", plan_.members[rank()].world_rank);
    }
    return text;
}

std::string Comm::peer_name(uint32_t peer) const {
    const uint32_t world = plan_.members[peer].world_rank;
    return world == peer ? format("rank %u", peer) : format("rank %u (world rank %u)", peer, world);
}

std::string Comm::peer_names(const std::vector<uint32_t> &peers) const {
    std::string text;
    for (size_t i = 0; i < peers.size() && i < MOST_NAMED; i++) {
        text += (i == 0 ? "" : ", ") + peer_name(peers[i]);
    }
    return peers.size() > MOST_NAMED ? text + format(" and %zu more", peers.size() - MOST_NAMED) : text;
}

std::string Comm::members_digest() const {
    std::string text;
    for (const Member &member : plan_.members) {
        text += std::to_string(member.world_rank) + ",";
    }
    return digest(text);
}

void Comm::submit(Operation operation, const std::vector<uint32_t> &peers, aclrtStream stream) {
    check_failed();
    operation.injection = Injected::take();
    if (operation.injection.kind == Injection::Kind::Error && operation.injection.code < FIRST_RUNTIME_CODE) {
        const auto code = static_cast<HcclResult>(operation.injection.code);
        const Outcome outcome = strike(operation.injection, describe(operation.signature) + " of " + self(), closing_);
        fail(code, outcome.text);
        throw Fault(code, outcome.text);
    }
    if (!peers.empty()) {
        std::lock_guard<std::mutex> lock(host_);
        take_buffers();
        build_links(*this, operation.signature.op, peers);
    }
    const std::string name = describe(operation.signature) + " of " + self();
    std::lock_guard<std::mutex> submitting(submitting_);
    check_order(operation, stream);
    operation.serial = serial_++;
    last_signature_ = operation.signature;
    auto pending = std::make_shared<Pending>(shared_from_this(), std::move(operation));
    const aclError code =
        enqueue(stream, name, [pending](const Cancelled &cancelled) { return pending->run(cancelled); }, &last_);
    if (code != ACL_SUCCESS) {
        fault(HCCL_E_RUNTIME, "EI9999: %s: the stream takes no task (%d)", self().c_str(), code);
    }
    count(Counter::CollectiveCalls);
}

// The vendor's library keeps two buffers per communicator, allocated at the first operation that goes to another rank.
void Comm::take_buffers() {
    constexpr int VERSION_WITH_OOM = 900;
    if (buffers_taken_) {
        return;
    }
    if (!take_memory(device(), buffer_bytes())) {
        fault(cann_version() >= VERSION_WITH_OOM ? HCCL_E_OOM : HCCL_E_MEMORY,
              "EI0007: %s: device %d has no memory left for its two buffers of %u MB (HCCL_BUFFSIZE, hcclBufferSize)",
              self().c_str(), device(), plan_.settings.buffer_mb);
    }
    buffers_taken_ = true;
}

// The client has to order the operations of a communicator; the vendor's library does not look, and data gets corrupted.
void Comm::check_order(const Operation &operation, aclrtStream stream) {
    if (ordered_after(stream, last_)) {
        return;
    }
    const std::string text =
        format("EI0003: %s: operation %llu, %s, is on another stream than operation %llu, %s, and nothing orders the two: no "
               "wait for an event, no synchronisation of the host", self().c_str(),
               static_cast<unsigned long long>(serial_), describe(operation.signature).c_str(),
               static_cast<unsigned long long>(serial_ - 1), describe(last_signature_).c_str());
    fail(HCCL_E_PARA, text);
    throw Fault(HCCL_E_PARA, text);
}

Outcome Comm::execute(const Operation &operation, const Cancelled &cancelled) {
    std::lock_guard<std::mutex> lock(running_);
    const Activity activity(board_, plan_.name, operation.signature.op, false, operation.serial);
    try {
        check_failed();
        block_->header.serial = operation.serial;
        block_->header.executing = static_cast<uint32_t>(operation.signature.op);
        const auto start = Clock::now();
        if (operation.injection) {
            const std::string what = describe(operation.signature) + " of " + self();
            const Outcome struck = strike(operation.injection, what, cancelled);
            if (struck.code != ACL_SUCCESS) {
                fail(HCCL_E_INTERNAL, struck.text);
                return struck;
            }
        }
        run_operation(*this, operation, cancelled);
        slow_down(operation.injection, start, cancelled);
        block_->header.executing = static_cast<uint32_t>(Op::None);
        return {};
    } catch (const Fault &failure) {
        fail(failure.code(), failure.text());
    } catch (const std::exception &error) {
        fail(HCCL_E_INTERNAL, format("EI9999: %s: %s", self().c_str(), error.what()));
    }
    activity.failed();
    return failed_outcome();
}

Outcome Comm::failed_outcome() {
    std::lock_guard<std::mutex> lock(state_);
    return {stream_code(code_), text_};
}

void Comm::fail(HcclResult code, const std::string &text) {
    {
        std::lock_guard<std::mutex> lock(state_);
        if (code_ != HCCL_SUCCESS || destroyed_) {
            return;
        }
        code_ = code;
        text_ = text;
        Header &header = block_->header;
        header.fault_code = static_cast<uint32_t>(code);
        copy_text(header.fault_text, sizeof(header.fault_text), text);
        header.state = State::Failed;
    }
    alarm_everybody();
}

void Comm::check_failed() {
    std::lock_guard<std::mutex> lock(state_);
    if (code_ != HCCL_SUCCESS) {
        throw Fault(code_, text_);
    }
}

HcclResult Comm::asynchronous_error() {
    std::lock_guard<std::mutex> lock(state_);
    return code_ == HCCL_E_REMOTE ? HCCL_E_REMOTE : HCCL_SUCCESS;
}

uint32_t Comm::next_generation(const std::string &name) {
    std::lock_guard<std::mutex> lock(state_);
    return generations_[name]++;
}

void Comm::alarm_everybody() {
    alarm(block_->header.links);
    alarm(block_->header.operations);
    for (uint32_t peer = 0; peer < size(); peer++) {
        const Link &link = links_[peer];
        if (link.connected.load(std::memory_order_acquire)) {
            if (link.wire != nullptr && block_->header.state != State::Alive) {
                link.wire->tell_state(block_->header);
            }
            alarm(link.header->links);
            alarm(link.header->operations);
        }
    }
}

bool Comm::attach_local(uint32_t peer) {
    if (by_tcp(peer)) {
        return false;
    }
    Comms &all = comms();
    std::lock_guard<std::mutex> lock(all.mutex); // the peer cannot give its block back meanwhile
    const auto found = all.members.find({plan_.id, peer});
    if (found == all.members.end()) {
        return false;
    }
    attach(peer, found->second.base, found->second.arena_bytes, found->second.block_offset, found->second.board,
           nullptr);
    return true;
}

void Comm::destroy() {
    closing_ = true;
    alarm_everybody();
    std::lock_guard<std::mutex> host(host_); // a call that builds links has seen the alarm
    if (pending_ > 0) {
        closing_ = false;
        fault(HCCL_E_AGAIN, "EI9999: %s: %d operations have not ended; synchronise their stream first", self().c_str(),
              pending_.load());
    }
    {
        std::lock_guard<std::mutex> lock(state_);
        if (destroyed_) {
            return;
        }
        destroyed_ = true;
        if (buffers_taken_) {
            give_memory(device(), buffer_bytes());
        }
        if (code_ == HCCL_SUCCESS) {
            block_->header.state = State::Left;
        }
        code_ = HCCL_E_PARA;
        text_ = "EI0003: the communicator was destroyed";
    }
    alarm_everybody();
    hide_from_calls(*this);
    Comms &all = comms();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.members.erase({plan_.id, rank()});
    all.names.erase({device(), plan_.name});
    Retired retired{device(), block_offset_, {}};
    for (uint32_t peer = 0; peer < size(); peer++) {
        Link &link = links_[peer];
        const bool connected = link.connected.load(std::memory_order_acquire);
        if (by_tcp(peer)) {
            if (connected) {
                link.wire->close();
                link.connected = false;
            }
            continue;
        }
        retired.watchers.push_back({link.here, connected || link.offered, link.process});
        if (connected) {
            link.there->attachment = Attachment::Detached;
            link.connected = false;
        }
    }
    all.retired.push_back(std::move(retired));
    listener_.reset();
    plan_.claim.reset();
    plan_.network.reset();
    free_retired(all);
}

HcclComm publish(std::shared_ptr<Comm> comm) {
    if (comm->plan().network != nullptr) {
        answer_calls(comm);
    }
    Comms &all = comms();
    std::lock_guard<std::mutex> lock(all.mutex);
    HcclComm handle = comm.get();
    all.handles[handle] = std::move(comm);
    return handle;
}

std::shared_ptr<Comm> find_comm(HcclComm handle) {
    require(static_cast<char *>(handle), "comm");
    Comms &all = comms();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.handles.find(handle);
    if (found == all.handles.end()) {
        fault(HCCL_E_PARA, "EI0003: the handle is not a live communicator");
    }
    return found->second;
}

void unpublish(HcclComm handle) {
    std::shared_ptr<Comm> last; // its end needs the lock itself
    Comms &all = comms();
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.handles.find(handle);
    if (found != all.handles.end()) {
        last = std::move(found->second);
        all.handles.erase(found);
    }
}

} // namespace mock
