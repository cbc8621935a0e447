#include "engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "interface.h"

namespace AscendC {
namespace twin {

thread_local int64_t block_index = 0;
thread_local int64_t block_count = 1;

namespace {

constexpr uint32_t EVENTS = static_cast<uint32_t>(HardEvent::MAX);
// Chips before Atlas A2 have four.
#if defined(__NPU_ARCH__) && __NPU_ARCH__ == 1001
constexpr int32_t EVENT_IDS = 4;
#else
constexpr int32_t EVENT_IDS = 8;
#endif
constexpr uint32_t CELL_BYTES = 4;
constexpr uint32_t CELLS = UB_BYTES / CELL_BYTES;
constexpr uint64_t PAGE_BYTES = 512;
constexpr int EXIT_CODE = 70;

const char *const DUTIES[] = {"",       "capacity", "alignment",     "bounds",  "queues",
                              "pipes",  "barriers", "uninitialised", "limits",  "types",
                              "blocks", "flags",    "address space", "receipts"};
const char *const PIPE_NAMES[] = {"scalar unit", "vector unit", "copy in (MTE2)", "copy out (MTE3)"};

// For each pipe the number of its last instruction that is known to be done, then of its last wait that is.
using Clock = std::array<uint32_t, 2 * PIPES>;
constexpr uint32_t WAITS = PIPES;

void join(Clock &clock, const Clock &other) {
    for (uint32_t i = 0; i < clock.size(); ++i) {
        clock[i] = std::max(clock[i], other[i]);
    }
}

struct Ends {
    Pipe source;
    Pipe target;
};

Ends ends(HardEvent event) {
    // In the order of the enumeration.
    static constexpr Ends TABLE[EVENTS] = {
        {COPY_IN, VECTOR}, {VECTOR, COPY_IN}, {COPY_OUT, VECTOR}, {VECTOR, COPY_OUT}, {SCALAR, VECTOR},
        {VECTOR, SCALAR},  {SCALAR, COPY_IN}, {COPY_IN, SCALAR},  {SCALAR, COPY_OUT}, {COPY_OUT, SCALAR}};
    return TABLE[static_cast<uint8_t>(event)];
}

struct Task {
    enum Kind : uint8_t { WORK, SET, WAIT } kind;
    uint8_t event;
    int8_t id;
    Work work;
};

// For each pipe, the number of its last instruction that used a cell of the unified buffer.
using Uses = std::array<std::vector<uint32_t>, PIPES>;

uint32_t first_cell(const Access &access) { return access.begin / CELL_BYTES; }
uint32_t end_cell(const Access &access) { return (access.begin + access.bytes + CELL_BYTES - 1) / CELL_BYTES; }

struct Flag {
    bool up = false;     // in the order of issue
    bool taken = false;  // by AllocEventID, or by a queue
    uint32_t count = 0;  // in the order of execution
    uint32_t waited = 0; // the number of its last wait, among those of the target
    Clock known{};
};

struct DeviceRecord {
    DeviceAccess access;
    int64_t block;
    uint32_t number;
    Pipe pipe;
};

// A copy to where another block has written these bytes.
struct Rewrite {
    Site at;
    uint64_t begin;
    std::vector<uint8_t> before;
};

// The accesses of a launch to device memory, by page. Blocks run one after the other here, but not on a device.
using Pages = std::unordered_map<uint64_t, std::vector<DeviceRecord>>;

struct Settings {
    int64_t schedule = -1; // -1: another one for each block
    bool races = true;     // find races directly
};

Settings settings;
std::atomic<ascend_mock_finder> finder{nullptr}; // ranks may be threads, and each loads the binary
std::atomic<uint64_t> counts[ADASUM_STRICT_COUNTS];

// What copies have reached of an allocation.
struct Reached {
    uint64_t first = UINT64_MAX;
    uint64_t bytes = 0;
};

// By the end of the allocation.
std::mutex reached_lock;
std::unordered_map<uint64_t, Reached> reached_allocations;
thread_local Pages pages;

void count(const DeviceAccess &access) {
    counts[access.write ? ADASUM_STRICT_WRITTEN : ADASUM_STRICT_READ] += access.bytes;
    ++counts[ADASUM_STRICT_COPIES];
    uint64_t left = 0;
    if (finder == nullptr || finder.load()(access.begin, &left) == 0) {
        return;
    }
    std::lock_guard<std::mutex> guard(reached_lock);
    Reached &reached = reached_allocations[access.begin + left];
    reached.first = std::min(reached.first, access.begin);
    reached.bytes += access.bytes;
}

struct Random {
    uint64_t state;
    uint32_t below(uint32_t limit) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<uint32_t>(state >> 33) % limit;
    }
};

// Orders of execution: as early as can be; as late as can be, with each order of the pipes; random ones.
constexpr int64_t EAGER = 0;
constexpr int64_t FIRST_LAZY = 1;
constexpr int64_t FIRST_RANDOM = 7;
constexpr Pipe ORDERS[6][3] = {{COPY_OUT, VECTOR, COPY_IN}, {COPY_OUT, COPY_IN, VECTOR}, {VECTOR, COPY_OUT, COPY_IN},
                               {VECTOR, COPY_IN, COPY_OUT}, {COPY_IN, VECTOR, COPY_OUT}, {COPY_IN, COPY_OUT, VECTOR}};

class Core {
public:
    explicit Core(int64_t schedule) : schedule_(schedule), random_{static_cast<uint64_t>(schedule) * 977 + 13} {
        memory_.resize(UB_BYTES);
        written_.resize(UB_BYTES);
        stored_.resize(UB_BYTES);
        is_stored_.resize(UB_BYTES);
        for (uint32_t pipe = 0; pipe < PIPES; ++pipe) {
            written_by_[pipe].resize(CELLS);
            read_by_[pipe].resize(CELLS);
        }
    }

    uint32_t reserve(uint32_t bytes, Site at) {
        uint32_t rounded = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
        ADASUM_STRICT_CHECK(bytes > 0 && rounded >= bytes, CAPACITY, at, "InitBuffer of %u bytes", bytes);
        ADASUM_STRICT_CHECK(++buffers_ <= MAX_BUFFERS, CAPACITY, at, "InitBuffer: more than %u buffers", MAX_BUFFERS);
        ADASUM_STRICT_CHECK(rounded <= UB_BYTES - used_, CAPACITY, at,
                            "InitBuffer of %u bytes: %u of the %u bytes of the unified buffer are taken", bytes, used_,
                            UB_BYTES);
        used_ += rounded;
        return used_ - rounded;
    }

    void issue(Pipe pipe, Site at, const std::vector<Access> &local, const std::vector<DeviceAccess> &device,
               Work work) {
        hear_scalar(pipe);
        for (const DeviceAccess &access : device) {
            check_receipt(at, access);
        }
        uint32_t number = ++issued_[pipe];
        for (const DeviceAccess &access : device) {
            check_memory(at, access);
        }
        check_races(pipe, at, number, local, device);
        push(pipe, Task{Task::WORK, 0, 0, std::move(work)});
    }

    void issue_silently(Pipe pipe, Work work) { push(pipe, Task{Task::WORK, 0, 0, std::move(work)}); }

    void scalar(Site at, const std::vector<Access> &local) {
        known_[SCALAR][SCALAR] = issued_[SCALAR];
        uint32_t number = ++issued_[SCALAR];
        check_races(SCALAR, at, number, local, {});
    }

    void load(Site at, uint32_t begin, uint32_t bytes, uint8_t *to) {
        scalar(at, {Access{begin, bytes, false}});
        for (uint32_t i = begin; i < begin + bytes; ++i) {
            ADASUM_STRICT_CHECK(is_stored_[i] || written_[i], UNINITIALISED, at,
                                "GetValue of what nothing has written");
            *to++ = is_stored_[i] ? stored_[i] : memory_[i];
        }
    }

    void store(Site at, uint32_t begin, uint32_t bytes, const uint8_t *from) {
        scalar(at, {Access{begin, bytes, true}});
        for (uint32_t i = begin; i < begin + bytes; ++i) {
            stored_[i] = *from++;
            is_stored_[i] = 1;
        }
        stores_.push_back(Access{begin, bytes, true});
        if (schedule_ == EAGER || (schedule_ >= FIRST_RANDOM && random_.below(8) == 0)) {
            show_stores();
        }
    }

    void set_flag(HardEvent event, int32_t id, Site at) {
        Flag &flag = find(event, id, at);
        ADASUM_STRICT_CHECK(!flag.up, FLAGS, at, "a flag is set twice without a wait");
        Pipe source = ends(event).source;
        hear_scalar(source);
        // A queue takes another id for each of its buffers.
        ADASUM_STRICT_CHECK(flag.taken || flag.waited <= known_[source][WAITS + ends(event).target], FLAGS, at,
                            "a flag is set again, and its last wait may not have run");
        flag.up = true;
        flag.known = known_[source];
        flag.known[source] = issued_[source];
        flag.known[WAITS + source] = issued_[WAITS + source];
        if (source == SCALAR) {
            show_stores();
            ++flag.count;
            some_steps();
        } else {
            push(source, Task{Task::SET, static_cast<uint8_t>(event), static_cast<int8_t>(id), nullptr});
        }
    }

    void wait_flag(HardEvent event, int32_t id, Site at) {
        Flag &flag = find(event, id, at);
        ADASUM_STRICT_CHECK(flag.up, FLAGS, at, "a wait for a flag that nothing sets: a deadlock");
        Ends pipes = ends(event);
        flag.up = false;
        flag.waited = ++issued_[WAITS + pipes.target];
        hear_scalar(pipes.target);
        join(known_[pipes.target], flag.known);
        if (pipes.target == SCALAR) {
            while (flag.count == 0) {
                advance(pipes.source, at);
            }
            --flag.count;
            known_[SCALAR][WAITS + SCALAR] = flag.waited;
        } else {
            push(pipes.target, Task{Task::WAIT, static_cast<uint8_t>(event), static_cast<int8_t>(id), nullptr});
        }
    }

    void barrier(Pipe pipe) {
        hear_scalar(pipe);
        known_[pipe][pipe] = issued_[pipe];
    }

    void barrier_of_all(Site at) {
        show_stores();
        drain(at);
        for (Clock &clock : known_) {
            clock = issued_;
        }
    }

    int32_t free_event(HardEvent event, Site at) {
        for (int32_t id = 0; id < EVENT_IDS; ++id) {
            if (!find(event, id, at).taken) {
                return id;
            }
        }
        violated(Duty::FLAGS, at, "all %d ids of an event are in use", EVENT_IDS);
    }

    int32_t take_event(HardEvent event, Site at) {
        int32_t id = free_event(event, at);
        find(event, id, at).taken = true;
        return id;
    }

    void give_event_back(HardEvent event, int32_t id, Site at) {
        Flag &flag = find(event, id, at);
        ADASUM_STRICT_CHECK(flag.taken, FLAGS, at, "ReleaseEventID of an id that was not taken");
        flag.taken = false;
    }

    void start_adding(Site at) {
        ADASUM_STRICT_CHECK(!adding_, RECEIPTS, at, "SetAtomicAdd twice");
        adding_ = true;
    }
    void stop_adding() { adding_ = false; }
    bool is_adding() const { return adding_; }

    void finish(Site at) {
        ADASUM_STRICT_CHECK(!adding_, RECEIPTS, at, "a kernel ends while its copies out still add");
        drain(at);
        for (const Rewrite &rewrite : rewrites_) {
            bool same = std::memcmp(reinterpret_cast<const void *>(rewrite.begin), rewrite.before.data(),
                                    rewrite.before.size()) == 0;
            ADASUM_STRICT_CHECK(same, BLOCKS, rewrite.at, "two blocks write different bytes to the same device memory");
        }
        for (const auto &event : flags_) {
            for (const Flag &flag : event) {
                ADASUM_STRICT_CHECK(!flag.up, FLAGS, at, "a kernel ends with a flag that nothing waits for");
                ADASUM_STRICT_CHECK(!flag.taken, FLAGS, at, "a kernel ends with an event id that was not released");
            }
        }
    }

    uint8_t *memory(uint32_t begin) { return memory_.data() + begin; }
    uint8_t *written(uint32_t begin) { return written_.data() + begin; }
    int64_t schedule() const { return schedule_; }

private:
    Flag &find(HardEvent event, int32_t id, Site at) {
        ADASUM_STRICT_CHECK(id >= 0 && id < EVENT_IDS, FLAGS, at, "event id %d: there are 0 to %d", id, EVENT_IDS - 1);
        return flags_[static_cast<uint8_t>(event)][id];
    }

    // An instruction is issued after all that the scalar unit has waited for. What the scalar unit itself stored or
    // loaded is not known to it: that needs a flag.
    void hear_scalar(Pipe pipe) {
        if (pipe == SCALAR) {
            return;
        }
        Clock heard = known_[SCALAR];
        heard[SCALAR] = 0;
        join(known_[pipe], heard);
    }

    void push(Pipe pipe, Task task) {
        tasks_[pipe].push_back(std::move(task));
        some_steps();
    }

    // Lets the other pipes see what the scalar unit has stored.
    void show_stores() {
        for (const Access &store : stores_) {
            for (uint32_t i = store.begin; i < store.begin + store.bytes; ++i) {
                if (is_stored_[i]) {
                    memory_[i] = stored_[i];
                    written_[i] = 1;
                    is_stored_[i] = 0;
                }
            }
        }
        stores_.clear();
    }

    // Runs the next task of a pipe; false if there is none or it has to wait.
    bool step(Pipe pipe) {
        if (tasks_[pipe].empty()) {
            return false;
        }
        Task &next = tasks_[pipe].front();
        if (next.kind != Task::WORK) {
            uint32_t &count = flags_[next.event][next.id].count;
            if (next.kind == Task::WAIT && count == 0) {
                return false;
            }
            count += next.kind == Task::SET ? 1 : -1;
            tasks_[pipe].pop_front();
            return true;
        }
        Work work = std::move(next.work);
        tasks_[pipe].pop_front();
        work();
        return true;
    }

    // Runs the next task of a pipe, and before it what it waits for.
    void advance(Pipe pipe, Site at) {
        while (!step(pipe)) {
            ADASUM_STRICT_CHECK(!tasks_[pipe].empty(), FLAGS, at, "a wait that never ends: a deadlock");
            advance(ends(static_cast<HardEvent>(tasks_[pipe].front().event)).source, at);
        }
    }

    void some_steps() {
        if (schedule_ == EAGER) {
            while (step(COPY_IN) || step(VECTOR) || step(COPY_OUT)) {
            }
        } else if (schedule_ >= FIRST_RANDOM) {
            for (uint32_t steps = random_.below(4); steps > 0; --steps) {
                step(static_cast<Pipe>(1 + random_.below(3)));
            }
        }
    }

    void drain(Site at) {
        const Pipe *order = ORDERS[schedule_ < FIRST_RANDOM ? (schedule_ + 5) % 6 : random_.below(6)];
        while (step(order[0]) || step(order[1]) || step(order[2])) {
        }
        for (const auto &tasks : tasks_) {
            ADASUM_STRICT_CHECK(tasks.empty(), FLAGS, at, "a wait that never ends: a deadlock");
        }
    }

    // A block signs when all that it wrote is there, and writes nothing afterwards.
    void check_receipt(Site at, const DeviceAccess &access) {
        if (!access.write) {
            return;
        }
        ADASUM_STRICT_CHECK(!signed_, RECEIPTS, at, "a copy out behind the receipt of the block");
        if (access.adds) {
            ADASUM_STRICT_CHECK(known_[COPY_OUT][COPY_OUT] == issued_[COPY_OUT], RECEIPTS, at,
                                "a receipt is written before the copies out that it is for are done");
            signed_ = true;
        }
    }

    void check_memory(Site at, const DeviceAccess &access) const {
        uint64_t left = 0;
        if (finder != nullptr && access.bytes > 0) {
            bool found = finder.load()(access.begin, &left) != 0;
            ADASUM_STRICT_CHECK(found && access.bytes <= left, BOUNDS, at,
                                "%llu bytes of device memory, of which %llu are in an allocation",
                                static_cast<unsigned long long>(access.bytes),
                                static_cast<unsigned long long>(found ? left : 0));
        }
    }

    void check_races(Pipe pipe, Site at, uint32_t number, const std::vector<Access> &local,
                     const std::vector<DeviceAccess> &device) {
        if (!settings.races) {
            return;
        }
        for (const Access &access : local) {
            check_cells(pipe, at, access);
        }
        // Afterwards: an instruction does not race with itself.
        for (const Access &access : local) {
            note_cells(pipe, number, access);
        }
        for (const DeviceAccess &access : device) {
            check_device(pipe, at, number, access);
        }
    }

    // Whether a pipe has used one of the cells without `known` telling that it is done.
    bool unknown(const Uses &uses, Pipe pipe, Pipe other, const Access &access) const {
        const Clock &known = known_[pipe];
        if (issued_[other] - (other == pipe ? 1 : 0) <= known[other]) {
            return false;
        }
        uint32_t last = 0;
        for (uint32_t i = first_cell(access); i < end_cell(access); ++i) {
            last = std::max(last, uses[other][i]);
        }
        return last > known[other];
    }

    void check_cells(Pipe pipe, Site at, const Access &access) const {
        for (Pipe other : {SCALAR, VECTOR, COPY_IN, COPY_OUT}) {
            if (unknown(written_by_, pipe, other, access)) {
                race(pipe, other, at, access.write ? "writes over what the %s writes" : "reads what the %s writes");
            }
            if (access.write && unknown(read_by_, pipe, other, access)) {
                race(pipe, other, at, "writes over what the %s reads");
            }
        }
    }

    void note_cells(Pipe pipe, uint32_t number, const Access &access) {
        uint32_t *cells = (access.write ? written_by_ : read_by_)[pipe].data();
        std::fill(cells + first_cell(access), cells + end_cell(access), number);
    }

    void check_device(Pipe pipe, Site at, uint32_t number, const DeviceAccess &access) {
        for (uint64_t page = access.begin / PAGE_BYTES; page <= (access.begin + access.bytes - 1) / PAGE_BYTES;
             ++page) {
            std::vector<DeviceRecord> &records = pages[page];
            bool seen = false;
            for (DeviceRecord &record : records) {
                const DeviceAccess &other = record.access;
                bool apart = access.begin >= other.begin + other.bytes || other.begin >= access.begin + access.bytes;
                if (!apart && (access.write || other.write) && !(access.adds && other.adds)) {
                    if (record.block != block_index) {
                        check_blocks(at, record, access);
                    } else if (record.number > known_[pipe][record.pipe]) {
                        race(pipe, record.pipe, at, "uses device memory that the %s uses, and one of them writes it");
                    }
                }
                if (record.block == block_index && record.pipe == pipe && other.begin == access.begin &&
                    other.bytes == access.bytes && other.write == access.write && other.adds == access.adds) {
                    record.number = number;
                    seen = true;
                }
            }
            if (!seen) {
                records.push_back(DeviceRecord{access, block_index, number, pipe});
            }
        }
    }

    // Blocks may write the same place only if they write the same bytes to it: `finish` compares them with those there.
    void check_blocks(Site at, const DeviceRecord &record, const DeviceAccess &access) {
        bool same = access.write && record.access.write && access.adds == record.access.adds &&
                    record.access.begin == access.begin && record.access.bytes == access.bytes;
        ADASUM_STRICT_CHECK(same, BLOCKS, at,
                            "blocks %lld and %lld use the same device memory, and one of them writes it",
                            static_cast<long long>(record.block), static_cast<long long>(block_index));
        const auto *bytes = reinterpret_cast<const uint8_t *>(access.begin);
        rewrites_.push_back(Rewrite{at, access.begin, std::vector<uint8_t>(bytes, bytes + access.bytes)});
    }

    [[noreturn]] static void race(Pipe pipe, Pipe other, Site at, const char *what) {
        char text[160];
        std::snprintf(text, sizeof(text), what, PIPE_NAMES[other]);
        if (pipe == VECTOR && other == VECTOR) {
            violated(Duty::BARRIERS, at, "the vector unit %s, without a PipeBarrier between them", text);
        }
        violated(Duty::PIPES, at, "the %s %s, and nothing orders them", PIPE_NAMES[pipe], text);
    }

    std::vector<uint8_t> memory_;
    std::vector<uint8_t> written_;
    Uses written_by_;
    Uses read_by_;
    // What the scalar unit has stored and no one else can see.
    std::vector<uint8_t> stored_;
    std::vector<uint8_t> is_stored_;
    std::vector<Access> stores_;
    std::vector<Rewrite> rewrites_;
    std::deque<Task> tasks_[PIPES];
    Flag flags_[EVENTS][EVENT_IDS];
    Clock known_[PIPES]{};
    Clock issued_{};
    int64_t schedule_;
    Random random_;
    uint32_t used_ = 0;
    uint32_t buffers_ = 0;
    bool adding_ = false;
    bool signed_ = false;
};

thread_local std::unique_ptr<Core> core;

Core &running(Site at) {
    ADASUM_STRICT_CHECK(core != nullptr, QUEUES, at, "the unified buffer is used without a TPipe");
    return *core;
}

int64_t schedule_of_block() {
    if (settings.schedule >= 0) {
        return settings.schedule;
    }
    return (block_index + block_count) % (FIRST_RANDOM + 4);
}

} // namespace

void violated(Duty duty, Site at, const char *rule, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, rule);
    std::vsnprintf(text, sizeof(text), rule, arguments);
    va_end(arguments);
    std::fprintf(stderr, "strict kernel twin: %s:%d: duty %d (%s): %s (block %lld of %lld, schedule %lld)\n", at.file,
                 at.line, static_cast<int>(duty), DUTIES[static_cast<uint8_t>(duty)], text,
                 static_cast<long long>(block_index), static_cast<long long>(block_count),
                 static_cast<long long>(core == nullptr ? -1 : core->schedule()));
    std::fflush(stderr);
    std::_Exit(EXIT_CODE);
}

void open(Site at) {
    ADASUM_STRICT_CHECK(core == nullptr, QUEUES, at, "a kernel has two TPipes at once");
    core.reset(new Core(schedule_of_block()));
    poison(0, UB_BYTES);
}

void close(Site at) {
    running(at).finish(at);
    core.reset();
}

void check_closed(Site at) {
    ADASUM_STRICT_CHECK(core == nullptr, QUEUES, at, "a Trap with an open TPipe: its copies may never be done");
}

uint32_t reserve(uint32_t bytes, Site at) { return running(at).reserve(bytes, at); }

void start_adding(Site at) { running(at).start_adding(at); }
void stop_adding(Site at) { running(at).stop_adding(); }
bool is_adding(Site at) { return running(at).is_adding(); }

void issue(Pipe pipe, Site at, const std::vector<Access> &local, const std::vector<DeviceAccess> &device, Work work) {
    for (const DeviceAccess &access : device) {
        count(access);
    }
    running(at).issue(pipe, at, local, device, std::move(work));
}

void issue_vector(Site at, const std::vector<Access> &local, uint64_t repeats, Work work) {
    ++counts[ADASUM_STRICT_INSTRUCTIONS];
    counts[ADASUM_STRICT_REPEATS] += repeats;
    issue(VECTOR, at, local, {}, std::move(work));
}

void issue_silently(Pipe pipe, Work work) { core->issue_silently(pipe, std::move(work)); }

void scalar_load(Site at, uint32_t begin, uint32_t bytes, void *to) {
    ++counts[ADASUM_STRICT_SCALARS];
    running(at).load(at, begin, bytes, static_cast<uint8_t *>(to));
}

void scalar_store(Site at, uint32_t begin, uint32_t bytes, const void *from) {
    ++counts[ADASUM_STRICT_SCALARS];
    running(at).store(at, begin, bytes, static_cast<const uint8_t *>(from));
}

void set_flag(HardEvent event, int32_t id, Site at) { running(at).set_flag(event, id, at); }
void wait_flag(HardEvent event, int32_t id, Site at) { running(at).wait_flag(event, id, at); }
void barrier(Pipe pipe, Site at) { running(at).barrier(pipe); }
void barrier_of_all(Site at) { running(at).barrier_of_all(at); }
int32_t fetch_event(HardEvent event, Site at) { return running(at).free_event(event, at); }
int32_t take_event(HardEvent event, Site at) { return running(at).take_event(event, at); }
void give_event_back(HardEvent event, int32_t id, Site at) { running(at).give_event_back(event, id, at); }

uint8_t *bytes_at(uint32_t begin) { return core->memory(begin); }

bool initialised(uint32_t begin, uint32_t bytes) {
    return bytes == 0 || std::memchr(core->written(begin), 0, bytes) == nullptr;
}

void mark(uint32_t begin, uint32_t bytes, bool initialised) {
    std::memset(core->written(begin), initialised ? 1 : 0, bytes);
}

void poison(uint32_t begin, uint32_t bytes) {
    static constexpr uint8_t NAN_BYTES[2] = {0xa5, 0x7f};
    uint8_t *memory = core->memory(begin);
    // Whole blocks begin on even places.
    for (uint32_t i = 0; i < bytes; i += 2) {
        std::memcpy(memory + i, NAN_BYTES, bytes - i < 2 ? 1 : 2);
    }
    mark(begin, bytes, false);
}

} // namespace twin
} // namespace AscendC

using namespace AscendC::twin;

// Blocks run in another order than their numbers, as they may on a device.
void ascend_mock_set_block(uint64_t index, uint64_t count) {
    if (index == 0) {
        pages.clear();
    }
    uint64_t step = 1;
    for (uint64_t candidate : {31, 37, 41, 43, 47}) {
        if (count > 1 && count % candidate != 0) {
            step = candidate;
            break;
        }
    }
    block_count = static_cast<int64_t>(count);
    block_index = static_cast<int64_t>((count - 1 - index * step % count) % count);
}

void ascend_mock_set_finder(ascend_mock_finder find) { finder = find; }
void adasum_strict_schedule(int64_t schedule) { settings.schedule = schedule; }
void adasum_strict_races(uint64_t on) { settings.races = on != 0; }
uint64_t adasum_strict_count(uint64_t what) { return counts[what]; }

uint64_t adasum_strict_bytes_of_large(uint64_t least) {
    std::lock_guard<std::mutex> guard(reached_lock);
    uint64_t bytes = 0;
    for (const auto &entry : reached_allocations) {
        if (entry.first - entry.second.first >= least) {
            bytes += entry.second.bytes;
        }
    }
    reached_allocations.clear();
    return bytes;
}
