#include "kernels/simd/loss/loss.h"

#include <algorithm>
#include <vector>

#include "kernels/simd/copy/copy.h"
#include "kernels/simd/index/indices.h"
#include "kernels/simd/loss/loss_rows.h"
#include "kernels/simd/rows/dense.h"
#include "kernels/simd/rows/for_elements.h"
#include "kernels/simd/rows/rows.h"
#include "kernels/simd/rows/scratch.h"

namespace npu::simd {
namespace {

// Sizes the mean divides by.
double MeanFactor(const Tensor& t, Reduction reduction) {
  return reduction == Reduction::kMean ? 1 / static_cast<double>(t.Numel()) : 1;
}

// Calls the row function with the optional rows in place. Absent ones stand in as x and become null.
template <class C, class F>
double Each(const LossArgs& a, const Tensor* extra, const Tensor* out, Parallel& parallel, const F& f) {
  const Tensor* w = a.weight != nullptr ? a.weight : a.x;
  const Tensor* p = a.pos_weight != nullptr ? a.pos_weight : a.x;
  const Tensor* e = extra != nullptr ? extra : a.x;
  return SumElements<C, 5>({a.x, a.y, w, p, e}, out, parallel, [&](const C* const* in, C* to, int64_t n) {
    return f(in[0], in[1], a.weight != nullptr ? in[2] : nullptr, a.pos_weight != nullptr ? in[3] : nullptr, in[4], to, n);
  });
}

template <class C>
void Forward(Loss loss, const LossArgs& a, Reduction reduction, const Tensor& out, Parallel& parallel) {
  const auto row = LossRows<C>().loss[static_cast<size_t>(loss)];
  const C beta = static_cast<C>(a.beta);
  if (reduction == Reduction::kNone) {
    Each<C>(a, nullptr, &out, parallel, [&](const C* x, const C* y, const C* w, const C* p, const C*, C* to, int64_t n) {
      row(x, y, w, p, beta, to, n);
      return C{0};
    });
    return;
  }
  const double sum =
      Each<C>(a, nullptr, nullptr, parallel, [&](const C* x, const C* y, const C* w, const C* p, const C*, C* to, int64_t n) {
        row(x, y, w, p, beta, to, n);
        return Rows<C>().fold[kSum](to, n, 0);
      });
  const double result = reduction == Reduction::kMean ? sum / static_cast<double>(a.x->Numel()) : sum;
  StoreDense(&result, out);
}

template <class C>
void Backward(typename LossTable<C>::Row row, const LossArgs& a, const Tensor& grad, Reduction reduction, const Tensor& out,
              Parallel& parallel) {
  const C factor = static_cast<C>(MeanFactor(*a.x, reduction));
  const C beta = static_cast<C>(a.beta);
  Each<C>(a, &grad, &out, parallel, [&](const C* x, const C* y, const C* w, const C* p, const C* g, C* to, int64_t n) {
    alignas(64) C value[kChunk];
    row(x, y, w, p, beta, value, n);
    Rows<C>().mul(value, g, to, n);
    if (factor != 1) Rows<C>().scale(to, factor, to, n);
    return C{0};
  });
}

// x [N, C, S…] as strides over samples: dimension 1 (or 0 of a vector) is the class.
struct Samples {
  Walk<3> walk;  // x, target, out (or grad)
  int64_t classes, class_step;

  Samples(const Tensor& x, const Tensor& target, const Tensor* other) {
    const int axis = x.rank == 1 ? 0 : 1;
    classes = x.shape[static_cast<size_t>(axis)];
    class_step = x.strides[static_cast<size_t>(axis)];
    int t = 0;
    for (int d = 0; d < x.rank; ++d) {
      if (d == axis) continue;
      const auto i = static_cast<size_t>(d), k = static_cast<size_t>(t);
      walk.Add(x.shape[i], {x.strides[i], target.strides[k], other != nullptr && other->rank > t ? other->strides[k] : 0});
      ++t;
    }
    walk.Merge();
  }
};

// The class of each sample, −1 where it is ignored.
IndexResult Classes(const Tensor& target, int64_t classes, int64_t ignore, int axis, int64_t* out) {
  LoadDense(target, out);
  FirstBad bad;
  for (int64_t i = 0; i < target.Numel(); ++i) {
    if (out[i] == ignore) out[i] = -1;
    else if (!bad.Check(out + i, 1, classes, false, i)) break;
  }
  return bad.Result(axis, classes);
}

}  // namespace

void LossForward(Loss loss, const LossArgs& args, Reduction reduction, const Tensor& out, Parallel& parallel) {
  if (args.x->dtype == DType::f64) Forward<double>(loss, args, reduction, out, parallel);
  else Forward<float>(loss, args, reduction, out, parallel);
}
void LossBackward(Loss loss, const LossArgs& args, const Tensor& grad, Reduction reduction, const Tensor& out,
                  Parallel& parallel) {
  const auto i = static_cast<size_t>(loss);
  if (args.x->dtype == DType::f64) Backward<double>(LossRows<double>().grad[i], args, grad, reduction, out, parallel);
  else Backward<float>(LossRows<float>().grad[i], args, grad, reduction, out, parallel);
}
void KlTargetBackward(bool log_target, const Tensor& x, const Tensor& y, const Tensor& grad, Reduction reduction,
                      const Tensor& out, Parallel& parallel) {
  const LossArgs args{&x, &y};
  const size_t i = log_target ? 1 : 0;
  if (x.dtype == DType::f64) Backward<double>(LossRows<double>().target_grad[i], args, grad, reduction, out, parallel);
  else Backward<float>(LossRows<float>().target_grad[i], args, grad, reduction, out, parallel);
}

IndexResult NllForward(const Tensor& x, const Tensor& target, const Tensor* weight, Reduction reduction, int64_t ignore,
                       const Tensor& out, const Tensor& total, Parallel& parallel) {
  const Samples s(x, target, reduction == Reduction::kNone ? &out : nullptr);
  const int64_t n = target.Numel();
  Scratch<int64_t> classes(n);
  if (auto bad = Classes(target, s.classes, ignore, x.rank == 1 ? 0 : 1, classes.data())) return bad;
  std::vector<double> w(static_cast<size_t>(s.classes), 1.0);
  if (weight != nullptr) LoadDense(*weight, w.data());
  constexpr int64_t kBlock = 4096;
  std::vector<double> sums(static_cast<size_t>((n + kBlock - 1) / kBlock), 0.0), weights = sums;
  parallel.For(n, kBlock, [&](int64_t begin, int64_t end) {
    Walk<3> walk = s.walk;
    walk.Seek(begin);
    double sum = 0, weight_sum = 0;
    for (int64_t i = begin; i < end; ++i, walk.Next()) {
      const int64_t c = classes[i];
      double loss = 0;
      if (c >= 0) {
        const double wc = w[static_cast<size_t>(c)];
        loss = -wc * LoadDouble(At(x.data, x.dtype, walk.offset[0] + c * s.class_step), x.dtype);
        weight_sum += wc;
      }
      sum += loss;
      if (reduction == Reduction::kNone) Write(&loss, 1, At(out.data, out.dtype, walk.offset[2]), out.dtype, 1);
    }
    sums[static_cast<size_t>(begin / kBlock)] = sum;
    weights[static_cast<size_t>(begin / kBlock)] = weight_sum;
  });
  double sum = 0, weight_sum = 0;
  for (size_t b = 0; b < sums.size(); ++b) {
    sum += sums[b];
    weight_sum += weights[b];
  }
  if (reduction == Reduction::kMean) sum /= weight_sum;
  if (reduction != Reduction::kNone) StoreDense(&sum, out);
  if (reduction == Reduction::kNone) weight_sum = 0;
  StoreDense(&weight_sum, total);
  return {};
}

IndexResult NllBackward(const Tensor& grad, const Tensor& target, const Tensor* weight, Reduction reduction, int64_t ignore,
                        const Tensor& total, const Tensor& out, Parallel& parallel) {
  const Samples s(out, target, reduction == Reduction::kNone ? &grad : nullptr);
  const int64_t n = target.Numel();
  Scratch<int64_t> classes(n);
  if (auto bad = Classes(target, s.classes, ignore, out.rank == 1 ? 0 : 1, classes.data())) return bad;
  std::vector<double> w(static_cast<size_t>(s.classes), 1.0);
  if (weight != nullptr) LoadDense(*weight, w.data());
  const uint64_t zero[2] = {};
  Fill(zero, out, parallel);
  double factor = 1;
  if (reduction != Reduction::kNone) factor = LoadDouble(grad.data, grad.dtype);
  if (reduction == Reduction::kMean) factor /= LoadDouble(total.data, total.dtype);
  parallel.For(n, 4096, [&](int64_t begin, int64_t end) {
    Walk<3> walk = s.walk;
    walk.Seek(begin);
    for (int64_t i = begin; i < end; ++i, walk.Next()) {
      const int64_t c = classes[i];
      if (c < 0) continue;
      double g = factor;
      if (reduction == Reduction::kNone) g = LoadDouble(At(grad.data, grad.dtype, walk.offset[2]), grad.dtype);
      g *= -w[static_cast<size_t>(c)];
      Write(&g, 1, At(out.data, out.dtype, walk.offset[0] + c * s.class_step), out.dtype, 1);
    }
  });
  return {};
}

}  // namespace npu::simd
