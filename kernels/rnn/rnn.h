// One direction of one layer of LSTM and GRU, forward and backward, over dense arrays of T (float or double).
//
// Rows of a step lie together: step t has batch[t] rows from row offset[t]. Packed sequences have shrinking batches,
// and a sequence that has ended keeps its state. `reverse` walks from the last step to the first.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status/status.h"
#include "base/task/parallel.h"

namespace npu::rnn {

struct Steps {
  std::vector<int64_t> offset, batch;
  int64_t rows = 0;       // rows of the whole input, gaps included
  int64_t sequences = 0;  // rows of the state
  bool reverse = false;

  int64_t Count() const { return static_cast<int64_t>(batch.size()); }
  int64_t At(int64_t i) const { return reverse ? Count() - 1 - i : i; }
  static Steps Even(int64_t count, int64_t batch);
};

// Weights of x and of the state as they lie: element (gate row, column) by strides.
template <class T>
struct Weight {
  const T* data = nullptr;
  int64_t row = 0, col = 0;
};

// Gates are found by the block of `hidden` rows they have in weights: block[0] input (reset), [1] forget (update), [2]
// cell (new), [3] output.
template <class T>
struct Cell {
  int64_t input = 0, hidden = 0;
  Weight<T> wx, wh;
  const T *bx = nullptr, *bh = nullptr;  // either may be null
  int block[4] = {0, 1, 2, 3};
  T forget_bias = 0;
};

// What the forward pass leaves for the backward pass: each [rows, hidden].
template <class T>
struct LstmTrace {
  T *i, *f, *g, *o, *h, *c, *tanh_c;
};
// h and c: [sequences, hidden], the first state on entry, the last on return.
template <class T>
Status LstmForward(Parallel& parallel, const Steps& steps, const Cell<T>& cell, const T* x, T* h, T* c,
                   const LstmTrace<T>& trace);

template <class T>
struct GruTrace {
  T *r, *z, *n, *hn, *h;
};
template <class T>
Status GruForward(Parallel& parallel, const Steps& steps, const Cell<T>& cell, const T* x, T* h,
                  const GruTrace<T>& trace);

// Gradients are added to what dwx … dbh hold; they have the blocks of the cell, row-major [blocks * hidden, columns].
// dx [rows, input] is added to. dh, dc: the gradients of the last state on entry, of the first on return. dy may be
// null.
template <class T>
struct Gradients {
  T *dx, *dwx, *dwh, *dbx, *dbh;
};
template <class T>
Status LstmBackward(Parallel& parallel, const Steps& steps, const Cell<T>& cell, const T* x, const T* h0, const T* c0,
                    const LstmTrace<T>& trace, const T* dy, T* dh, T* dc, const Gradients<T>& gradients);
template <class T>
Status GruBackward(Parallel& parallel, const Steps& steps, const Cell<T>& cell, const T* x, const T* h0,
                   const GruTrace<T>& trace, const T* dy, T* dh, const Gradients<T>& gradients);

}  // namespace npu::rnn
