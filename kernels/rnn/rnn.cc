#include "kernels/rnn/rnn.h"

#include <cmath>
#include <type_traits>

#include "kernels/gemm/gemm.h"

namespace npu::rnn {
namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

template <class T>
T Sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
gemm::Operand Of(const T* data, int64_t row, int64_t col) {
  return {const_cast<T*>(data), std::is_same_v<T, double> ? DType::f64 : DType::f32, row, col, {}};
}

// c (m x n, dense) = a b, or c += a b.
template <class T>
Status Multiply(Parallel& parallel, int64_t m, int64_t n, int64_t k, const Weight<T>& a, const Weight<T>& b, T* c,
                bool add) {
  if (m == 0 || n == 0 || k == 0) return {};
  gemm::Problem p;
  p.m = m, p.n = n, p.k = k;
  p.a = Of(a.data, a.row, a.col);
  p.b = Of(b.data, b.row, b.col);
  p.c = Of<T>(c, n, 1);
  if (add) p.beta = 1, p.self = p.c;
  return gemm::Gemm(parallel, p);
}
template <class T>
Weight<T> Turned(const Weight<T>& w) {
  return {w.data, w.col, w.row};
}
template <class T>
Weight<T> Dense(const T* data, int64_t row) {
  return {data, row, 1};
}

// rows x [blocks * hidden]: x wx^T + bias.
template <class T>
Status FromInput(Parallel& parallel, const Cell<T>& cell, int blocks, const T* x, int64_t rows, const T* first,
                 const T* second, std::vector<T>* out) {
  const int64_t width = blocks * cell.hidden;
  out->resize(U(rows * width));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < width; ++j)
      (*out)[U(r * width + j)] = (first != nullptr ? first[j] : T{0}) + (second != nullptr ? second[j] : T{0});
  return Multiply(parallel, rows, width, cell.input, Dense(x, cell.input), Turned(cell.wx), out->data(), true);
}

// The state each row of x met: [rows, hidden], from the trace of states and the first state.
template <class T>
std::vector<T> Earlier(const Steps& s, int64_t hidden, const T* h0, const T* states) {
  std::vector<T> before(U(s.rows * hidden));
  for (int64_t i = 0; i < s.Count(); ++i) {
    const int64_t t = s.At(i), was = i > 0 ? s.At(i - 1) : -1;
    for (int64_t b = 0; b < s.batch[U(t)]; ++b) {
      const bool begins = was < 0 || b >= s.batch[U(was)];
      const T* from = begins ? (h0 != nullptr ? h0 + b * hidden : nullptr) : states + (s.offset[U(was)] + b) * hidden;
      T* to = before.data() + (s.offset[U(t)] + b) * hidden;
      for (int64_t j = 0; j < hidden; ++j) to[j] = from != nullptr ? from[j] : T{0};
    }
  }
  return before;
}

template <class T>
void AddColumns(const std::vector<T>& rows, int64_t width, T* to) {
  if (to == nullptr) return;
  for (size_t r = 0; r < rows.size() / U(width); ++r)
    for (int64_t j = 0; j < width; ++j) to[j] += rows[r * U(width) + U(j)];
}

// What the gradients of the gates give: of x and of the weights.
template <class T>
Status FromGates(Parallel& parallel, const Steps& s, const Cell<T>& cell, int blocks, const T* x,
                 const std::vector<T>& before, const std::vector<T>& gx, const std::vector<T>& gh,
                 const Gradients<T>& to) {
  const int64_t width = blocks * cell.hidden;
  if (to.dx != nullptr)
    NPU_TRY(Multiply(parallel, s.rows, cell.input, width, Dense(gx.data(), width), cell.wx, to.dx, true));
  if (to.dwx != nullptr)
    NPU_TRY(Multiply(parallel, width, cell.input, s.rows, Turned(Dense(gx.data(), width)), Dense(x, cell.input), to.dwx,
                     true));
  if (to.dwh != nullptr)
    NPU_TRY(Multiply(parallel, width, cell.hidden, s.rows, Turned(Dense(gh.data(), width)),
                     Dense(before.data(), cell.hidden), to.dwh, true));
  AddColumns(gx, width, to.dbx);
  AddColumns(gh, width, to.dbh);
  return {};
}

}  // namespace

Steps Steps::Even(int64_t count, int64_t batch) {
  Steps s;
  for (int64_t t = 0; t < count; ++t) {
    s.offset.push_back(t * batch);
    s.batch.push_back(batch);
  }
  s.rows = count * batch;
  s.sequences = batch;
  return s;
}

template <class T>
Status LstmForward(Parallel& parallel, const Steps& s, const Cell<T>& cell, const T* x, T* h, T* c,
                   const LstmTrace<T>& trace) {
  const int64_t n = cell.hidden, width = 4 * n;
  std::vector<T> gates;
  NPU_TRY(FromInput(parallel, cell, 4, x, s.rows, cell.bx, cell.bh, &gates));
  for (int64_t step = 0; step < s.Count(); ++step) {
    const int64_t t = s.At(step), first = s.offset[U(t)], batch = s.batch[U(t)];
    NPU_TRY(Multiply(parallel, batch, width, n, Dense<T>(h, n), Turned(cell.wh), gates.data() + first * width, true));
    parallel.For(batch, 1 + 2048 / (n + 1), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const T* gate = gates.data() + (first + b) * width;
        const int64_t at = (first + b) * n;
        for (int64_t j = 0; j < n; ++j) {
          const T i = Sigmoid(gate[cell.block[0] * n + j]), f = Sigmoid(gate[cell.block[1] * n + j] + cell.forget_bias);
          const T g = std::tanh(gate[cell.block[2] * n + j]), o = Sigmoid(gate[cell.block[3] * n + j]);
          const T now = f * c[b * n + j] + i * g, wide = std::tanh(now);
          c[b * n + j] = now;
          h[b * n + j] = o * wide;
          trace.i[at + j] = i, trace.f[at + j] = f, trace.g[at + j] = g, trace.o[at + j] = o;
          trace.c[at + j] = now, trace.tanh_c[at + j] = wide, trace.h[at + j] = o * wide;
        }
      }
    });
  }
  return {};
}

template <class T>
Status LstmBackward(Parallel& parallel, const Steps& s, const Cell<T>& cell, const T* x, const T* h0, const T* c0,
                    const LstmTrace<T>& trace, const T* dy, T* dh, T* dc, const Gradients<T>& gradients) {
  const int64_t n = cell.hidden, width = 4 * n;
  const std::vector<T> before = Earlier(s, n, h0, trace.h), cells = Earlier(s, n, c0, trace.c);
  std::vector<T> gates(U(s.rows * width));
  for (int64_t step = s.Count() - 1; step >= 0; --step) {
    const int64_t t = s.At(step), first = s.offset[U(t)], batch = s.batch[U(t)];
    for (int64_t b = 0; b < batch; ++b) {
      T* gate = gates.data() + (first + b) * width;
      const int64_t at = (first + b) * n;
      for (int64_t j = 0; j < n; ++j) {
        const T i = trace.i[at + j], f = trace.f[at + j], g = trace.g[at + j], o = trace.o[at + j],
                wide = trace.tanh_c[at + j];
        const T grad = dh[b * n + j] + (dy != nullptr ? dy[at + j] : T{0});
        const T inner = dc[b * n + j] + grad * o * (1 - wide * wide);
        gate[cell.block[0] * n + j] = inner * g * i * (1 - i);
        gate[cell.block[1] * n + j] = inner * cells[U(at + j)] * f * (1 - f);
        gate[cell.block[2] * n + j] = inner * i * (1 - g * g);
        gate[cell.block[3] * n + j] = grad * wide * o * (1 - o);
        dc[b * n + j] = inner * f;
      }
    }
    NPU_TRY(Multiply(parallel, batch, n, width, Dense<T>(gates.data() + first * width, width), cell.wh, dh, false));
  }
  return FromGates(parallel, s, cell, 4, x, before, gates, gates, gradients);
}

template <class T>
Status GruForward(Parallel& parallel, const Steps& s, const Cell<T>& cell, const T* x, T* h, const GruTrace<T>& trace) {
  const int64_t n = cell.hidden, width = 3 * n;
  std::vector<T> from_x, from_h(U(s.sequences * width));
  NPU_TRY(FromInput<T>(parallel, cell, 3, x, s.rows, cell.bx, nullptr, &from_x));
  for (int64_t step = 0; step < s.Count(); ++step) {
    const int64_t t = s.At(step), first = s.offset[U(t)], batch = s.batch[U(t)];
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t j = 0; j < width; ++j) from_h[U(b * width + j)] = cell.bh != nullptr ? cell.bh[j] : T{0};
    NPU_TRY(Multiply(parallel, batch, width, n, Dense<T>(h, n), Turned(cell.wh), from_h.data(), true));
    for (int64_t b = 0; b < batch; ++b) {
      const T *gx = from_x.data() + (first + b) * width, *gh = from_h.data() + b * width;
      const int64_t at = (first + b) * n;
      for (int64_t j = 0; j < n; ++j) {
        const int64_t r_at = cell.block[0] * n + j, z_at = cell.block[1] * n + j, n_at = cell.block[2] * n + j;
        const T r = Sigmoid(gx[r_at] + gh[r_at]), z = Sigmoid(gx[z_at] + gh[z_at]), hn = gh[n_at];
        const T fresh = std::tanh(gx[n_at] + r * hn), now = (1 - z) * fresh + z * h[b * n + j];
        h[b * n + j] = now;
        trace.r[at + j] = r, trace.z[at + j] = z, trace.n[at + j] = fresh, trace.hn[at + j] = hn, trace.h[at + j] = now;
      }
    }
  }
  return {};
}

template <class T>
Status GruBackward(Parallel& parallel, const Steps& s, const Cell<T>& cell, const T* x, const T* h0,
                   const GruTrace<T>& trace, const T* dy, T* dh, const Gradients<T>& gradients) {
  const int64_t n = cell.hidden, width = 3 * n;
  const std::vector<T> before = Earlier(s, n, h0, trace.h);
  std::vector<T> gx(U(s.rows * width)), gh(U(s.rows * width));
  for (int64_t step = s.Count() - 1; step >= 0; --step) {
    const int64_t t = s.At(step), first = s.offset[U(t)], batch = s.batch[U(t)];
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t at = (first + b) * n, row = (first + b) * width;
      for (int64_t j = 0; j < n; ++j) {
        const T r = trace.r[at + j], z = trace.z[at + j], fresh = trace.n[at + j], hn = trace.hn[at + j];
        const T grad = dh[b * n + j] + (dy != nullptr ? dy[at + j] : T{0});
        const T to_n = grad * (1 - z) * (1 - fresh * fresh), to_r = to_n * hn * r * (1 - r);
        const T to_z = grad * (before[U(at + j)] - fresh) * z * (1 - z);
        gx[U(row + cell.block[0] * n + j)] = gh[U(row + cell.block[0] * n + j)] = to_r;
        gx[U(row + cell.block[1] * n + j)] = gh[U(row + cell.block[1] * n + j)] = to_z;
        gx[U(row + cell.block[2] * n + j)] = to_n;
        gh[U(row + cell.block[2] * n + j)] = to_n * r;
        dh[b * n + j] = grad * z;
      }
    }
    NPU_TRY(Multiply(parallel, batch, n, width, Dense<T>(gh.data() + first * width, width), cell.wh, dh, true));
  }
  return FromGates(parallel, s, cell, 3, x, before, gx, gh, gradients);
}

#define NPU_RNN(T)                                                                                                \
  template Status LstmForward<T>(Parallel&, const Steps&, const Cell<T>&, const T*, T*, T*, const LstmTrace<T>&); \
  template Status LstmBackward<T>(Parallel&, const Steps&, const Cell<T>&, const T*, const T*, const T*,          \
                                  const LstmTrace<T>&, const T*, T*, T*, const Gradients<T>&);                    \
  template Status GruForward<T>(Parallel&, const Steps&, const Cell<T>&, const T*, T*, const GruTrace<T>&);       \
  template Status GruBackward<T>(Parallel&, const Steps&, const Cell<T>&, const T*, const T*, const GruTrace<T>&, \
                                 const T*, T*, const Gradients<T>&);
NPU_RNN(float)
NPU_RNN(double)
#undef NPU_RNN

}  // namespace npu::rnn
