// Runs kernels of a twin on a fixed problem, without the mock: kernel_driver NAME... [--no-races] | --bytes
//
// For each kernel it prints a digest of what the kernel wrote. Under the strict twin the kernel runs in every order of
// execution that the twin has, and all must agree. Only the kernels that are linked in can be named.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layout.h"

using namespace adasum;

extern "C" {
#define WEAK __attribute__((weak))
WEAK void gram(uint8_t *vectors, uint8_t *segments, uint8_t *partials, uint64_t radix, uint64_t dtype,
               uint64_t segment_count, uint64_t unit_count);
WEAK void fold(uint8_t *partials, uint8_t *segments, uint8_t *records, uint64_t radix, uint64_t segment_count);
WEAK void coefficients(uint8_t *records, uint8_t *references, uint8_t *indices, uint8_t *out, uint64_t radix,
                       uint64_t tensor_count, uint64_t rule);
WEAK void weighted_sum(uint8_t *vectors, uint8_t *segments, uint8_t *coefficients, uint8_t *out, uint64_t radix,
                       uint64_t dtype, uint64_t segment_count, uint64_t unit_count);
void ascend_mock_set_block(uint64_t index, uint64_t count);
// Of the strict twin only.
WEAK void ascend_mock_set_finder(int (*find)(uint64_t address, uint64_t *left));
WEAK void adasum_strict_schedule(int64_t schedule);
WEAK void adasum_strict_races(uint64_t on);
WEAK uint64_t adasum_strict_bytes(uint64_t what);
}

namespace {

constexpr int64_t SCHEDULES = 12;
constexpr uint64_t BLOCKS = 2;

// Device memory: allocations of exactly as many bytes as were asked for.
std::map<uint64_t, uint64_t> allocations;

int find_memory(uint64_t address, uint64_t *left) {
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin()) {
    return 0;
  }
  --next;
  if (address - next->first >= next->second) {
    return 0;
  }
  *left = next->first + next->second - address;
  return 1;
}

template <typename T>
class Memory {
 public:
  explicit Memory(const std::vector<T> &values) : values_(values) {
    allocations[reinterpret_cast<uint64_t>(values_.data())] = values_.size() * sizeof(T);
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() { allocations.erase(reinterpret_cast<uint64_t>(values_.data())); }

  uint8_t *address() { return reinterpret_cast<uint8_t *>(values_.data()); }
  uint64_t number() const { return reinterpret_cast<uint64_t>(values_.data()); }
  const std::vector<T> &values() const { return values_; }

 private:
  std::vector<T> values_;
};

// A number in -1..1 that depends on both keys only.
float noise(uint64_t a, uint64_t b) {
  uint64_t state = 0x9e3779b97f4a7c15ULL ^ (a * 0xbf58476d1ce4e5b9ULL + b);
  for (int i = 0; i < 3; ++i) {
    state = (state ^ (state >> 29)) * 0x94d049bb133111ebULL;
  }
  return static_cast<float>(state >> 40) / 8388608.0F - 1.0F;
}

struct Problem {
  std::vector<uint64_t> segments;  // words of the table
  uint64_t segment_count = 0;
  uint64_t units = 0;
  uint64_t elements = 0;

  void add(uint64_t len, uint64_t gap) {
    elements += gap;
    const uint64_t words[SEGMENT_WORDS] = {elements, len, units, segment_count};
    segments.insert(segments.end(), words, words + SEGMENT_WORDS);
    elements += len;
    units += (len + UNIT - 1) / UNIT;
    ++segment_count;
  }
};

// Every kind of length, then more segments than the kernels' windows hold.
Problem small_problem() {
  Problem problem;
  for (uint64_t len : {0, 1, 3, 17, 64, 65, 255, 511, 512, 513, 4095, 4096, 4097, 9000, 0, 20000}) {
    problem.add(len, 5);
  }
  for (uint64_t i = 0; i < 300; ++i) {
    problem.add(i % 5, 0);
  }
  return problem;
}

uint32_t bytes_of(uint64_t dtype) { return dtype == DTYPE_FLOAT ? 4 : 2; }

// Element `at` of vector `index`, times a power of ten where the type has room for it.
uint32_t element_of(uint64_t dtype, uint64_t index, uint64_t at, float scale) {
  uint32_t bits;
  float value = noise(index, at) * scale;
  std::memcpy(&bits, &value, sizeof(bits));
  if (dtype == DTYPE_FLOAT) {
    return bits;
  }
  // Any 16 bits are a number, but for the largest exponents: here from 2^-5 to 2^6.
  return dtype == DTYPE_BF16 ? bits >> 16 : ((bits >> 8) & 0x83ff) | ((10 + bits % 12) << 10);
}

// Vector `index` of the problem: segments of all magnitudes, one that is zero, one with a NaN.
std::vector<uint8_t> vector_of(const Problem &problem, uint64_t index, uint64_t dtype) {
  uint32_t bytes = bytes_of(dtype);
  std::vector<uint8_t> values(problem.elements * bytes);
  for (uint64_t segment = 0; segment < problem.segment_count; ++segment) {
    const uint64_t *words = &problem.segments[segment * SEGMENT_WORDS];
    uint64_t len = words[SEGMENT_LEN];
    bool zero = len == 513 && index == 1;
    float scale = len == 9000 ? 1e30F : len == 4097 ? 1e-30F : 1.0F;
    for (uint64_t i = 0; i < len && !zero; ++i) {
      uint64_t at = words[SEGMENT_OFFSET] + i;
      uint32_t bits = element_of(dtype, index, at, scale);
      if (dtype == DTYPE_FLOAT && len == 255 && index == 0 && i == 7) {
        bits = 0x7fc00000;
      }
      std::memcpy(&values[at * bytes], &bits, bytes);
    }
  }
  return values;
}

std::vector<float> untouched(uint64_t count) { return std::vector<float>(count, -7.0F); }

// Records with all kinds of exponents.
std::vector<float> made_records(uint64_t count, uint32_t radix) {
  static const float exponents[] = {0.0F, 84.0F, -85.0F, 0.0F, -1024.0F};
  std::vector<float> records(count * record_words(radix));
  for (uint64_t i = 0; i < count; ++i) {
    float *record = &records[i * record_words(radix)];
    for (uint32_t entry = 0; entry < entries(radix); ++entry) {
      record[2 * entry] = 2.0F + noise(i, entry);
      record[2 * entry + 1] = noise(i, entry + 100) * 0x1p-26F;
    }
    for (uint32_t vector = 0; vector < radix; ++vector) {
      float exponent = exponents[(i * 3 + vector) % 5];
      record[record_exponents(radix) + vector] = exponent;
      for (uint32_t other = 0; exponent < -1000.0F && other < radix; ++other) {
        uint32_t entry = vector < other ? entry_index(vector, other, radix) : entry_index(other, vector, radix);
        record[2 * entry] = 0.0F;
        record[2 * entry + 1] = 0.0F;
      }
    }
    record[record_flags(radix)] = i % 41 == 40 ? 1.0F : 0.0F;
  }
  return records;
}

template <typename Run>
void on_blocks(uint64_t blocks, Run run) {
  for (uint64_t block = 0; block < blocks; ++block) {
    ascend_mock_set_block(block, blocks);
    run();
  }
}

using Output = std::vector<uint32_t>;

// What a kernel wrote, element by element. The sign and the payload of a NaN differ between processors.
template <typename T>
Output output_of(const Memory<T> &memory, uint64_t dtype) {
  uint32_t bytes = bytes_of(dtype);
  const auto *from = reinterpret_cast<const uint8_t *>(memory.values().data());
  Output output(memory.values().size() * sizeof(T) / bytes);
  for (size_t i = 0; i < output.size(); ++i) {
    std::memcpy(&output[i], from + i * bytes, bytes);
    bool is_nan = dtype == DTYPE_FLOAT && (output[i] & 0x7fffffff) > 0x7f800000;
    output[i] = is_nan ? 0x7fc00000 : output[i];
  }
  return output;
}

void append(Output &all, const Output &more) { all.insert(all.end(), more.begin(), more.end()); }

// The vectors of a problem in device memory, and the table of their addresses.
struct Vectors {
  Vectors(const Problem &problem, uint32_t radix, uint64_t dtype) {
    std::vector<uint64_t> addresses;
    for (uint32_t i = 0; i < radix; ++i) {
      memory.emplace_back(new Memory<uint8_t>(vector_of(problem, i, dtype)));
      addresses.push_back(memory.back()->number());
    }
    table.reset(new Memory<uint64_t>(addresses));
  }

  std::vector<std::unique_ptr<Memory<uint8_t>>> memory;
  std::unique_ptr<Memory<uint64_t>> table;
};

Output gram_of(const Problem &problem, uint32_t radix, uint64_t dtype) {
  Vectors vectors(problem, radix, dtype);
  Memory<uint64_t> segments(problem.segments);
  Memory<float> partials(untouched(problem.units * record_words(radix)));
  on_blocks(BLOCKS, [&] {
    gram(vectors.table->address(), segments.address(), partials.address(), radix, dtype, problem.segment_count,
         problem.units);
  });
  return output_of(partials, DTYPE_FLOAT);
}

Output run_gram() {
  Output result = gram_of(small_problem(), 2, DTYPE_FLOAT);
  Problem few;
  for (uint64_t len : {0, 1, 7, 65, 511, 513, 4097, 9000}) {
    few.add(len, 5);
  }
  append(result, gram_of(few, 2, DTYPE_FLOAT16));
  append(result, gram_of(few, 3, DTYPE_BF16));
  append(result, gram_of(few, 3, DTYPE_FLOAT));
  Problem least;
  least.add(5, 3);
  least.add(1500, 0);
  append(result, gram_of(least, 8, DTYPE_FLOAT));
  return result;
}

Output run_fold() {
  Problem problem = small_problem();
  problem.add(600 * UNIT, 0);
  Memory<uint64_t> segments(problem.segments);
  Memory<float> partials(made_records(problem.units, 2));
  Memory<float> records(untouched(problem.segment_count * record_words(2)));
  on_blocks(BLOCKS, [&] {
    fold(partials.address(), segments.address(), records.address(), 2, problem.segment_count);
  });
  return output_of(records, DTYPE_FLOAT);
}

Output run_coefficients() {
  constexpr uint64_t TENSORS = 150;
  Memory<float> records(made_records(300, 2));
  std::vector<uint64_t> references;
  std::vector<uint64_t> indices;
  for (uint64_t tensor = 0; tensor < TENSORS; ++tensor) {
    uint64_t count = tensor == 100 ? 200 : tensor % 3;
    references.insert(references.end(), {indices.size(), count});
    for (uint64_t i = 0; i < count; ++i) {
      indices.push_back((tensor * 7 + i * 11) % 300);
    }
  }
  Memory<uint64_t> reference_table(references);
  Memory<uint64_t> index_table(indices);
  Memory<float> out(untouched(TENSORS * COEFFICIENT_WORDS));
  on_blocks(BLOCKS, [&] {
    coefficients(records.address(), reference_table.address(), index_table.address(), out.address(), 2, TENSORS, 0);
  });
  return output_of(out, DTYPE_FLOAT);
}

Output sum_of(const Problem &problem, uint32_t radix, uint64_t dtype, bool in_place) {
  Vectors vectors(problem, radix, dtype);
  std::vector<float> weights(problem.segment_count * COEFFICIENT_WORDS);
  for (uint64_t tensor = 0; tensor < problem.segment_count; ++tensor) {
    float *words = &weights[tensor * COEFFICIENT_WORDS];
    for (uint32_t i = 0; i < MAX_RADIX; ++i) {
      words[COEFFICIENT_WEIGHT + i] = noise(tensor, i);
      words[COEFFICIENT_SCALE + i] = tensor % 4 == 1 ? 0.5F : 1.0F;
    }
    words[COEFFICIENT_POST] = tensor % 3 == 1 ? 2.0F : 1.0F;
  }
  Memory<uint64_t> segments(problem.segments);
  Memory<float> table(weights);
  Memory<uint8_t> apart(std::vector<uint8_t>(problem.elements * bytes_of(dtype), 0xc1));
  Memory<uint8_t> &out = in_place ? *vectors.memory[0] : apart;
  on_blocks(BLOCKS, [&] {
    weighted_sum(vectors.table->address(), segments.address(), table.address(), out.address(), radix, dtype,
                 problem.segment_count, problem.units);
  });
  return output_of(out, dtype);
}

Output run_weighted_sum() {
  Problem problem = small_problem();
  Output result = sum_of(problem, 2, DTYPE_FLOAT, true);
  append(result, sum_of(problem, 3, DTYPE_FLOAT, false));
  append(result, sum_of(problem, 2, DTYPE_FLOAT16, true));
  append(result, sum_of(problem, 3, DTYPE_BF16, false));
  Problem few;
  for (uint64_t len : {3, 0, 4097, 1500}) {
    few.add(len, 2);
  }
  append(result, sum_of(few, 1, DTYPE_FLOAT, false));
  append(result, sum_of(few, 8, DTYPE_FLOAT, false));
  return result;
}

uint64_t digest_of(const Output &output) {
  uint64_t digest = 0xcbf29ce484222325ULL;
  for (uint32_t word : output) {
    digest = (digest ^ word) * 0x100000001b3ULL;
  }
  return digest;
}

struct Kernel {
  const char *name;
  bool linked;
  Output (*run)();
};

bool run(const Kernel &kernel) {
  bool strict = adasum_strict_schedule != nullptr;
  uint64_t digest = 0;
  for (int64_t schedule = 0; schedule < (strict ? SCHEDULES : 1); ++schedule) {
    if (strict) {
      adasum_strict_schedule(schedule);
    }
    uint64_t next = digest_of(kernel.run());
    if (schedule > 0 && next != digest) {
      std::printf("%s: schedule %lld gives other data\n", kernel.name, static_cast<long long>(schedule));
      return false;
    }
    digest = next;
  }
  std::printf("%s %016llx\n", kernel.name, static_cast<unsigned long long>(digest));
  return true;
}

// Bytes of device memory that the kernels copied in and out, for one large tensor: kernel, bytes of an element, radix,
// elements, bytes in, bytes out.
void print_bytes() {
  Problem problem;
  problem.add(64 * UNIT + 7, 0);
  adasum_strict_schedule(0);
  for (uint64_t dtype : {DTYPE_FLOAT, DTYPE_BF16}) {
    for (uint32_t radix = 1; radix <= MAX_RADIX; ++radix) {
      for (bool is_gram : {false, true}) {
        if (is_gram && radix < 2) {
          continue;
        }
        uint64_t before[2] = {adasum_strict_bytes(0), adasum_strict_bytes(1)};
        if (is_gram) {
          gram_of(problem, radix, dtype);
        } else {
          sum_of(problem, radix, dtype, false);
        }
        std::printf("%s %u %u %llu %llu %llu\n", is_gram ? "gram" : "weighted_sum", bytes_of(dtype), radix,
                    static_cast<unsigned long long>(problem.elements),
                    static_cast<unsigned long long>(adasum_strict_bytes(0) - before[0]),
                    static_cast<unsigned long long>(adasum_strict_bytes(1) - before[1]));
      }
    }
  }
}

}  // namespace

int main(int count, char **arguments) {
  const Kernel kernels[] = {{"gram", gram != nullptr, run_gram},
                            {"fold", fold != nullptr, run_fold},
                            {"coefficients", coefficients != nullptr, run_coefficients},
                            {"weighted_sum", weighted_sum != nullptr, run_weighted_sum}};
  if (ascend_mock_set_finder != nullptr) {
    ascend_mock_set_finder(find_memory);
  }
  bool good = true;
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i];
    bool known = argument == "--no-races" || argument == "--bytes";
    if (argument == "--no-races") {
      adasum_strict_races(0);
    } else if (argument == "--bytes") {
      print_bytes();
    }
    for (const Kernel &kernel : kernels) {
      if (argument == kernel.name && kernel.linked) {
        good = run(kernel) && good;
        known = true;
      }
    }
    if (!known) {
      std::fprintf(stderr, "%s: no such kernel here\n", argument.c_str());
      return 2;
    }
  }
  return good ? 0 : 1;
}
