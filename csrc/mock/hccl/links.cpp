// Building links inside the host call, as the vendor does at the first operation of a kind or with a peer: find the
// peers' blocks (once per communicator and peer), then wait until each peer builds the same kind of link.

#include <algorithm>

#include <poll.h>

#include "calls.h"
#include "comm.h"
#include "socket.h"

namespace mock {
namespace {

constexpr uint32_t HELLO_MAGIC = 0x48434d4b;

// What two members of a communicator tell each other when they meet; the file of the arena travels beside it.
struct Hello {
    uint32_t magic;
    uint32_t from;
    uint32_t to;
    uint32_t refused; // HcclResult, with the reason
    char comm[40];
    char members[40];
    unsigned char identity[16];
    uint64_t arena_bytes;
    uint64_t block_offset;
    uint64_t board_offset;
    char reason[256];
};

// Sends of the lower rank to the higher are another kind of link than the other way round.
uint64_t kind_bit(Op op, uint32_t self, uint32_t peer) {
    const uint32_t SEND_UP = 60;
    const uint32_t SEND_DOWN = 61;
    switch (op) {
    case Op::Send: return 1ULL << (self < peer ? SEND_UP : SEND_DOWN);
    case Op::Recv: return 1ULL << (self < peer ? SEND_DOWN : SEND_UP);
    default: return 1ULL << static_cast<uint32_t>(op);
    }
}

// Only the two ranks of a transfer must agree on it.
bool is_pairwise(Op op) { return op == Op::Send || op == Op::Recv || op == Op::Batch || op == Op::Group; }

class Builder {
public:
    Builder(Comm &comm, Op op, const std::vector<uint32_t> &peers)
        : comm_(comm), op_(op), start_(Clock::now()), limit_(start_ + comm.plan().settings.connect_timeout) {
        for (const uint32_t peer : peers) {
            if ((comm.link(peer).kinds & kind_bit(op, comm.rank(), peer)) == 0) {
                missing_.push_back(peer);
            }
        }
    }

    void run() {
        if (missing_.empty()) {
            return;
        }
        Header &header = comm_.block().header;
        header.building = static_cast<uint32_t>(op_);
        const std::vector<uint32_t> wanted = missing_;
        connect();
        stop_listening_if_done();
        missing_ = wanted;
        agree();
        header.building = static_cast<uint32_t>(Op::None);
    }

private:
    struct Call { // one connection that waits for the other side's hello
        Descriptor socket;
        uint32_t peer; // NO_VALUE for one that was accepted
        pid_t pid;
    };

    void connect();
    void stop_listening_if_done();
    void call(uint32_t peer);
    void accept_all();
    bool answer(Call &call); // true when the call is over
    void greet(const Descriptor &socket, uint32_t peer, HcclResult refused, const std::string &reason);
    void meet(const Hello &hello, const Descriptor &file, pid_t pid);
    void agree();
    bool agreed(uint32_t peer) {
        return (comm_.link(peer).here->kinds.load() & kind_bit(op_, comm_.rank(), peer)) != 0;
    }
    void check(bool late);
    void check_same(uint32_t peer);
    std::string activity(uint32_t peer);

    Comm &comm_;
    const Op op_;
    const Clock::time_point start_;
    const Clock::time_point limit_;
    std::vector<uint32_t> missing_;
    std::vector<Call> calls_;
};

// One loop serves all peers at once: it calls the lower ones, answers the higher ones and looks for threads.
void Builder::connect() {
    int pause_ms = 1;
    for (;;) {
        for (const uint32_t peer : missing_) {
            Link &link = comm_.link(peer);
            if (link.connected || comm_.attach_local(peer) || peer > comm_.rank()) {
                continue;
            }
            if (comm_.by_tcp(peer)) {
                call_peer(comm_, peer, &link.problem);
            } else {
                call(peer);
            }
        }
        accept_all();
        missing_.erase(std::remove_if(missing_.begin(), missing_.end(),
                                      [&](uint32_t peer) { return comm_.link(peer).connected.load(); }),
                       missing_.end());
        if (missing_.empty()) {
            return;
        }
        check(false);
        std::vector<pollfd> files;
        for (const Call &call : calls_) {
            files.push_back({call.socket.get(), POLLIN, 0});
        }
        if (comm_.listener()) {
            files.push_back({comm_.listener().get(), POLLIN, 0});
        }
        poll(files.data(), files.size(), pause_ms);
        pause_ms = std::min(pause_ms * 2, 20);
        calls_.erase(std::remove_if(calls_.begin(), calls_.end(), [&](Call &call) { return answer(call); }),
                     calls_.end());
    }
}

// Only higher ranks call here.
void Builder::stop_listening_if_done() {
    for (uint32_t peer = comm_.rank() + 1; peer < comm_.size(); peer++) {
        if (!comm_.link(peer).connected && !comm_.by_tcp(peer)) {
            return;
        }
    }
    comm_.listener().reset();
}

void Builder::call(uint32_t peer) {
    for (const Call &call : calls_) {
        if (call.peer == peer) {
            return;
        }
    }
    Call made{Descriptor(), peer, 0};
    if (connect_to(comm_.listener_name(peer), &made.socket, &made.pid) == Connect::Done) {
        comm_.link(peer).offered = true;
        greet(made.socket, peer, HCCL_SUCCESS, "");
        calls_.push_back(std::move(made));
    }
}

void Builder::accept_all() {
    while (comm_.listener()) {
        Call made{Descriptor(), NO_VALUE, 0};
        made.socket = accept_from(comm_.listener(), &made.pid);
        if (!made.socket) {
            return;
        }
        calls_.push_back(std::move(made));
    }
}

bool Builder::answer(Call &call) {
    Hello hello;
    Descriptor file;
    const ssize_t length = receive_message(call.socket, &hello, sizeof(hello), &file);
    if (length < 0) {
        return false;
    }
    hello.comm[sizeof(hello.comm) - 1] = '\0';
    hello.members[sizeof(hello.members) - 1] = '\0';
    hello.reason[sizeof(hello.reason) - 1] = '\0';
    if (length != sizeof(hello) || hello.magic != HELLO_MAGIC || hello.to != comm_.rank() ||
        hello.from >= comm_.size() || hello.from == comm_.rank() || comm_.plan().id != hello.comm) {
        return true; // gone, or a stray: whoever it is calls again if it means us
    }
    if (hello.refused != HCCL_SUCCESS) {
        fault(static_cast<HcclResult>(hello.refused), "EI0005: %s refused the link: %s",
              comm_.peer_name(hello.from).c_str(), hello.reason);
    }
    if (comm_.members_digest() != hello.members) {
        const std::string reason = format("%s and %s were created with different lists of ranks",
                                          comm_.peer_name(hello.from).c_str(), comm_.self().c_str());
        greet(call.socket, hello.from, HCCL_E_PARA, reason);
        fault(HCCL_E_PARA, "EI0005: %s", reason.c_str());
    }
    if (call.peer == NO_VALUE) {
        comm_.link(hello.from).offered = true;
        greet(call.socket, hello.from, HCCL_SUCCESS, "");
    }
    meet(hello, file, call.pid);
    return true;
}

void Builder::greet(const Descriptor &socket, uint32_t peer, HcclResult refused, const std::string &reason) {
    Hello hello{};
    hello.magic = HELLO_MAGIC;
    hello.from = comm_.rank();
    hello.to = peer;
    hello.refused = static_cast<uint32_t>(refused);
    copy_text(hello.comm, sizeof(hello.comm), comm_.plan().id);
    copy_text(hello.members, sizeof(hello.members), comm_.members_digest());
    copy_text(hello.reason, sizeof(hello.reason), reason);
    std::memcpy(hello.identity, comm_.arena_view().identity, sizeof(hello.identity));
    hello.arena_bytes = comm_.arena_view().bytes;
    hello.block_offset = comm_.block_offset();
    hello.board_offset = comm_.board_offset();
    send_message(socket, &hello, sizeof(hello), comm_.arena_view().file);
}

void Builder::meet(const Hello &hello, const Descriptor &file, pid_t pid) {
    if (comm_.link(hello.from).connected || comm_.attach_local(hello.from)) {
        return;
    }
    const auto inside = [&](uint64_t offset, uint64_t bytes) {
        return offset <= hello.arena_bytes && bytes <= hello.arena_bytes - offset && offset % alignof(Block) == 0;
    };
    if (!inside(hello.block_offset, Block::bytes(comm_.size())) || !inside(hello.board_offset, sizeof(Board))) {
        fault(HCCL_E_INTERNAL, "EI9999: %s names a place outside its memory", comm_.peer_name(hello.from).c_str());
    }
    const std::string identity(reinterpret_cast<const char *>(hello.identity), sizeof(hello.identity));
    std::string error;
    std::shared_ptr<PeerArena> arena = map_arena(identity, file, hello.arena_bytes, pid, &error);
    if (arena == nullptr) {
        fault(HCCL_E_MEMORY, "EI9999: %s: %s", comm_.peer_name(hello.from).c_str(), error.c_str());
    }
    const auto *board = reinterpret_cast<const Board *>(arena->base() + hello.board_offset);
    comm_.attach(hello.from, arena->base(), arena->bytes(), hello.block_offset, board, arena);
}

// Tells each peer that this kind of link is wanted, and waits until each has said the same.
void Builder::agree() {
    for (const uint32_t peer : missing_) {
        comm_.link(peer).offer(kind_bit(op_, comm_.rank(), peer), op_);
    }
    const std::vector<uint32_t> wanted = missing_;
    wait_for(comm_.block().header.links, [&] {
        missing_.erase(std::remove_if(missing_.begin(), missing_.end(), [&](uint32_t peer) { return agreed(peer); }),
                       missing_.end());
        return static_cast<uint32_t>(missing_.size());
    }, [&](bool late) { check(late); });
    for (const uint32_t peer : wanted) {
        comm_.link(peer).kinds |= kind_bit(op_, comm_.rank(), peer);
    }
}

// Gives up when somebody else has, or when the time is over.
void Builder::check(bool late) {
    if (comm_.closing()) {
        fault(HCCL_E_INTERNAL, "EI9999: %s: the communicator was destroyed while %s built its links",
              comm_.self().c_str(), op_name(op_));
    }
    comm_.check_failed();
    for (const uint32_t peer : missing_) {
        comm_.check_peer(peer, late, [&] { return !agreed(peer); });
        check_same(peer);
    }
    if (Clock::now() < limit_) {
        return;
    }
    std::string text =
        format("EI0006: Getting socket times out. %s: %s waited %.1f s for %s to build links", comm_.self().c_str(),
               op_name(op_), seconds_since(start_), comm_.peer_names(missing_).c_str());
    for (size_t i = 0; i < missing_.size() && i < Comm::MOST_NAMED; i++) {
        text += activity(missing_[i]);
    }
    throw Fault(HCCL_E_TIMEOUT, text);
}

// A peer that waits in another collective than the one whose links are built here will never build them.
void Builder::check_same(uint32_t peer) {
    Post post{};
    if (is_pairwise(op_) || !comm_.awaited(peer, &post) || is_pairwise(post.signature.op) || post.signature.op == op_) {
        return;
    }
    fault(HCCL_E_PARA,
          "EI0005: The parameters of the operation differ between ranks: the next operation of %s is %s, but %s "
          "is in operation %llu, %s",
          comm_.self().c_str(), op_name(op_), comm_.peer_name(peer).c_str(),
          static_cast<unsigned long long>(post.serial), describe(post.signature).c_str());
}

std::string Builder::activity(uint32_t peer) {
    const Link &link = comm_.link(peer);
    if (!link.connected && comm_.by_tcp(peer)) {
        const Member &member = comm_.plan().members[peer];
        const std::string where = comm_.plan().network->address(member.server, member.physical_device);
        return peer > comm_.rank() ? format("; rank %u (%s) has made no call of this communicator", peer, where.c_str())
                                   : format("; rank %u (%s): %s", peer, where.c_str(), link.problem.c_str());
    }
    if (!link.connected) {
        return format("; rank %u has made no call of this communicator", peer);
    }
    const std::string elsewhere = link.elsewhere(comm_.plan().name);
    const auto building = static_cast<Op>(link.header->building.load());
    if (building == Op::None) {
        return format("; rank %u is in no call of this communicator%s", peer, elsewhere.c_str());
    }
    return format("; rank %u builds links for %s", peer, op_name(building));
}

} // namespace

void build_links(Comm &comm, Op op, const std::vector<uint32_t> &peers) {
    const Activity activity(comm.board(), comm.plan().name, op, true, 0);
    try {
        Builder(comm, op, peers).run();
    } catch (const Fault &failure) {
        activity.failed();
        comm.fail(failure.code(), failure.text());
        throw;
    }
}

} // namespace mock
