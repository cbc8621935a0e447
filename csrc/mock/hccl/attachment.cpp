// What a communicator has to do with one peer: where its block lies or which connection leads to it, what is told to it,
// and whether it can still answer.

#include "comm.h"

namespace mock {

void Comm::attach(uint32_t peer, char *base, uint64_t arena_bytes, uint64_t block_offset, const Board *board,
                  std::shared_ptr<PeerArena> process) {
    Link &link = links_[peer];
    link.process = std::move(process);
    link.base = base;
    link.arena_bytes = arena_bytes;
    link.board = board;
    auto *block = reinterpret_cast<Block *>(base + block_offset);
    link.header = &block->header;
    link.there = &block->slots[rank()];
    link.there->attachment = Attachment::Attached;
    link.connected.store(true, std::memory_order_release);
}

std::string Link::elsewhere(const std::string &comm) const {
    return wire != nullptr ? wire->ask_elsewhere() : mock::elsewhere(board, comm);
}

void Link::post(const Post &post) {
    const uint32_t count = ++posted;
    if (wire != nullptr) {
        wire->post(post, count);
        return;
    }
    there->posts[(count - 1) % POSTS] = post;
    there->posted.store(count);
    ring(header->operations);
}

void Link::acknowledge() {
    const uint32_t count = ++acknowledgements_sent;
    if (wire != nullptr) {
        wire->acknowledge(count);
        return;
    }
    there->acknowledged.store(count);
    ring(header->operations);
}

void Link::offer(uint64_t kind, Op building) {
    if (wire != nullptr) {
        wire->offer(kind, static_cast<uint32_t>(building));
        return;
    }
    there->kinds.fetch_or(kind);
    ring(header->links);
}

bool Comm::by_tcp(uint32_t peer) const {
    return plan_.network != nullptr && peer != rank() && plan_.network->by_tcp[plan_.members[peer].server];
}

void Comm::attach_wire(uint32_t peer, Descriptor socket) {
    std::lock_guard<std::mutex> lock(state_);
    if (destroyed_) {
        return;
    }
    Link &link = links_[peer];
    const Member &member = plan_.members[peer];
    link.wire = std::make_shared<Wire>(std::move(socket), plan_.network->address(member.server, member.physical_device),
                                       block_, link.here, arena_, board_, plan_.name);
    link.header = &link.wire->mirror;
    watch(link.wire);
    link.connected.store(true, std::memory_order_release);
}

void Comm::check_peer(uint32_t peer, bool late, const std::function<bool()> &still_missing) {
    Link &link = links_[peer];
    if (!link.connected.load(std::memory_order_acquire)) {
        return;
    }
    const Header &header = *link.header;
    const State state = header.state.load();
    const bool ended = state == State::Alive && late && !link.alive();
    if ((state == State::Alive && !ended) || !still_missing()) {
        return; // what a peer did before it went still counts
    }
    const std::string name = peer_name(peer);
    if (state == State::Failed) {
        // A disagreement has two sides; any other failure is the peer's alone.
        const bool disagreed = header.fault_code == static_cast<uint32_t>(HCCL_E_PARA);
        fault(disagreed ? HCCL_E_PARA : HCCL_E_REMOTE, "%s failed: %s", name.c_str(), header.fault_text);
    }
    if (state == State::Left) {
        fault(HCCL_E_REMOTE, "EI9999: %s destroyed the communicator, but %s still waits for it", name.c_str(),
              self().c_str());
    }
    if (link.wire != nullptr) {
        fault(HCCL_E_REMOTE,
              "EI9999: the connection to %s (%s) was lost (%s), so its process has ended or the network is "
              "gone, but %s still waits for it",
              name.c_str(), link.wire->name().c_str(), link.wire->problem().c_str(), self().c_str());
    }
    fault(HCCL_E_REMOTE, "EI9999: the process of %s (pid %d) has ended, but %s still waits for it", name.c_str(),
          static_cast<int>(link.process->pid()), self().c_str());
}

} // namespace mock
