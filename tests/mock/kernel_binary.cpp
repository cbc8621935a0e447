// A kernel binary for the mock, as programs of these tests load it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

namespace {
thread_local uint64_t block_index;
thread_local uint64_t block_count;
thread_local const char *fault;
std::atomic<int (*)(uint64_t, uint64_t *)> find; // ranks may be threads, and each loads the binary
} // namespace

extern "C" {

void ascend_mock_set_block(uint64_t index, uint64_t count) {
    block_index = index;
    block_count = count;
}

void ascend_mock_set_finder(int (*finder)(uint64_t, uint64_t *)) { find = finder; }

const char *ascend_mock_take_fault() {
    const char *told = fault;
    fault = nullptr;
    return told;
}

// Sets `bytes` bytes to 1, as far as they are device memory; an NPU would raise an exception.
void touch(uint64_t address, uint64_t bytes) {
    uint64_t left = 0;
    if (find.load()(address, &left) == 0 || left < bytes) {
        fault = "not device memory";
        return;
    }
    auto *values = reinterpret_cast<unsigned char *>(address);
    for (uint64_t i = 0; i < bytes; i++) {
        values[i] = 1;
    }
}

// Sets a word to the number of the thread that runs it.
void tell_thread(uint64_t out) { *reinterpret_cast<uint64_t *>(out) = static_cast<uint64_t>(syscall(SYS_gettid)); }

// Sets a word to 1 and takes its time.
void take_time(uint64_t begun, uint64_t ms) {
    reinterpret_cast<std::atomic<uint64_t> *>(begun)->store(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// data[i] += step for the elements of this block.
void add_step(uint64_t data, uint64_t count, uint64_t step) {
    auto *values = reinterpret_cast<uint32_t *>(data);
    for (uint64_t i = block_index; i < count; i += block_count) {
        values[i] += static_cast<uint32_t>(step);
    }
}

// out[i] = the sum of element i of the vectors whose addresses are in the table.
void sum_vectors(uint64_t out, uint64_t table, uint64_t vectors, uint64_t count) {
    auto *sums = reinterpret_cast<uint32_t *>(out);
    const auto *places = reinterpret_cast<const uint64_t *>(table);
    for (uint64_t i = block_index; i < count; i += block_count) {
        uint32_t sum = 0;
        for (uint64_t vector = 0; vector < vectors; vector++) {
            sum += reinterpret_cast<const uint32_t *>(places[vector])[i];
        }
        sums[i] = sum;
    }
}

struct Tiling {
    uint32_t data[4];
};

// out[0] = sum of a small struct that travels with the launch.
void sum_tiling(uint64_t out, uint64_t tiling) {
    uint32_t sum = 0;
    for (const uint32_t value : reinterpret_cast<const Tiling *>(tiling)->data) {
        sum += value;
    }
    *reinterpret_cast<uint32_t *>(out) = sum;
}
}
