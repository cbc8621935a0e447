// The data: 1,797 handwritten digits of 8 x 8 pixels, and which of them a rank sees in a step.
#ifndef DIGITS_HPP
#define DIGITS_HPP

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

constexpr std::size_t PIXELS = 64;
constexpr std::size_t CLASSES = 10;

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    // A number in -1..1; 24 bits fit a float exactly.
    float signed_unit() { return static_cast<float>(next() >> 40) / static_cast<float>(1 << 23) - 1.0f; }

    template <typename T>
    void shuffle(std::vector<T> &items) {
        for (std::size_t last = items.size() - 1; last > 0; --last) {
            std::swap(items[last], items[next() % (last + 1)]);
        }
    }

private:
    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15;
        std::uint64_t bits = state_;
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
        return bits ^ (bits >> 31);
    }

    std::uint64_t state_;
};

// Images with pixels in 0..1 and the digits they show.
struct Digits {
    std::vector<float> pixels;
    std::vector<std::size_t> labels;

    std::size_t size() const { return labels.size(); }

    void push(const Digits &other, std::size_t index) {
        const auto first = other.pixels.begin() + static_cast<std::ptrdiff_t>(index * PIXELS);
        pixels.insert(pixels.end(), first, first + PIXELS);
        labels.push_back(other.labels[index]);
    }

    Digits select(const std::vector<std::size_t> &indices) const {
        Digits selected;
        for (const std::size_t index : indices) {
            selected.push(*this, index);
        }
        return selected;
    }
};

inline Digits read_digits(const std::string &path) {
    std::ifstream file(path);
    if (!file) {
        throw std::runtime_error(path + " cannot be read");
    }
    Digits digits;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::vector<int> values;
        for (std::string word; std::getline(words, word, ',');) {
            values.push_back(std::stoi(word));
        }
        if (values.size() != PIXELS + 1 || values.back() < 0 || values.back() >= static_cast<int>(CLASSES)) {
            throw std::runtime_error(path + ": a line is not 64 pixels and a digit");
        }
        for (std::size_t i = 0; i < PIXELS; ++i) {
            digits.pixels.push_back(static_cast<float>(values[i]) / 16.0f);
        }
        digits.labels.push_back(static_cast<std::size_t>(values.back()));
    }
    return digits;
}

// What to train on, and what is held back: of each kind of digit every fifth image.
inline std::pair<Digits, Digits> split(const Digits &all) {
    Digits train, test;
    std::size_t seen[CLASSES] = {};
    for (std::size_t index = 0; index < all.size(); ++index) {
        (++seen[all.labels[index]] % 5 == 0 ? test : train).push(all, index);
    }
    return {train, test};
}

// For each step of an epoch, the images of `rank`. All ranks draw from one order, so no image is used twice.
inline std::vector<std::vector<std::size_t>> batches(std::size_t images, std::size_t epoch, std::size_t rank,
                                                     std::size_t ranks, std::size_t batch) {
    std::vector<std::size_t> order(images);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random(epoch).shuffle(order);
    std::vector<std::vector<std::size_t>> steps;
    for (std::size_t start = 0; start + ranks * batch <= images; start += ranks * batch) {
        const auto first = order.begin() + static_cast<std::ptrdiff_t>(start + rank * batch);
        steps.emplace_back(first, first + static_cast<std::ptrdiff_t>(batch));
    }
    return steps;
}

#endif
