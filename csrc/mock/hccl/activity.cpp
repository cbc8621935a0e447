#include "activity.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace mock {
namespace {

std::string name_of(const Board::Entry &entry) {
    char name[Board::WORDS * 8 + 1] = {};
    for (uint32_t i = 0; i < Board::WORDS; i++) {
        const uint64_t word = entry.comm[i].load(std::memory_order_relaxed);
        std::memcpy(name + i * 8, &word, sizeof(word));
    }
    return name;
}

std::string describe_entry(const Board::Entry &entry, const std::string &comm, bool failed) {
    const auto op = static_cast<Op>(entry.op.load());
    const std::string name = name_of(entry);
    if (op == Op::None || name == comm.substr(0, Board::WORDS * 8)) {
        return {};
    }
    if (entry.building != 0) {
        return format(", %s links for %s of communicator %s", failed ? "could not build" : "builds", op_name(op),
                      name.c_str());
    }
    return format(", %s %s, operation %llu of communicator %s", failed ? "has failed in" : "is in", op_name(op),
                  static_cast<unsigned long long>(entry.serial.load()), name.c_str());
}

void set_name(Board::Entry *entry, const std::string &name) {
    char bytes[Board::WORDS * 8] = {};
    std::memcpy(bytes, name.data(), std::min(name.size(), sizeof(bytes)));
    for (uint32_t i = 0; i < Board::WORDS; i++) {
        uint64_t word;
        std::memcpy(&word, bytes + i * 8, sizeof(word));
        entry->comm[i].store(word, std::memory_order_relaxed);
    }
}

} // namespace

Board *board_of(int device, char *arena, uint64_t *offset) {
    static std::mutex &mutex = *new std::mutex;
    static auto &offsets = *new std::map<int, uint64_t>; // boards stay as long as the process
    std::lock_guard<std::mutex> lock(mutex);
    const auto known = offsets.find(device);
    if (known == offsets.end()) {
        if (!control_allocate(device, sizeof(Board), offset)) {
            return nullptr;
        }
        offsets[device] = *offset;
    }
    *offset = offsets[device];
    return reinterpret_cast<Board *>(arena + *offset);
}

Activity::Activity(Board *board, const std::string &comm, Op op, bool building, uint64_t serial) : board_(board) {
    for (uint32_t i = 0; board != nullptr && i < Board::ENTRIES && entry_ == nullptr; i++) {
        Board::Entry &entry = board->entries[i];
        uint32_t free = 0;
        if (entry.used.compare_exchange_strong(free, 1)) {
            entry_ = &entry;
        }
    }
    if (entry_ != nullptr) {
        set_name(entry_, comm);
        entry_->building = building ? 1 : 0;
        entry_->serial = serial;
        entry_->op = static_cast<uint32_t>(op);
    }
}

Activity::~Activity() {
    if (entry_ != nullptr) {
        entry_->op = static_cast<uint32_t>(Op::None);
        entry_->used = 0;
    }
}

void Activity::failed() const {
    if (entry_ != nullptr) {
        Board::Entry &kept = board_->failed;
        set_name(&kept, name_of(*entry_));
        kept.building = entry_->building.load();
        kept.serial = entry_->serial.load();
        kept.op = entry_->op.load();
    }
}

std::string elsewhere(const Board *board, const std::string &comm) {
    std::string text;
    for (uint32_t i = 0; board != nullptr && i < Board::ENTRIES; i++) {
        text += describe_entry(board->entries[i], comm, false);
    }
    return board != nullptr ? text + describe_entry(board->failed, comm, true) : text;
}

} // namespace mock
