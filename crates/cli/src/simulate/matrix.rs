//! Traffic from zone to zone.

/// A matrix: a row for each zone of clients, a column for each zone of endpoints.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Matrix {
    size: usize,
    cells: Vec<f64>,
}

impl Matrix {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            cells: vec![0.0; size * size],
        }
    }

    pub(crate) fn add(&mut self, from: usize, to: usize, part: f64) {
        if let Some(cell) = self.cells.get_mut(from * self.size + to) {
            *cell += part;
        }
    }

    /// Adds every cell of `other`, times `factor`.
    pub(crate) fn add_all(&mut self, other: &Self, factor: f64) {
        if self.cells.len() < other.cells.len() {
            *self = Self::new(other.size);
        }
        for (cell, more) in self.cells.iter_mut().zip(&other.cells) {
            *cell += more * factor;
        }
    }

    /// The part that stays in each zone.
    pub(crate) fn diagonal(&self) -> impl Iterator<Item = f64> + '_ {
        self.cells.iter().step_by(self.size + 1).copied()
    }

    pub(crate) fn sum(&self) -> f64 {
        self.cells.iter().sum()
    }

    /// A row for each zone that clients are in.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.cells.chunks(self.size.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diagonal_is_the_traffic_that_stays() {
        let mut matrix = Matrix::new(3);
        matrix.add(0, 0, 0.5);
        matrix.add(2, 2, 0.25);
        matrix.add(1, 2, 0.25);
        assert!((matrix.diagonal().sum::<f64>() - 0.75).abs() < 1e-12);
        assert!((matrix.sum() - 1.0).abs() < 1e-12);
        let mut sum = Matrix::default();
        sum.add_all(&matrix, 2.0);
        assert_eq!(sum.rows().nth(1), Some([0.0, 0.0, 0.5].as_slice()));
    }
}
