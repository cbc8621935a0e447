//! Pages that say what the sources do: their commands and figures, the layers, the variables; and what CI starts.

mod checks;
mod documents;
mod layers;
mod variables;
