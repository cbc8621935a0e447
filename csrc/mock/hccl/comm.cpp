#include "comm.h"

#include "calls.h"
#include "counters.h"
#include "execution.h"
#include "registry.h"
#include "socket.h"

namespace mock {
namespace {

// Codes from here on are those of the runtime, not of HCCL.
constexpr int FIRST_RUNTIME_CODE = 100000;

std::atomic<bool> some_failed{false};

// The code that a synchronisation of the stream returns. Of a peer that has failed or gone the vendor's library learns by
// waiting in vain; here a rank learns at once, with the code that the runtime has for trouble at the other end.
aclError stream_code(HcclResult code) {
    switch (code) {
    case HCCL_E_TIMEOUT: return ACL_ERROR_RT_FFTS_PLUS_TIMEOUT;
    case HCCL_E_REMOTE: return ACL_ERROR_RT_SUSPECT_REMOTE_ERROR;
    default: return ACL_ERROR_RT_FFTS_PLUS_EXCEPTION;
    }
}

std::string name_of(const CommPlan &plan) {
    const uint32_t world_rank = plan.members[plan.rank].world_rank;
    const std::string text =
        format("communicator %s, rank %u of %zu", plan.name.c_str(), plan.rank, plan.members.size());
    return world_rank == plan.rank ? text : text + format(" (world rank %u)", world_rank);
}

} // namespace

// Notes an operation from its submission until it has run or was dropped. The last one of a destroyed communicator takes
// down what it needed.
class Comm::Pending {
public:
    Pending(std::shared_ptr<Comm> comm, Operation operation)
        : comm_(std::move(comm)), operation_(std::move(operation)) {
        std::lock_guard<std::mutex> lock(comm_->state_);
        comm_->pending_.emplace(operation_.serial, operation_.signature);
    }
    ~Pending() {
        if (!ended_) {
            if (begun()) {
                execution_->shown.failed();
                comm_->leave(operation_);
            }
            const std::string why = drop_reason().empty() ? "was aborted" : "had failed: " + drop_reason();
            comm_->fail(HCCL_E_INTERNAL,
                        format("EI9999: %s: %s never %s, because its stream %s", comm_->self().c_str(),
                               describe(operation_.signature).c_str(), begun() ? "ended" : "ran", why.c_str()));
        }
        execution_.reset();
        bool last = false;
        {
            std::lock_guard<std::mutex> lock(comm_->state_);
            comm_->pending_.erase(operation_.serial);
            last = comm_->destroyed_ && comm_->pending_.empty();
        }
        if (last) {
            comm_->retire();
        }
    }
    Pending(const Pending &) = delete;
    Pending &operator=(const Pending &) = delete;

    Outcome run(const Cancelled &cancelled) {
        Outcome outcome;
        go_on(cancelled, true, &outcome);
        return outcome;
    }

    // What can be done of it without sleep; true if that is all.
    bool attempt(const Cancelled &cancelled, Outcome *outcome) { return go_on(cancelled, false, outcome); }

    const Operation &operation() const { return operation_; }
    bool begun() const { return execution_ != nullptr; }
    // As it runs.
    Execution &execution(const Cancelled &cancelled) {
        if (execution_ == nullptr) {
            execution_ = std::make_unique<Execution>(*comm_, operation_, cancelled);
        }
        return *execution_;
    }

private:
    bool go_on(const Cancelled &cancelled, bool may_sleep, Outcome *outcome) {
        ended_ = comm_->execute(*this, cancelled, may_sleep, outcome);
        if (ended_) {
            execution_.reset();
            if (cancelled && outcome->code != ACL_SUCCESS) {
                comm_->leave(operation_);
            }
        }
        return ended_;
    }

    std::shared_ptr<Comm> comm_;
    Operation operation_;
    std::unique_ptr<Execution> execution_;
    bool ended_ = false;
};

// Adds to the host calls that are in the communicator; takes one away while it builds links.
class Comm::InUse {
public:
    InUse(Comm &comm, int calls) : comm_(comm), calls_(calls) { comm_.in_use_ += calls_; }
    ~InUse() { comm_.in_use_ -= calls_; }
    InUse(const InUse &) = delete;
    InUse &operator=(const InUse &) = delete;

private:
    Comm &comm_;
    const int calls_;
};

Comm::Comm(CommPlan plan) : plan_(std::move(plan)), self_(name_of(plan_)), links_(new Link[plan_.members.size()]) {
    std::string error;
    if (!mock::arena_view(device(), &arena_, &error)) {
        fault(HCCL_E_MEMORY, "EI0007: %s", error.c_str());
    }
    share_cores(size());
    Registry::instance().add(plan_, [this] { return take_block(); });
}

LocalMember Comm::take_block() {
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
    return {arena_.base, arena_.bytes, block_offset_, board_};
}

Comm::~Comm() { destroy(); }

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
    const InUse in_use(*this, 1);
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
        check_context();
        take_buffers();
        operation.on_ai_cpus = runs_on_ai_cpus(operation.signature.op == Op::Group);
        if (operation.on_ai_cpus) {
            stop_context_on_failure();
        }
        const InUse building(*this, -1);
        build_links(*this, operation.signature.op, peers);
    }
    hold(operation.injection);
    const std::string name = describe(operation.signature) + " of " + self();
    std::lock_guard<std::mutex> submitting(submitting_);
    check_order(operation, stream);
    operation.serial = serial_++;
    last_signature_ = operation.signature;
    auto pending = std::make_shared<Pending>(shared_from_this(), std::move(operation));
    Attempt attempt;
    if (can_be_left(pending->operation().signature) && !pending->operation().injection && all_mapped()) {
        attempt = [pending](const Cancelled &cancelled, Outcome *outcome) {
            return pending->attempt(cancelled, outcome);
        };
    }
    const aclError code = enqueue(
        stream, name, [pending](const Cancelled &cancelled) { return pending->run(cancelled); }, attempt, &last_);
    if (code != ACL_SUCCESS) {
        fault(HCCL_E_RUNTIME, "EI9999: %s: the stream takes no task (%d)", self().c_str(), code);
    }
    count(Counter::CollectiveCalls);
}

// Its own streams are made at the first operation that goes to another rank, and belong to the context of that call.
void Comm::check_context() {
    const void *context = current_context_handle();
    if (context_ == nullptr) {
        context_ = context;
    }
    if (context != context_) {
        fault(HCCL_E_RUNTIME,
              "EI9999: %s has its streams in another context than this thread's: its first operation was called "
              "there",
              self().c_str());
    }
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
    const std::string text = format(
        "EI0003: %s: operation %llu, %s, is on another stream than operation %llu, %s, and nothing orders the two: no "
        "wait for an event, no synchronisation of the host",
        self().c_str(), static_cast<unsigned long long>(serial_), describe(operation.signature).c_str(),
        static_cast<unsigned long long>(serial_ - 1), describe(last_signature_).c_str());
    fail(HCCL_E_PARA, text);
    throw Fault(HCCL_E_PARA, text);
}

bool Comm::all_mapped() const {
    for (uint32_t peer = 0; peer < size(); peer++) {
        if (by_tcp(peer)) {
            return false;
        }
    }
    return true;
}

// False if it has to go on later, which only happens if it may not sleep.
bool Comm::execute(Pending &pending, const Cancelled &cancelled, bool may_sleep, Outcome *outcome) {
    std::unique_lock<std::mutex> lock(running_, std::defer_lock);
    if (may_sleep) {
        lock.lock();
    } else if (!lock.try_lock()) {
        return false;
    }
    const bool first = !pending.begun();
    {
        std::lock_guard<std::mutex> state(state_);
        if (under_work_) {
            *outcome = failed_outcome();
            return true;
        }
    }
    const Operation &operation = pending.operation();
    Execution &execution = pending.execution(cancelled);
    try {
        if (size() > 1 && first) { // alone it needs nothing of the communicator
            check_failed();
        }
        block_->header.serial = operation.serial;
        block_->header.executing = static_cast<uint32_t>(operation.signature.op);
        const auto start = Clock::now();
        if (operation.injection) {
            const std::string what = describe(operation.signature) + " of " + self();
            const Outcome struck = strike(operation.injection, what, cancelled, &closing_);
            if (struck.code != ACL_SUCCESS) {
                fail(HCCL_E_INTERNAL, struck.text);
                std::lock_guard<std::mutex> state(state_);
                *outcome = destroyed_ ? failed_outcome() : struck;
                return true;
            }
        }
        execution.may_sleep = may_sleep;
        if (!run_operation(execution)) {
            return false;
        }
        slow_down(operation.injection, start, cancelled);
        block_->header.executing = static_cast<uint32_t>(Op::None);
        return true;
    } catch (const Fault &failure) {
        fail(failure.code(), failure.text());
    } catch (const std::exception &error) {
        fail(HCCL_E_INTERNAL, format("EI9999: %s: %s", self().c_str(), error.what()));
    }
    execution.shown.failed();
    std::lock_guard<std::mutex> state(state_);
    *outcome = failed_outcome();
    return true;
}

// An operation whose stream was aborted. The AI CPUs go on with it, on streams of HCCL's own, and only the end of the communicator ends
// that. Source: hcomm, src/legacy/ascend910, framework/communicator/impl/hccl_communicator_host.cc:7960,
// framework/device/framework/aicpu_communicator.cc:478.
void Comm::leave(const Operation &operation) {
    if (!operation.on_ai_cpus) {
        return;
    }
    std::lock_guard<std::mutex> lock(state_);
    if (destroyed_) {
        return;
    }
    const std::string why = self() + " still works on it: " + describe(operation.signature) +
                            ", whose stream was aborted, goes on until HcclCommDestroy";
    std::vector<const char *> memory{operation.send, operation.recv};
    for (const Transfer &transfer : operation.transfers) {
        memory.push_back(transfer.bytes > 0 ? transfer.address : nullptr);
    }
    for (const char *address : memory) {
        if (address != nullptr) {
            held_.push_back(hold_memory(address, why));
        }
    }
}

// Needs the lock. What runs on after the end of its communicator uses memory that is no more: the code is that of an
// access to memory that is not there.
Outcome Comm::failed_outcome() { return {under_work_ ? ACL_ERROR_RT_SUSPECT_REMOTE_ERROR : stream_code(code_), text_}; }

bool Comm::awaited(uint32_t peer, Post *post) {
    const Link &link = links_[peer];
    std::lock_guard<std::mutex> lock(state_);
    if (!link.connected || !pending_.empty() || static_cast<int32_t>(link.here->posted.load() - link.taken) <= 0) {
        return false;
    }
    *post = link.here->posts[link.taken % POSTS];
    return true;
}

bool Comm::any_failed() { return some_failed; }

void Comm::fail(HcclResult code, const std::string &text) {
    some_failed = true;
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

// Only the network tells of a peer that is gone. Source: hcomm, src/legacy/ascend910, heartbeat.cc:1995 (CheckErrorCqe).
HcclResult Comm::asynchronous_error() {
    std::lock_guard<std::mutex> lock(state_);
    return code_ == HCCL_E_REMOTE && !all_mapped() ? HCCL_E_REMOTE : HCCL_SUCCESS;
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
    return Registry::instance().with_member(plan_.id, peer, [&](const LocalMember &member) {
        attach(peer, member.base, member.arena_bytes, member.block_offset, member.board, nullptr);
    });
}

void Comm::destroy() {
    if (in_use_ > 0) {
        fault(HCCL_E_AGAIN, "EI9999: %s: a call of another thread is in it", self().c_str());
    }
    closing_ = true;
    alarm_everybody();
    std::lock_guard<std::mutex> host(host_); // a call that builds links has seen the alarm
    bool idle = false;
    {
        std::lock_guard<std::mutex> lock(state_);
        if (destroyed_) {
            return;
        }
        destroyed_ = true;
        for (const uint64_t number : held_) {
            let_go_of_memory(device(), number);
        }
        idle = pending_.empty();
        if (buffers_taken_) {
            give_memory(device(), buffer_bytes());
        }
        if (code_ == HCCL_SUCCESS) {
            block_->header.state = State::Left;
        }
        code_ = HCCL_E_PARA;
        text_ = "EI0003: the communicator was destroyed";
        if (!idle && size() > 1) {
            under_work_ = true;
            text_ =
                "EI0012: " + self() + " was destroyed while its operations were queued or running: " + pending_names();
        }
    }
    if (!idle && size() > 1) {
        count(Counter::DestroyedUnderWork);
        warn_once(text_ + "; on an NPU they go on without its buffers and links, and fault");
    }
    alarm_everybody();
    hide_from_calls(*this);
    Registry::instance().remove(plan_);
    if (idle) {
        retire();
    }
}

// "HcclAllReduce (4096 bytes, fp32, sum), ...", needs the lock.
std::string Comm::pending_names() const {
    constexpr size_t MOST = 4;
    std::string text;
    size_t named = 0;
    for (const auto &entry : pending_) {
        if (named == MOST) {
            return text + format(" and %zu more", pending_.size() - MOST);
        }
        text += (named++ == 0 ? "" : ", ") + describe(entry.second);
    }
    return text;
}

// Gives back what operations need, when none is left.
void Comm::retire() {
    if (retired_.exchange(true)) {
        return;
    }
    RetiredBlock block{device(), block_offset_, {}};
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
        block.watchers.push_back({link.here, connected || link.offered, link.process});
        if (connected) {
            link.there->attachment = Attachment::Detached;
            link.connected = false;
        }
    }
    listener_.reset();
    plan_.claim.reset();
    plan_.network.reset();
    Registry::instance().retire(std::move(block));
}

} // namespace mock
