// Factorisations, inverses and determinants of batches of matrices: plain loops in double precision (complex double),
// one matrix a task, rounded once. Signs follow LAPACK's conventions where a factor is not unique.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

namespace {

constexpr TypeSet kMatrixTypes = kFloats | kComplexes;

size_t U(int64_t i) { return static_cast<size_t>(i); }

// f.operator()<T>() with double or std::complex<double>.
template <class F>
Status WithPrecise(DType t, F&& f) {
  return IsComplex(t) ? f.template operator()<std::complex<double>>() : f.template operator()<double>();
}
double Conj(double v) { return v; }
std::complex<double> Conj(std::complex<double> v) { return std::conj(v); }
double Real(double v) { return v; }
double Real(std::complex<double> v) { return v.real(); }
double Imag(double) { return 0; }
double Imag(std::complex<double> v) { return v.imag(); }

// Complex values converted to and from the type they are computed in.
template <class T>
std::vector<T> ReadMatrix(const Tensor& t, Parallel& parallel) {
  std::vector<T> v(U(t.Numel()));
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    if (t.dtype == DType::c64) {
      const Values<std::complex<float>> x(t, parallel);
      for (int64_t i = 0; i < x.size(); ++i) v[U(i)] = x[i];
    } else {
      const Values<T> x(t, parallel);
      v.assign(x.data(), x.data() + x.size());
    }
  } else {
    const Values<T> x(t, parallel);
    v.assign(x.data(), x.data() + x.size());
  }
  return v;
}
template <class T>
void WriteMatrix(const std::vector<T>& v, const Tensor& t, Parallel& parallel) {
  if (t.Numel() == 0) return;
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    if (t.dtype == DType::c64) {
      Results<std::complex<float>> out(t, parallel);
      for (int64_t i = 0; i < out.size(); ++i) out[i] = std::complex<float>(v[U(i)]);
      return;
    }
  }
  Results<T> out(t, parallel);
  for (int64_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_same_v<T, double>)
      out[i] = v[U(i)];
    else
      out[i] = v[U(i)];
  }
}

int64_t Batch(const Tensor& t) {
  int64_t n = 1;
  for (int d = 0; d < t.rank - 2; ++d) n *= t.shape[U(d)];
  return n;
}

Status WantSquare(const Planning& p, const Tensor& t, TensorToken name) {
  if (t.rank >= 2 && SizeAt(t, 0) == SizeAt(t, 1)) return {};
  return p.Refuse("{} has shape {}.", p.ParamName(name), ShapeText(t.Shape()))
      .Remedy("Pass square matrices, with or without batches.");
}
Status WantMatrices(const Planning& p, const Tensor& t, TensorToken name) {
  if (t.rank >= 2) return {};
  return p.Refuse("{} has shape {}.", p.ParamName(name), ShapeText(t.Shape()))
      .Remedy("Pass matrices, with or without batches.");
}

// LU with row exchanges in place; returns the sign of the exchanges, 0 pivots stay.
template <class T>
double Lu(T* a, int64_t n, std::vector<int64_t>* rows) {
  double sign = 1;
  rows->resize(U(n));
  std::iota(rows->begin(), rows->end(), int64_t{0});
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[best * n + k])) best = i;
    if (best != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + best * n);
      std::swap((*rows)[U(k)], (*rows)[U(best)]);
      sign = -sign;
    }
    if (a[k * n + k] == T{0}) continue;
    for (int64_t i = k + 1; i < n; ++i) {
      const T f = a[i * n + k] /= a[k * n + k];
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= f * a[k * n + j];
    }
  }
  return sign;
}

// x = op(a)^-1 x for n x m x; a is triangular, read by (row, column) steps.
template <class T>
void SolveTriangle(const T* a, int64_t row, int64_t col, bool upper, bool unit, int64_t n, T* x, int64_t m) {
  for (int64_t s = 0; s < n; ++s) {
    const int64_t i = upper ? n - 1 - s : s;
    for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); ++k) {
      const T f = a[i * row + k * col];
      for (int64_t j = 0; j < m; ++j) x[i * m + j] -= f * x[k * m + j];
    }
    if (unit) continue;
    for (int64_t j = 0; j < m; ++j) x[i * m + j] /= a[i * row + i * col];
  }
}

}  // namespace

using abi::Inverse, abi::Slogdet, abi::LinalgCholesky, abi::LinalgQr, abi::TriangularSolve, abi::Svd;
NPU_OP(Inverse) = Op<Inverse>()
                      .Rules(DtypeIn(Inverse::self, kMatrixTypes), SameShape(Inverse::self, Inverse::out),
                             SameDtype(Inverse::self, Inverse::out))
                      .Tolerance("accumulated")
                      .Like("torch.linalg.inv(self)")
                      .Prepares([](Planning& p) { return WantSquare(p, p.args[Inverse::self], Inverse::self); })
                      .Does([](const Call& c) -> Status {
                        const Tensor& self = c.args[Inverse::self];
                        return WithPrecise(self.dtype, [&]<class T>() -> Status {
                          auto a = ReadMatrix<T>(self, c.parallel);
                          const int64_t n = SizeAt(self, 0);
                          std::vector<T> x(a.size());
                          std::vector<int64_t> rows;
                          for (int64_t b = 0; b < Batch(self); ++b) {
                            T *lu = a.data() + b * n * n, *to = x.data() + b * n * n;
                            Lu(lu, n, &rows);
                            for (int64_t i = 0; i < n; ++i) {
                              if (lu[i * n + i] == T{0}) {
                                return Error(Code::kTaskException,
                                             "{}: matrix {} of self is singular: pivot {} is zero.", c.op.name, b, i)
                                    .Remedy("Only matrices of full rank have an inverse.");
                              }
                              to[i * n + rows[U(i)]] = T{1};
                            }
                            SolveTriangle(lu, n, int64_t{1}, false, true, n, to, n);
                            SolveTriangle(lu, n, int64_t{1}, true, false, n, to, n);
                          }
                          WriteMatrix(x, c.args[Inverse::out], c.parallel);
                          return {};
                        });
                      });

NPU_OP(Slogdet) = Op<Slogdet>()
                      .Rules(DtypeIn(Slogdet::self, kMatrixTypes), AnyShapes(Slogdet::signOut, Slogdet::logOut),
                             SameDtype(Slogdet::self, Slogdet::signOut), DtypeIn(Slogdet::logOut, kMatrixTypes))
                      .Tolerance("accumulated")
                      .Like("torch.slogdet(self)")
                      .Prepares([](Planning& p) -> Status {
                        const Tensor& self = p.args[Slogdet::self];
                        NPU_TRY(WantSquare(p, self, Slogdet::self));
                        Dims want = DimsOf(self);
                        want.rank -= 2;
                        NPU_TRY(WantShape(p, Slogdet::signOut, want, "there is one for each matrix"));
                        return WantShape(p, Slogdet::logOut, want, "there is one for each matrix");
                      })
                      .Does([](const Call& c) -> Status {
                        const Tensor &self = c.args[Slogdet::self], &log_out = c.args[Slogdet::logOut];
                        return WithPrecise(self.dtype, [&]<class T>() -> Status {
                          auto a = ReadMatrix<T>(self, c.parallel);
                          const int64_t n = SizeAt(self, 0), batch = Batch(self);
                          std::vector<T> sign(U(batch)), complex_log(U(batch));
                          std::vector<double> log(U(batch));
                          std::vector<int64_t> rows;
                          for (int64_t b = 0; b < batch; ++b) {
                            T* lu = a.data() + b * n * n;
                            T s = Lu(lu, n, &rows);
                            for (int64_t i = 0; i < n; ++i) {
                              const double size = std::abs(lu[i * n + i]);
                              s = size == 0 ? T{0} : s * (lu[i * n + i] / size);
                              log[U(b)] += std::log(size);
                            }
                            sign[U(b)] = s;
                            complex_log[U(b)] = log[U(b)];
                          }
                          WriteMatrix(sign, c.args[Slogdet::signOut], c.parallel);
                          if (IsComplex(log_out.dtype))
                            WriteMatrix(complex_log, log_out, c.parallel);
                          else
                            WriteMatrix(log, log_out, c.parallel);
                          return {};
                        });
                      });

NPU_OP(LinalgCholesky) =
    Op<LinalgCholesky>()
        .Rules(DtypeIn(LinalgCholesky::self, kMatrixTypes), SameShape(LinalgCholesky::self, LinalgCholesky::out),
               SameDtype(LinalgCholesky::self, LinalgCholesky::out))
        .Uses(LinalgCholesky::upper)
        .Tolerance("accumulated")
        .Like("torch.linalg.cholesky(self, upper=upper)")
        .Prepares([](Planning& p) { return WantSquare(p, p.args[LinalgCholesky::self], LinalgCholesky::self); })
        .Does([](const Call& c) -> Status {
          const Tensor& self = c.args[LinalgCholesky::self];
          const bool upper = c.args[LinalgCholesky::upper];
          return WithPrecise(self.dtype, [&]<class T>() -> Status {
            const auto a = ReadMatrix<T>(self, c.parallel);
            const int64_t n = SizeAt(self, 0);
            std::vector<T> l(a.size());
            for (int64_t b = 0; b < Batch(self); ++b) {
              const T* from = a.data() + b * n * n;
              T* to = l.data() + b * n * n;
              // Rows of the lower factor; the triangle that is read is the one that is written.
              auto at = [&](int64_t i, int64_t j) -> T& { return upper ? to[j * n + i] : to[i * n + j]; };
              for (int64_t j = 0; j < n; ++j) {
                double d = Real(from[j * n + j]);
                for (int64_t k = 0; k < j; ++k) d -= std::norm(at(j, k));
                if (!(d > 0)) {
                  return Error(Code::kTaskException,
                               "{}: matrix {} of self is not positive definite: the leading minor of order {} is {}.",
                               c.op.name, b, j + 1, d)
                      .Remedy("Pass symmetric (Hermitian) positive definite matrices.");
                }
                at(j, j) = std::sqrt(d);
                for (int64_t i = j + 1; i < n; ++i) {
                  T s = upper ? from[j * n + i] : from[i * n + j];
                  for (int64_t k = 0; k < j; ++k) s -= upper ? Conj(at(j, k)) * at(i, k) : at(i, k) * Conj(at(j, k));
                  at(i, j) = s / at(j, j);
                }
              }
            }
            WriteMatrix(l, c.args[LinalgCholesky::out], c.parallel);
            return {};
          });
        });

namespace {

// Householder as LAPACK does it: a (m x n) becomes R above the diagonal; q gets the first `columns` columns of Q.
template <class T>
void HouseholderQr(T* a, int64_t m, int64_t n, T* q, int64_t columns) {
  const int64_t steps = std::min(m, n);
  std::vector<T> taus(U(steps)), v(U(m));
  for (int64_t j = 0; j < steps; ++j) {
    double tail = 0;
    for (int64_t i = j + 1; i < m; ++i) tail += std::norm(a[i * n + j]);
    const T alpha = a[j * n + j];
    if (tail == 0 && Imag(alpha) == 0) continue;
    const double beta = -std::copysign(std::sqrt(std::norm(alpha) + tail), Real(alpha));
    const T tau = (beta - alpha) / beta, scale = T{1} / (alpha - beta);
    taus[U(j)] = tau;
    for (int64_t i = j + 1; i < m; ++i) a[i * n + j] *= scale;
    for (int64_t k = j + 1; k < n; ++k) {
      T dot = a[j * n + k];
      for (int64_t i = j + 1; i < m; ++i) dot += Conj(a[i * n + j]) * a[i * n + k];
      dot *= Conj(tau);
      a[j * n + k] -= dot;
      for (int64_t i = j + 1; i < m; ++i) a[i * n + k] -= a[i * n + j] * dot;
    }
    a[j * n + j] = beta;
  }
  if (q != nullptr) {
    std::fill(q, q + m * columns, T{0});
    for (int64_t i = 0; i < std::min(m, columns); ++i) q[i * columns + i] = T{1};
    for (int64_t j = steps - 1; j >= 0; --j) {
      if (taus[U(j)] == T{0}) continue;
      for (int64_t k = 0; k < columns; ++k) {
        T dot = q[j * columns + k];
        for (int64_t i = j + 1; i < m; ++i) dot += Conj(a[i * n + j]) * q[i * columns + k];
        dot *= taus[U(j)];
        q[j * columns + k] -= dot;
        for (int64_t i = j + 1; i < m; ++i) q[i * columns + k] -= a[i * n + j] * dot;
      }
    }
  }
  for (int64_t i = 1; i < m; ++i) std::fill(a + i * n, a + i * n + std::min(i, n), T{0});
}

}  // namespace

// mode: 0 reduced, 1 complete, 2 only R.
NPU_OP(LinalgQr) = Op<LinalgQr>()
                       .Rules(DtypeIn(LinalgQr::self, kMatrixTypes), AnyShapes(LinalgQr::Q, LinalgQr::R),
                              SameDtype(LinalgQr::self, LinalgQr::Q), SameDtype(LinalgQr::self, LinalgQr::R))
                       .Uses(LinalgQr::mode)
                       .Tolerance("accumulated")
                       .Like("torch.linalg.qr(self, ['reduced', 'complete', 'r'][mode])")
                       .Prepares([](Planning& p) -> Status {
                         const Tensor& self = p.args[LinalgQr::self];
                         const int64_t mode = p.args[LinalgQr::mode];
                         if (mode < 0 || mode > 2)
                           return p.Refuse("mode is {}.", mode).Remedy("Use 0 reduced, 1 complete or 2 only R.");
                         NPU_TRY(WantMatrices(p, self, LinalgQr::self));
                         const int64_t m = SizeAt(self, 1), k = mode == 1 ? m : std::min(m, SizeAt(self, 0));
                         Dims r = DimsOf(self), q = r;
                         r.size[U(r.rank - 2)] = k;
                         q.size[U(q.rank - 1)] = k;
                         if (mode != 2)
                           NPU_TRY(WantShape(p, LinalgQr::Q, q, "that is not the shape of the orthogonal factor"));
                         return WantShape(p, LinalgQr::R, r, "that is not the shape of the triangular factor");
                       })
                       .Does([](const Call& c) -> Status {
                         const Tensor& self = c.args[LinalgQr::self];
                         const int64_t mode = c.args[LinalgQr::mode];
                         return WithPrecise(self.dtype, [&]<class T>() -> Status {
                           auto a = ReadMatrix<T>(self, c.parallel);
                           const int64_t m = SizeAt(self, 1), n = SizeAt(self, 0), k = mode == 1 ? m : std::min(m, n),
                                         batch = Batch(self);
                           std::vector<T> q(mode == 2 ? 0 : U(batch * m * k)), r(U(batch * k * n));
                           c.parallel.For(batch, Grain(m * n * k), [&](int64_t begin, int64_t end) {
                             for (int64_t b = begin; b < end; ++b) {
                               HouseholderQr(a.data() + b * m * n, m, n, mode == 2 ? nullptr : q.data() + b * m * k, k);
                               std::copy(a.data() + b * m * n, a.data() + b * m * n + k * n, r.data() + b * k * n);
                             }
                           });
                           if (mode != 2) WriteMatrix(q, c.args[LinalgQr::Q], c.parallel);
                           WriteMatrix(r, c.args[LinalgQr::R], c.parallel);
                           return {};
                         });
                       });

NPU_OP(TriangularSolve) =
    Op<TriangularSolve>()
        .Required(TriangularSolve::self, TriangularSolve::A)
        .Rules(DtypeIn(TriangularSolve::self, kMatrixTypes), SameDtype(TriangularSolve::self, TriangularSolve::A),
               SameDtype(TriangularSolve::self, TriangularSolve::xOut),
               SameDtype(TriangularSolve::self, TriangularSolve::mOut),
               AnyShapes(TriangularSolve::xOut, TriangularSolve::mOut))
        .Uses(TriangularSolve::upper, TriangularSolve::transpose, TriangularSolve::unitriangular)
        .Tolerance("accumulated")
        .Like("torch.triangular_solve(self, A, upper, transpose, unitriangular)")
        .Prepares([](Planning& p) -> Status {
          using S = TriangularSolve;
          const Tensor &b = *p.args[S::self], &a = *p.args[S::A];
          NPU_TRY(WantSquare(p, a, S::A));
          if (b.rank < 2 || SizeAt(b, 1) != SizeAt(a, 0)) {
            return p.Refuse("A has shape {} and self {}.", ShapeText(a.Shape()), ShapeText(b.Shape()))
                .Remedy("self has as many rows as A.");
          }
          Dims want{b.rank - 2, b.shape};
          int bad = 0;
          if (!BroadcastInto(&want, a.Shape().first(U(a.rank - 2)), &bad)) {
            return p.Refuse("the batches of A {} and self {} differ.", ShapeText(a.Shape()), ShapeText(b.Shape()))
                .Remedy("Sizes must be equal or 1.");
          }
          Dims matrices = want;
          want.Push(SizeAt(b, 1));
          want.Push(SizeAt(b, 0));
          NPU_TRY(WantShape(p, S::xOut, want, "that is not the shape of the solutions"));
          matrices.Push(SizeAt(a, 0));
          matrices.Push(SizeAt(a, 0));
          if (p.args[S::mOut].Numel() == 0) return {};
          return WantShape(p, S::mOut, matrices, "it is a copy of A");
        })
        .Does([](const Call& c) -> Status {
          using S = TriangularSolve;
          const Tensor& x_out = c.args[S::xOut];
          const int64_t n = SizeAt(x_out, 1), m = SizeAt(x_out, 0);
          Dims matrices = DimsOf(x_out);
          matrices.size[U(matrices.rank - 1)] = n;
          return WithPrecise(x_out.dtype, [&]<class T>() -> Status {
            auto x = ReadMatrix<T>(Expanded(*c.args[S::self], x_out.Shape()), c.parallel);
            auto a = ReadMatrix<T>(Expanded(*c.args[S::A], matrices.Span()), c.parallel);
            const bool transposed = c.args[S::transpose];
            if (c.args[S::mOut].Numel() > 0) WriteMatrix(a, c.args[S::mOut], c.parallel);
            for (int64_t b = 0; b < Batch(x_out); ++b) {
              SolveTriangle(a.data() + b * n * n, transposed ? int64_t{1} : n, transposed ? n : int64_t{1},
                            c.args[S::upper] != transposed, c.args[S::unitriangular], n, x.data() + b * n * m, m);
            }
            WriteMatrix(x, x_out, c.parallel);
            return {};
          });
        });

namespace {

// One-sided Jacobi: w (m x n, m >= n, by columns) becomes U·S, v (n x n, by columns) the right vectors.
template <class T>
void Jacobi(std::vector<std::vector<T>>* w, std::vector<std::vector<T>>* v) {
  const size_t n = w->size();
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool rotated = false;
    for (size_t p = 0; p < n; ++p) {
      for (size_t q = p + 1; q < n; ++q) {
        double alpha = 0, beta = 0;
        T gamma{};
        for (size_t i = 0; i < (*w)[p].size(); ++i) {
          alpha += std::norm((*w)[p][i]);
          beta += std::norm((*w)[q][i]);
          gamma += Conj((*w)[p][i]) * (*w)[q][i];
        }
        const double size = std::abs(gamma);
        if (size <= 1e-15 * std::sqrt(alpha * beta) || size == 0) continue;
        rotated = true;
        const T phase = gamma / size;
        const double zeta = (beta - alpha) / (2 * size);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
        auto turn = [&](std::vector<T>& a, std::vector<T>& b) {
          for (size_t i = 0; i < a.size(); ++i) {
            const T x = a[i], y = Conj(phase) * b[i];
            a[i] = cosine * x - sine * y;
            b[i] = sine * x + cosine * y;
          }
        };
        turn((*w)[p], (*w)[q]);
        turn((*v)[p], (*v)[q]);
      }
    }
    if (!rotated) return;
  }
}

// Columns orthonormal to those that are there, up to `count`; columns that are null vectors are replaced.
template <class T>
void Complete(std::vector<std::vector<T>>* columns, size_t count, size_t rows) {
  for (size_t k = 0; k < std::max(count, columns->size()); ++k) {
    if (k == columns->size()) columns->emplace_back(rows, T{});
    double norm = 0;
    for (const T& x : (*columns)[k]) norm += std::norm(x);
    if (norm > 0.5) continue;
    std::vector<T> best;
    double longest = 0;
    for (size_t unit = 0; unit < rows; ++unit) {
      std::vector<T> candidate(rows, T{});
      candidate[unit] = T{1};
      for (int pass = 0; pass < 2; ++pass) {
        for (const auto& other : *columns) {
          T dot{};
          for (size_t i = 0; i < rows; ++i) dot += Conj(other[i]) * candidate[i];
          for (size_t i = 0; i < rows; ++i) candidate[i] -= dot * other[i];
        }
      }
      double length = 0;
      for (const T& x : candidate) length += std::norm(x);
      if (length > longest) longest = length, best = candidate;
      if (longest > 0.25) break;
    }
    for (T& x : best) x /= std::sqrt(longest);
    (*columns)[k] = best;
  }
}

}  // namespace

// input = u · diag(sigma) · v^H.
NPU_OP(Svd) = Op<Svd>()
                  .Rules(DtypeIn(Svd::input, kMatrixTypes), AnyShapes(Svd::sigma, Svd::u, Svd::v),
                         DtypeIn(Svd::sigma, kMatrixTypes), SameDtype(Svd::input, Svd::u),
                         SameDtype(Svd::input, Svd::v))
                  .Uses(Svd::fullMatrices, Svd::computeUV)
                  .Tolerance("accumulated")
                  .Like("torch.linalg.svd(input, fullMatrices)")
                  .Prepares([](Planning& p) -> Status {
                    const Tensor& x = p.args[Svd::input];
                    NPU_TRY(WantMatrices(p, x, Svd::input));
                    const int64_t m = SizeAt(x, 1), n = SizeAt(x, 0), k = std::min(m, n);
                    const bool full = p.args[Svd::fullMatrices];
                    Dims s = DimsOf(x), u = s, v = s;
                    --s.rank;
                    s.size[U(s.rank - 1)] = k;
                    NPU_TRY(WantShape(p, Svd::sigma, s, "there are min(m, n) singular values"));
                    if (!p.args[Svd::computeUV]) return {};
                    u.size[U(u.rank - 1)] = full ? m : k;
                    v.size[U(v.rank - 2)] = n;
                    v.size[U(v.rank - 1)] = full ? n : k;
                    NPU_TRY(WantShape(p, Svd::u, u, "its columns are the left vectors"));
                    return WantShape(p, Svd::v, v, "its columns are the right vectors");
                  })
                  .Does([](const Call& c) -> Status {
                    const Tensor& input = c.args[Svd::input];
                    return WithPrecise(input.dtype, [&]<class T>() -> Status {
                      const auto a = ReadMatrix<T>(input, c.parallel);
                      const int64_t m = SizeAt(input, 1), n = SizeAt(input, 0), k = std::min(m, n),
                                    batch = Batch(input);
                      const bool full = c.args[Svd::fullMatrices], vectors = c.args[Svd::computeUV], wide = m < n;
                      const int64_t u_columns = full ? m : k, v_columns = full ? n : k;
                      std::vector<T> sigma(U(batch * k)), u(vectors ? U(batch * m * u_columns) : 0),
                          v(vectors ? U(batch * n * v_columns) : 0);
                      c.parallel.For(batch, 1, [&](int64_t begin, int64_t end) {
                        for (int64_t b = begin; b < end; ++b) {
                          const T* x = a.data() + b * m * n;
                          // The taller of the matrix and its adjoint, by columns.
                          std::vector<std::vector<T>> w(U(k), std::vector<T>(U(std::max(m, n)))),
                              right(U(k), std::vector<T>(U(k)));
                          for (int64_t j = 0; j < k; ++j) {
                            right[U(j)][U(j)] = T{1};
                            for (int64_t i = 0; i < std::max(m, n); ++i)
                              w[U(j)][U(i)] = wide ? Conj(x[j * n + i]) : x[i * n + j];
                          }
                          Jacobi(&w, &right);
                          std::vector<double> size(U(k));
                          for (int64_t j = 0; j < k; ++j) {
                            double norm = 0;
                            for (const T& e : w[U(j)]) norm += std::norm(e);
                            size[U(j)] = std::sqrt(norm);
                          }
                          std::vector<int64_t> order(U(k));
                          std::iota(order.begin(), order.end(), int64_t{0});
                          std::stable_sort(order.begin(), order.end(),
                                           [&](int64_t i, int64_t j) { return size[U(i)] > size[U(j)]; });
                          std::vector<std::vector<T>> left_sorted, right_sorted;
                          for (int64_t j = 0; j < k; ++j) {
                            const int64_t from = order[U(j)];
                            const double s = size[U(from)];
                            sigma[U(b * k + j)] = s;
                            for (T& e : w[U(from)]) e = s > 0 ? e / s : T{};
                            left_sorted.push_back(w[U(from)]);
                            right_sorted.push_back(right[U(from)]);
                          }
                          if (!vectors) continue;
                          auto& us = wide ? right_sorted : left_sorted;
                          auto& vs = wide ? left_sorted : right_sorted;
                          Complete(&us, U(u_columns), U(m));
                          Complete(&vs, U(v_columns), U(n));
                          for (int64_t j = 0; j < u_columns; ++j)
                            for (int64_t i = 0; i < m; ++i) u[U((b * m + i) * u_columns + j)] = us[U(j)][U(i)];
                          for (int64_t j = 0; j < v_columns; ++j)
                            for (int64_t i = 0; i < n; ++i) v[U((b * n + i) * v_columns + j)] = vs[U(j)][U(i)];
                        }
                      });
                      if (IsComplex(c.args[Svd::sigma].dtype)) {
                        WriteMatrix(sigma, c.args[Svd::sigma], c.parallel);
                      } else {
                        std::vector<double> real(sigma.size());
                        for (size_t i = 0; i < real.size(); ++i) real[i] = Real(sigma[i]);
                        WriteMatrix(real, c.args[Svd::sigma], c.parallel);
                      }
                      if (!vectors) return {};
                      WriteMatrix(u, c.args[Svd::u], c.parallel);
                      WriteMatrix(v, c.args[Svd::v], c.parallel);
                      return {};
                    });
                  });

}  // namespace npu::ops
