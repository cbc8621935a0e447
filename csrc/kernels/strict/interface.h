// What the strict twin's binary exports besides the kernels.
#ifndef ADASUM_STRICT_INTERFACE_H
#define ADASUM_STRICT_INTERFACE_H

#include <cstdint>

#define ADASUM_STRICT_EXPORT extern "C" __attribute__((visibility("default")))

// How many bytes from an address on are in one allocation of device memory; 0 if it lies in none.
using ascend_mock_finder = int (*)(uint64_t address, uint64_t *left);

// What adasum_strict_count counts: bytes of device memory that are copied in and out, and these copies; vector instructions;
// the repeats of 256 bytes that these take; loads and stores of the scalar unit.
enum {
    ADASUM_STRICT_READ,
    ADASUM_STRICT_WRITTEN,
    ADASUM_STRICT_COPIES,
    ADASUM_STRICT_INSTRUCTIONS,
    ADASUM_STRICT_REPEATS,
    ADASUM_STRICT_SCALARS,
    ADASUM_STRICT_COUNTS
};

// As in every kernel binary of the mock.
ADASUM_STRICT_EXPORT void ascend_mock_set_block(uint64_t index, uint64_t count);
ADASUM_STRICT_EXPORT void ascend_mock_set_finder(ascend_mock_finder find);

// An order of execution: 0 as early as can be, 1 to 6 as late as can be, from 7 on random with that seed; -1, the
// first setting: another one for each block.
ADASUM_STRICT_EXPORT void adasum_strict_schedule(int64_t schedule);
// 0: does not look for races, so that a missing synchronisation shows only in the data.
ADASUM_STRICT_EXPORT void adasum_strict_races(uint64_t on);
// Since the start of the process.
ADASUM_STRICT_EXPORT uint64_t adasum_strict_count(uint64_t what);
// Bytes copied in and out since the last call of this kind, in device memory of which these copies have reached the end
// from `least` bytes before it on or farther: of vectors, where all tables are smaller.
ADASUM_STRICT_EXPORT uint64_t adasum_strict_bytes_of_large(uint64_t least);

#endif
