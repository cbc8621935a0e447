//! Pages that say what the sources do: their commands and figures, the layers, the variables.

mod documents;
mod layers;
mod variables;
