// Trains a small network on handwritten digits with AdaSum, on every rank of a rank table or of torchrun.
//
//   adasum-run launch --rank-table rank_table_16pcs.json -- train_digits --data optdigits.csv --mode gradient
//
// Mode gradient reduces gradients before the optimizer's step; mode delta lets the optimizers of each server step and
// reduces what they did to the weights. Initial weights, batches, optimizer and schedule are those of `adasum-run demo`.
#include <adasum.hpp>

#include "device.hpp"
#include "network.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t BATCH = 8;
constexpr float MOMENTUM = 0.9f;
constexpr float RATE = 0.05f;
constexpr float WARM_UP = 1.0f;
constexpr std::uint64_t SEED = 2020;
constexpr std::chrono::seconds PATIENCE(120);

struct Arguments {
    std::string data = "optdigits.csv";
    std::string mode = "gradient";
    std::string json;
    std::size_t epochs = 10;
};

Arguments parse(int count, char **words) {
    Arguments arguments;
    for (int i = 1; i + 1 < count; i += 2) {
        const std::string name = words[i], value = words[i + 1];
        if (name == "--data") {
            arguments.data = value;
        } else if (name == "--mode" && (value == "gradient" || value == "delta")) {
            arguments.mode = value;
        } else if (name == "--json") {
            arguments.json = value;
        } else if (name == "--epochs" && std::stoi(value) > 0) {
            arguments.epochs = static_cast<std::size_t>(std::stoi(value));
        } else {
            throw std::invalid_argument(name + " " + value);
        }
    }
    if (count % 2 == 0) {
        throw std::invalid_argument(words[count - 1]);
    }
    return arguments;
}

// The part of the highest rate after `passed` of `epochs`: up in a straight line, then down in one.
float schedule(float passed, float epochs) {
    if (passed < WARM_UP) {
        return passed / WARM_UP;
    }
    const float left = (epochs - passed) / std::max(epochs - WARM_UP, 1.0f);
    return std::clamp(left, 0.01f, 1.0f);
}

class Trainer {
public:
    Trainer(const adasum::World &world, const Arguments &arguments)
        : world_(world), arguments_(arguments), network_({PIXELS, 128, 64, CLASSES}, SEED),
          momentum_(network_, MOMENTUM), gradients_(network_.zeros()), device_gradients_(gradients_),
          device_weights_(gradients_), device_loss_(std::vector<Values>(1, Values(1))),
          losses_(world, {{"loss", 1, ADASUM_F32}}, adasum::Options().set("reduction", "sum")) {
        std::tie(train_, test_) = split(read_digits(arguments.data));
        std::vector<adasum::TensorSpec> tensors;
        const std::vector<std::string> names = network_.names();
        for (std::size_t i = 0; i < names.size(); ++i) {
            tensors.push_back({names[i], gradients_[i].size(), ADASUM_F32});
        }
        // ADASUM_* variables choose radix, wire type and the like.
        adasum::Options options;
        options.load_environment();
        if (arguments.mode == "delta") {
            delta_ = std::make_unique<adasum::DeltaWeightReducer>(world, tensors, options);
        } else {
            gradient_ = std::make_unique<adasum::GradientReducer>(world, tensors, options);
        }
    }

    ~Trainer() {
        // The stream goes before the reducers.
        adasum_reducer_forget_stream(losses_.get(), stream_.get());
        adasum_reducer_forget_stream(gradient_ ? gradient_->get() : delta_->get(), stream_.get());
    }

    // The mean loss of each epoch.
    std::vector<float> run() {
        std::vector<float> losses;
        for (std::size_t epoch = 1; epoch <= arguments_.epochs; ++epoch) {
            const auto steps = batches(train_.size(), epoch, world_.rank(), world_.size(), BATCH);
            float loss = 0.0f;
            for (std::size_t step = 0; step < steps.size(); ++step) {
                loss += network_.loss(train_.select(steps[step]), gradients_);
                const float passed =
                    static_cast<float>(epoch - 1) + static_cast<float>(step + 1) / static_cast<float>(steps.size());
                const float rate = RATE * schedule(passed, static_cast<float>(arguments_.epochs));
                gradient_ ? step_on_gradients(rate) : step_on_deltas(rate);
            }
            losses.push_back(sum(loss) / static_cast<float>(world_.size() * steps.size()));
            if (world_.rank() == 0) {
                std::printf("epoch %zu: loss %.6f\n", epoch, static_cast<double>(losses.back()));
                std::fflush(stdout);
            }
        }
        return losses;
    }

    double accuracy() const { return network_.accuracy(test_); }

private:
    void step_on_gradients(float rate) {
        device_gradients_.upload(gradients_);
        gradient_->reduce(device_gradients_.addresses(), stream_.get());
        gradient_->synchronize(stream_.get(), PATIENCE);
        device_gradients_.download(gradients_);
        momentum_.step(network_, gradients_, rate);
    }

    // The optimizer steps on the mean of its server, on the host here; on the device it would be enqueued between
    // begin and end, and nothing would have to wait.
    void step_on_deltas(float rate) {
        device_gradients_.upload(gradients_);
        device_weights_.upload(network_.tensors);
        delta_->begin(device_gradients_.addresses(), device_weights_.addresses(), stream_.get());
        delta_->synchronize(stream_.get(), PATIENCE);
        device_gradients_.download(gradients_);
        momentum_.step(network_, gradients_, rate);
        device_weights_.upload(network_.tensors);
        delta_->end(device_weights_.addresses(), stream_.get());
        delta_->synchronize(stream_.get(), PATIENCE);
        device_weights_.download(network_.tensors);
    }

    // Over all ranks.
    float sum(float value) {
        std::vector<Values> values(1, Values(1, value));
        device_loss_.upload(values);
        losses_.reduce(device_loss_.addresses(), stream_.get());
        losses_.synchronize(stream_.get(), PATIENCE);
        device_loss_.download(values);
        return values[0][0];
    }

    const adasum::World &world_;
    const Arguments &arguments_;
    Digits train_, test_;
    Network network_;
    Momentum momentum_;
    std::vector<Values> gradients_;
    Stream stream_;
    DeviceTensors device_gradients_, device_weights_, device_loss_;
    adasum::MeanReducer losses_;
    std::unique_ptr<adasum::GradientReducer> gradient_;
    std::unique_ptr<adasum::DeltaWeightReducer> delta_;
};

void write_json(const Arguments &arguments, const std::vector<float> &losses, double accuracy) {
    std::ofstream file(arguments.json);
    file << std::setprecision(9) << "{\"mode\": \"" << arguments.mode << "\", \"loss\": [";
    for (std::size_t i = 0; i < losses.size(); ++i) {
        file << (i == 0 ? "" : ", ") << losses[i];
    }
    file << std::setprecision(17) << "], \"accuracy\": " << accuracy << "}\n";
    if (!file.flush()) {
        throw std::runtime_error(arguments.json + " cannot be written");
    }
}

void train(const Arguments &arguments) {
    adasum::World world = adasum::World::from_environment();
    check_acl(aclrtSetDevice(world.device()), "aclrtSetDevice");
    {
        Trainer trainer(world, arguments);
        const std::vector<float> losses = trainer.run();
        const double accuracy = trainer.accuracy();
        if (world.rank() == 0) {
            std::printf("accuracy %.4f\n", accuracy);
            if (!arguments.json.empty()) {
                write_json(arguments, losses, accuracy);
            }
        }
    }
    world.finish(PATIENCE);
}

} // namespace

int main(int count, char **words) {
    Arguments arguments;
    try {
        arguments = parse(count, words);
    } catch (const std::exception &error) {
        std::cerr << "usage: train_digits [--data FILE] [--mode gradient|delta] [--epochs N] [--json FILE]: "
                  << error.what() << "\n";
        return 2;
    }
    try {
        train(arguments);
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
    return 0;
}
