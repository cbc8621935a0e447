// A small network of dense layers with ReLU between them and softmax cross-entropy at the end.
//
// Plain loops in a fixed order: the same weights and images give the same bits on every rank. Compile it with
// -ffp-contract=off, or a compiler may fuse products and sums on one machine and not on another.
#ifndef NETWORK_HPP
#define NETWORK_HPP

#include "digits.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using Values = std::vector<float>;

class Network {
public:
    // Weights (outputs x inputs, row by row) and biases of each layer, in turn.
    std::vector<Values> tensors;

    // Layers between the given numbers of values, with the same random weights for the same seed.
    Network(std::vector<std::size_t> sizes, std::uint64_t seed) : sizes_(std::move(sizes)) {
        Random random(seed);
        for (std::size_t layer = 0; layer + 1 < sizes_.size(); ++layer) {
            const std::size_t inputs = sizes_[layer], outputs = sizes_[layer + 1];
            // He et al. 2015: keeps the size of the signals through ReLU.
            const float bound = std::sqrt(6.0f / static_cast<float>(inputs));
            Values weight(inputs * outputs);
            for (float &value : weight) {
                value = bound * random.signed_unit();
            }
            tensors.push_back(std::move(weight));
            tensors.emplace_back(outputs, 0.0f);
        }
    }

    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (std::size_t layer = 1; layer < sizes_.size(); ++layer) {
            names.push_back("dense" + std::to_string(layer) + ".weight");
            names.push_back("dense" + std::to_string(layer) + ".bias");
        }
        return names;
    }

    std::vector<Values> zeros() const {
        std::vector<Values> zeros;
        for (const Values &tensor : tensors) {
            zeros.emplace_back(tensor.size(), 0.0f);
        }
        return zeros;
    }

    // The part of `digits` that is recognised.
    double accuracy(const Digits &digits) const {
        const Values scores = forward(digits.pixels).back();
        std::size_t right = 0;
        for (std::size_t image = 0; image < digits.size(); ++image) {
            const float *own = &scores[image * CLASSES];
            right += static_cast<std::size_t>(std::max_element(own, own + CLASSES) - own) == digits.labels[image];
        }
        return static_cast<double>(right) / static_cast<double>(digits.size());
    }

    // The mean loss over a batch; `gradients` is overwritten with its gradient.
    float loss(const Digits &batch, std::vector<Values> &gradients) const {
        std::vector<Values> signals = forward(batch.pixels);
        Values errors = std::move(signals.back());
        signals.pop_back();
        const float loss = softmax_cross_entropy(errors, batch.labels);
        for (std::size_t layer = sizes_.size() - 1; layer-- > 0;) {
            const Values inputs = std::move(signals.back());
            signals.pop_back();
            layer_gradients(errors, inputs, gradients[2 * layer], gradients[2 * layer + 1]);
            if (layer > 0) {
                errors = backward(errors, inputs, tensors[2 * layer], sizes_[layer + 1]);
            }
        }
        return loss;
    }

private:
    std::vector<std::size_t> sizes_;

    // The input and the output of each layer, image by image; the last are scores without softmax.
    std::vector<Values> forward(const Values &images) const {
        std::vector<Values> signals{images};
        for (std::size_t layer = 0; layer + 1 < sizes_.size(); ++layer) {
            const Values &weight = tensors[2 * layer], &bias = tensors[2 * layer + 1];
            const std::size_t inputs = sizes_[layer];
            const bool last = layer + 2 == sizes_.size();
            Values outputs;
            for (std::size_t image = 0; image < signals.back().size(); image += inputs) {
                for (std::size_t output = 0; output < bias.size(); ++output) {
                    float sum = 0.0f;
                    for (std::size_t i = 0; i < inputs; ++i) {
                        sum += weight[output * inputs + i] * signals.back()[image + i];
                    }
                    sum = bias[output] + sum;
                    outputs.push_back(last ? sum : std::max(sum, 0.0f));
                }
            }
            signals.push_back(std::move(outputs));
        }
        return signals;
    }

    // Turns scores into the gradient of the mean loss with respect to them and returns that loss.
    static float softmax_cross_entropy(Values &scores, const std::vector<std::size_t> &labels) {
        const float images = static_cast<float>(labels.size());
        float loss = 0.0f;
        for (std::size_t image = 0; image < labels.size(); ++image) {
            float *own = &scores[image * CLASSES];
            const float top = *std::max_element(own, own + CLASSES);
            float sum = 0.0f;
            for (std::size_t i = 0; i < CLASSES; ++i) {
                sum += std::exp(own[i] - top);
            }
            loss += std::log(sum) + top - own[labels[image]];
            for (std::size_t i = 0; i < CLASSES; ++i) {
                const float wanted = i == labels[image] ? 1.0f : 0.0f;
                own[i] = (std::exp(own[i] - top) / sum - wanted) / images;
            }
        }
        return loss / images;
    }

    // Sums over the images what each weight and bias of a layer contributes to the loss.
    static void layer_gradients(const Values &errors, const Values &inputs, Values &weight, Values &bias) {
        std::fill(weight.begin(), weight.end(), 0.0f);
        std::fill(bias.begin(), bias.end(), 0.0f);
        const std::size_t outputs = bias.size(), width = weight.size() / outputs;
        for (std::size_t image = 0; image < errors.size() / outputs; ++image) {
            for (std::size_t output = 0; output < outputs; ++output) {
                const float error = errors[image * outputs + output];
                bias[output] += error;
                for (std::size_t i = 0; i < width; ++i) {
                    weight[output * width + i] += error * inputs[image * width + i];
                }
            }
        }
    }

    // The errors of the layer before, through the weights and its ReLU.
    static Values backward(const Values &errors, const Values &inputs, const Values &weight, std::size_t outputs) {
        const std::size_t width = weight.size() / outputs;
        Values before(inputs.size(), 0.0f);
        for (std::size_t image = 0; image < errors.size() / outputs; ++image) {
            for (std::size_t output = 0; output < outputs; ++output) {
                const float error = errors[image * outputs + output];
                for (std::size_t i = 0; i < width; ++i) {
                    before[image * width + i] += error * weight[output * width + i];
                }
            }
        }
        for (std::size_t i = 0; i < before.size(); ++i) {
            before[i] = inputs[i] <= 0.0f ? 0.0f : before[i];
        }
        return before;
    }
};

// Stochastic gradient descent with momentum.
class Momentum {
public:
    Momentum(const Network &network, float factor) : factor_(factor), velocity_(network.zeros()) {}

    void step(Network &network, const std::vector<Values> &gradients, float rate) {
        for (std::size_t tensor = 0; tensor < gradients.size(); ++tensor) {
            for (std::size_t i = 0; i < gradients[tensor].size(); ++i) {
                float &velocity = velocity_[tensor][i];
                velocity = factor_ * velocity + gradients[tensor][i];
                network.tensors[tensor][i] -= rate * velocity;
            }
        }
    }

private:
    float factor_;
    std::vector<Values> velocity_;
};

#endif
