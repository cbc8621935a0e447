//! A small network of dense layers with ReLU between them and softmax cross-entropy at the end, in f32.
//!
//! Plain loops in a fixed order: the same weights and images give the same bits on every rank.

use crate::cli::lab::digits::images::Digits;
use crate::cli::lab::digits::random::Random;

/// Weights (`outputs` x `inputs`, row by row) and biases of each layer, as tensors in turn.
pub struct Network {
    sizes: Vec<usize>,
    pub tensors: Vec<Vec<f32>>,
}

impl Network {
    /// Layers between the given numbers of values, with the same random weights for the same seed.
    pub fn new(sizes: &[usize], seed: u64) -> Network {
        let mut random = Random::new(seed);
        let mut tensors = Vec::new();
        for layer in sizes.windows(2) {
            let (inputs, outputs) = (layer[0], layer[1]);
            // He et al. 2015: keeps the size of the signals through ReLU.
            let bound = (6.0 / inputs as f32).sqrt();
            tensors.push(
                (0..inputs * outputs)
                    .map(|_| bound * random.signed_unit())
                    .collect(),
            );
            tensors.push(vec![0.0; outputs]);
        }
        Network {
            sizes: sizes.to_vec(),
            tensors,
        }
    }

    /// Names of the tensors, in their order.
    pub fn names(&self) -> Vec<String> {
        let layers = 1..self.sizes.len();
        layers
            .flat_map(|layer| [format!("dense{layer}.weight"), format!("dense{layer}.bias")])
            .collect()
    }

    /// Zeros in the shape of the tensors.
    pub fn zeros(&self) -> Vec<Vec<f32>> {
        self.tensors
            .iter()
            .map(|tensor| vec![0.0; tensor.len()])
            .collect()
    }

    /// Which class each image is taken for.
    fn classify(&self, images: &[f32]) -> Vec<usize> {
        let signals = self.forward(images);
        let classes = self.sizes[self.sizes.len() - 1];
        let scores = &signals[signals.len() - 1];
        scores.chunks_exact(classes).map(largest).collect()
    }

    /// The part of the images that is classified right.
    pub fn accuracy(&self, digits: &Digits) -> f64 {
        let found = self.classify(&digits.pixels);
        let right = found.iter().zip(&digits.labels);
        right.filter(|(found, label)| found == label).count() as f64 / digits.count() as f64
    }

    /// The mean loss over a batch; `gradients` is overwritten with its gradient.
    pub fn loss(&self, images: &[f32], labels: &[usize], gradients: &mut [Vec<f32>]) -> f32 {
        let mut signals = self.forward(images);
        let mut errors = signals.pop().unwrap_or_default();
        let loss = softmax_cross_entropy(&mut errors, labels);
        for layer in (0..self.sizes.len() - 1).rev() {
            let inputs = signals.pop().unwrap_or_default();
            let (weight, bias) = gradients[2 * layer..].split_at_mut(1);
            layer_gradients(&errors, &inputs, &mut weight[0], &mut bias[0]);
            if layer > 0 {
                errors = backward(
                    &errors,
                    &inputs,
                    &self.tensors[2 * layer],
                    self.sizes[layer + 1],
                );
            }
        }
        loss
    }

    /// The input and the output of each layer, image by image; the last are scores without softmax.
    fn forward(&self, images: &[f32]) -> Vec<Vec<f32>> {
        let last = self.sizes.len() - 2;
        let mut signals = vec![images.to_vec()];
        for layer in 0..=last {
            let (weight, bias) = (&self.tensors[2 * layer], &self.tensors[2 * layer + 1]);
            let inputs = self.sizes[layer];
            let mut outputs = Vec::new();
            for input in signals[layer].chunks_exact(inputs) {
                for (row, bias) in weight.chunks_exact(inputs).zip(bias) {
                    let sum = bias + dot(row, input);
                    outputs.push(if layer < last { sum.max(0.0) } else { sum });
                }
            }
            signals.push(outputs);
        }
        signals
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn largest(scores: &[f32]) -> usize {
    let mut best = 0;
    for (index, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = index;
        }
    }
    best
}

/// Turns scores into the gradient of the mean loss with respect to them and returns that loss.
fn softmax_cross_entropy(scores: &mut [f32], labels: &[usize]) -> f32 {
    let images = labels.len() as f32;
    let classes = scores.len() / labels.len();
    let mut loss = 0.0;
    for (scores, label) in scores.chunks_exact_mut(classes).zip(labels) {
        let top = scores[largest(scores)];
        let sum: f32 = scores.iter().map(|score| (score - top).exp()).sum();
        loss += sum.ln() + top - scores[*label];
        for (class, score) in scores.iter_mut().enumerate() {
            let wanted = if class == *label { 1.0 } else { 0.0 };
            *score = ((*score - top).exp() / sum - wanted) / images;
        }
    }
    loss / images
}

/// Sums over the images what each weight and bias of a layer contributes to the loss.
fn layer_gradients(errors: &[f32], inputs: &[f32], weight: &mut [f32], bias: &mut [f32]) {
    weight.fill(0.0);
    bias.fill(0.0);
    let width = weight.len() / bias.len();
    for (errors, input) in errors
        .chunks_exact(bias.len())
        .zip(inputs.chunks_exact(width))
    {
        for (output, error) in errors.iter().enumerate() {
            bias[output] += error;
            let row = &mut weight[output * width..][..width];
            for (gradient, input) in row.iter_mut().zip(input) {
                *gradient += error * input;
            }
        }
    }
}

/// The errors of the layer before, through the weights and its ReLU.
fn backward(errors: &[f32], inputs: &[f32], weight: &[f32], outputs: usize) -> Vec<f32> {
    let width = weight.len() / outputs;
    let mut before = vec![0.0; inputs.len()];
    for (errors, before) in errors
        .chunks_exact(outputs)
        .zip(before.chunks_exact_mut(width))
    {
        for (error, row) in errors.iter().zip(weight.chunks_exact(width)) {
            for (sum, weight) in before.iter_mut().zip(row) {
                *sum += error * weight;
            }
        }
    }
    for (error, input) in before.iter_mut().zip(inputs) {
        if *input <= 0.0 {
            *error = 0.0;
        }
    }
    before
}

/// Stochastic gradient descent with momentum.
pub struct Momentum {
    factor: f32,
    velocity: Vec<Vec<f32>>,
}

impl Momentum {
    pub fn new(network: &Network, factor: f32) -> Momentum {
        Momentum {
            factor,
            velocity: network.zeros(),
        }
    }

    /// One step of the network along `gradients`.
    pub fn step(&mut self, network: &mut Network, gradients: &[Vec<f32>], rate: f32) {
        let tensors = network
            .tensors
            .iter_mut()
            .zip(gradients)
            .zip(&mut self.velocity);
        for ((weights, gradients), velocity) in tensors {
            for ((weight, gradient), velocity) in weights.iter_mut().zip(gradients).zip(velocity) {
                *velocity = self.factor * *velocity + gradient;
                *weight -= rate * *velocity;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean loss in f64, written without the code under test.
    fn oracle(sizes: &[usize], tensors: &[Vec<f64>], images: &[f32], labels: &[usize]) -> f64 {
        let mut total = 0.0;
        for (image, label) in images.chunks(sizes[0]).zip(labels) {
            let mut signal: Vec<f64> = image.iter().map(|pixel| f64::from(*pixel)).collect();
            for layer in 0..sizes.len() - 1 {
                let mut next = tensors[2 * layer + 1].clone();
                for (output, sum) in next.iter_mut().enumerate() {
                    for (input, value) in signal.iter().enumerate() {
                        *sum += tensors[2 * layer][output * sizes[layer] + input] * value;
                    }
                    if layer + 2 < sizes.len() {
                        *sum = sum.max(0.0);
                    }
                }
                signal = next;
            }
            let sum: f64 = signal.iter().map(|score| score.exp()).sum();
            total += sum.ln() - signal[*label];
        }
        total / labels.len() as f64
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let sizes = [5, 7, 4, 3];
        let network = Network::new(&sizes, 1);
        let mut random = Random::new(2);
        let images: Vec<f32> = (0..6 * 5).map(|_| random.signed_unit()).collect();
        let labels = [0, 1, 2, 2, 1, 0];
        let mut gradients = network.zeros();
        let loss = network.loss(&images, &labels, &mut gradients);

        let wide = |tensor: &Vec<f32>| tensor.iter().map(|value| f64::from(*value)).collect();
        let mut tensors: Vec<Vec<f64>> = network.tensors.iter().map(wide).collect();
        let expected = oracle(&sizes, &tensors, &images, &labels);
        assert!((f64::from(loss) - expected).abs() < 1e-6);

        let step = 1e-6;
        for tensor in 0..tensors.len() {
            for index in 0..tensors[tensor].len() {
                let value = tensors[tensor][index];
                let mut at = |value| {
                    tensors[tensor][index] = value;
                    oracle(&sizes, &tensors, &images, &labels)
                };
                let slope = (at(value + step) - at(value - step)) / (2.0 * step);
                tensors[tensor][index] = value;
                let found = f64::from(gradients[tensor][index]);
                assert!(
                    (found - slope).abs() < 1e-6,
                    "{tensor} {index}: {found} {slope}"
                );
            }
        }
    }
}
