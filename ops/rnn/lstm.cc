// LSTM networks and the fused cell. Products are matrix products, gates are plain loops. Between layers nothing is
// dropped unless the network trains with dropout, which is refused.
#include <cmath>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/rnn/layers.h"

namespace npu::ops {

using namespace rule;       // NOLINT(google-build-using-namespace)
using namespace recurrent;  // NOLINT(google-build-using-namespace)

namespace {

using abi::LSTM, abi::LstmBackward;

Status PlanLstm(const Planning& p, const Tensor& input, std::span<const Tensor> params, std::span<const Tensor> state,
                bool biased, int64_t layers, bool both, bool batch_first, double dropout, bool train,
                const Tensor* batch_sizes, Network* net) {
  if (dropout > 0 && train && layers > 1) return NotYet(p.op.name, "dropout between layers is not computed yet.");
  if (!IsFloat(input.dtype)) return p.Refuse("input is {}.", Name(input.dtype)).Remedy("Use a float type.");
  NPU_TRY(PlanNetwork(p.op.name, input, params, biased, layers, both, batch_first, 4, net));
  if (batch_sizes == nullptr && input.rank != 3)
    return p.Refuse("input has {} dimensions.", input.rank).Remedy("Pass [steps, batch, features].");
  if (!state.empty() && state.size() != 2)
    return p.Refuse("hx has {} tensors.", state.size()).Remedy("Pass the first hidden state and the first cell state.");
  for (const Tensor& t : state) {
    if (t.dtype != DType::none && (t.rank != 3 || t.shape[0] != net->Cells() || t.shape[2] != net->hidden))
      return p.Refuse("hx has shape {}.", ShapeText(t.Shape()))
          .Remedy("Its sizes are {}, the batch and {}.", net->Cells(), net->hidden);
  }
  return {};
}

Status WantState(const Planning& p, const Network& net, TensorToken name, int64_t batch) {
  Dims want;
  want.Push(net.Cells());
  want.Push(batch);
  want.Push(net.hidden);
  return WantShape(p, name, want, "it is the state of each direction of each layer");
}

template <class T>
std::vector<T> StateOf(std::span<const Tensor> hx, size_t which, const Network& net, Parallel& parallel) {
  std::vector<T> state(U(net.Cells() * net.steps.sequences * net.hidden));
  if (which < hx.size() && hx[which].dtype != DType::none) {
    const Values<T> given(hx[which], parallel);
    std::copy(given.data(), given.data() + std::min<int64_t>(given.size(), static_cast<int64_t>(state.size())),
              state.data());
  }
  return state;
}

template <class T>
Status Run(const Call& c, Network net) {
  const Tensor x = TimeMajor(c.args[LSTM::input], net.batch_first);
  const Values<T> input(x, c.parallel);
  const Lists<T> params(c.args[LSTM::params], c.parallel);
  const int64_t rows = net.steps.rows, n = net.hidden, cells = net.Cells(), state_size = net.steps.sequences * n;
  std::vector<T> h = StateOf<T>(c.args[LSTM::hx], 0, net, c.parallel),
                 cell_state = StateOf<T>(c.args[LSTM::hx], 1, net, c.parallel);
  using L = ResultLists<T>;
  L i(c.args[LSTM::iOut], cells, rows * n, c.parallel), g(c.args[LSTM::jOut], cells, rows * n, c.parallel),
      f(c.args[LSTM::fOut], cells, rows * n, c.parallel), o(c.args[LSTM::oOut], cells, rows * n, c.parallel),
      hs(c.args[LSTM::hOut], cells, rows * n, c.parallel), cs(c.args[LSTM::cOut], cells, rows * n, c.parallel),
      tanh_c(c.args[LSTM::tanhCOut], cells, rows * n, c.parallel);
  std::vector<T> below;
  const T* from = input.data();
  int64_t features = SizeAt(x, 0);
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    std::vector<const T*> states;
    for (int64_t d = 0; d < net.directions; ++d) {
      const int64_t k = layer * net.directions + d;
      rnn::Steps steps = net.steps;
      steps.reverse = d == 1;
      if (steps.rows != 0) std::fill(hs[k], hs[k] + rows * n, T{0});
      NPU_TRY(rnn::LstmForward<T>(c.parallel, steps, CellOf(net, params, k, features), from, h.data() + k * state_size,
                                  cell_state.data() + k * state_size,
                                  {i[k], f[k], g[k], o[k], hs[k], cs[k], tanh_c[k]}));
      states.push_back(hs[k]);
    }
    below = SideBySide(net, states);
    from = below.data();
    features = net.directions * n;
  }
  const Tensor y = TimeMajor(c.args[LSTM::output], net.batch_first);
  simd::Copy(MakeContiguous(below.data(), TypeOf<T>(), y.Shape()), y, c.parallel);
  const Tensor &hy = c.args[LSTM::hy], &cy = c.args[LSTM::cy];
  simd::Copy(MakeContiguous(h.data(), TypeOf<T>(), hy.Shape()), hy, c.parallel);
  simd::Copy(MakeContiguous(cell_state.data(), TypeOf<T>(), cy.Shape()), cy, c.parallel);
  return {};
}

}  // namespace

NPU_OP(LSTM) = Op<LSTM>()
                   .Rules(AnyShapes(LSTM::output, LSTM::hy, LSTM::cy),
                          FloatTensors(LSTM::input, LSTM::output, LSTM::hy, LSTM::cy), AnyShape(LSTM::iOut),
                          AnyDtype(LSTM::iOut),
                          Bind(kAnyLists, 0, LSTM::jOut, LSTM::fOut, LSTM::oOut, LSTM::hOut, LSTM::cOut,
                               LSTM::tanhCOut))
                   .Uses(LSTM::params, LSTM::hx, LSTM::batchSizes, LSTM::hasBias, LSTM::numLayers, LSTM::dropout,
                         LSTM::train, LSTM::bidirectional, LSTM::batchFirst)
                   .Optional(LSTM::hx, LSTM::batchSizes)
                   .Tolerance("accumulated")
                   .Like("lstm(input, params, hx)")
                   .Prepares([](Planning& p) -> Status {
                     const Args& a = p.args;
                     Network net;
                     NPU_TRY(PlanLstm(p, a[LSTM::input], a[LSTM::params], a[LSTM::hx], a[LSTM::hasBias],
                                      a[LSTM::numLayers], a[LSTM::bidirectional], a[LSTM::batchFirst], a[LSTM::dropout],
                                      a[LSTM::train], a[LSTM::batchSizes], &net));
                     Dims want = DimsOf(a[LSTM::input]);
                     want.size[U(want.rank - 1)] = net.directions * net.hidden;
                     NPU_TRY(WantShape(p, LSTM::output, want, "that is not the shape of the states of the last layer"));
                     const Tensor& hy = a[LSTM::hy];
                     const int64_t batch = a[LSTM::batchSizes] == nullptr
                                               ? TimeMajor(a[LSTM::input], net.batch_first).shape[1]
                                           : hy.rank == 3 ? hy.shape[1]
                                                          : 0;
                     NPU_TRY(WantState(p, net, LSTM::hy, batch));
                     return WantState(p, net, LSTM::cy, batch);
                   })
                   .Does([](const Call& c) -> Status {
                     const Args& a = c.args;
                     Network net;
                     NPU_TRY(PlanNetwork(c.op.name, a[LSTM::input], a[LSTM::params], a[LSTM::hasBias],
                                         a[LSTM::numLayers], a[LSTM::bidirectional], a[LSTM::batchFirst], 4, &net));
                     NPU_TRY(ReadSteps(c.op.name, a[LSTM::input], a[LSTM::batchSizes], c.parallel, &net));
                     if (net.Cells() * net.steps.sequences * net.hidden != a[LSTM::hy].Numel()) {
                       return Error(Code::kTaskException, "{}: hy has shape {} for {} sequences.", c.op.name,
                                    ShapeText(a[LSTM::hy].Shape()), net.steps.sequences)
                           .Remedy("batchSizes begins with the number of sequences.");
                     }
                     return WithFloat(a[LSTM::input].dtype, [&]<class T>() { return Run<T>(c, net); });
                   });

namespace {

template <class T>
Status RunBackward(const Call& c, Network net) {
  using B = LstmBackward;
  const Args& a = c.args;
  const Tensor x = TimeMajor(a[B::input], net.batch_first);
  const Values<T> input(x, c.parallel);
  const Lists<T> params(a[B::params], c.parallel), i(a[B::i], c.parallel), g(a[B::g], c.parallel),
      f(a[B::f], c.parallel), o(a[B::o], c.parallel), hs(a[B::h], c.parallel), cs(a[B::c], c.parallel),
      tanh_c(a[B::tanhc], c.parallel);
  const int64_t rows = net.steps.rows, n = net.hidden, cells = net.Cells(), state_size = net.steps.sequences * n,
                wide = net.directions * n;
  const std::vector<T> h0 = StateOf<T>(a[B::hx], 0, net, c.parallel), c0 = StateOf<T>(a[B::hx], 1, net, c.parallel);
  std::vector<T> dh(U(cells * state_size)), dc(U(cells * state_size));
  auto load = [&](const Tensor& t, std::vector<T>* to) {
    if (t.Numel() != static_cast<int64_t>(to->size())) return;
    const Values<T> v(t, c.parallel);
    to->assign(v.data(), v.data() + v.size());
  };
  // A gradient that nothing asked for is null.
  if (const Tensor* t = a.Maybe(B::dh)) load(*t, &dh);
  if (const Tensor* t = a.Maybe(B::dc)) load(*t, &dc);
  std::vector<T> above(U(rows * wide));
  if (const Tensor* t = a.Maybe(B::dy)) load(TimeMajor(*t, net.batch_first), &above);
  const auto out = a[B::dparamsOut];
  for (int64_t layer = net.layers - 1; layer >= 0; --layer) {
    const int64_t features = layer == 0 ? SizeAt(x, 0) : wide;
    std::vector<T> below;
    if (layer > 0) {
      std::vector<const T*> states;
      for (int64_t d = 0; d < net.directions; ++d) states.push_back(hs[(layer - 1) * net.directions + d]);
      below = SideBySide(net, states);
    }
    std::vector<T> dx(U(rows * features));
    for (int64_t d = 0; d < net.directions; ++d) {
      const int64_t k = layer * net.directions + d;
      rnn::Steps steps = net.steps;
      steps.reverse = d == 1;
      std::vector<T> dy(U(rows * n));
      for (int64_t r = 0; r < rows; ++r)
        std::copy(&above[U(r * wide + d * n)], &above[U(r * wide + d * n)] + n, &dy[U(r * n)]);
      std::vector<T> dwx(U(4 * n * features)), dwh(U(4 * n * n)), db(U(4 * n));
      const rnn::LstmTrace<T> trace{const_cast<T*>(i[k]),     const_cast<T*>(f[k]),  const_cast<T*>(g[k]),
                                    const_cast<T*>(o[k]),     const_cast<T*>(hs[k]), const_cast<T*>(cs[k]),
                                    const_cast<T*>(tanh_c[k])};
      NPU_TRY(rnn::LstmBackward<T>(
          c.parallel, steps, CellOf(net, params, k, features), layer > 0 ? below.data() : input.data(),
          h0.data() + k * state_size, c0.data() + k * state_size, trace, dy.data(), dh.data() + k * state_size,
          dc.data() + k * state_size, {dx.data(), dwx.data(), dwh.data(), db.data(), nullptr}));
      const std::vector<T>* parts[4] = {&dwx, &dwh, &db, &db};
      for (int64_t part = 0; part < net.PerCell() && k * net.PerCell() + part < static_cast<int64_t>(out.size());
           ++part) {
        const Tensor& to = out[U(k * net.PerCell() + part)];
        if (to.dtype == DType::none || to.Numel() == 0) continue;
        simd::Copy(MakeContiguous(const_cast<T*>(parts[part]->data()), TypeOf<T>(), to.Shape()), to, c.parallel);
      }
    }
    above = std::move(dx);
  }
  auto store = [&](std::vector<T>& from, const Tensor& to) {
    if (to.Numel() == static_cast<int64_t>(from.size()))
      simd::Copy(MakeContiguous(from.data(), TypeOf<T>(), to.Shape()), to, c.parallel);
  };
  if (const Tensor* t = a.Maybe(B::dxOut)) store(above, TimeMajor(*t, net.batch_first));
  if (const Tensor* t = a.Maybe(B::dhPrevOut)) store(dh, *t);
  if (const Tensor* t = a.Maybe(B::dcPrevOut)) store(dc, *t);
  return {};
}

}  // namespace

NPU_OP(LstmBackward) =
    Op<LstmBackward>()
        .Rules(SameShape(LstmBackward::input, LstmBackward::dxOut),
               AnyShapes(LstmBackward::dhPrevOut, LstmBackward::dcPrevOut),
               FloatTensors(LstmBackward::input, LstmBackward::dy, LstmBackward::dh, LstmBackward::dc,
                            LstmBackward::dxOut),
               AnyDtype(LstmBackward::dhPrevOut), AnyDtype(LstmBackward::dcPrevOut), AnyShape(LstmBackward::dparamsOut),
               AnyDtype(LstmBackward::dparamsOut))
        .Uses(LstmBackward::hx, LstmBackward::params, LstmBackward::i, LstmBackward::g, LstmBackward::f,
              LstmBackward::o, LstmBackward::h, LstmBackward::c, LstmBackward::tanhc, LstmBackward::batchSizesOptional,
              LstmBackward::hasBias, LstmBackward::numLayers, LstmBackward::dropout, LstmBackward::train,
              LstmBackward::bidirectional, LstmBackward::batchFirst, LstmBackward::outputMask)
        .Optional(LstmBackward::dy, LstmBackward::dh, LstmBackward::dc, LstmBackward::dxOut, LstmBackward::dhPrevOut,
                  LstmBackward::dcPrevOut, LstmBackward::outputMask)
        .Tolerance("accumulated")
        .Like("lstm_backward(input, hx, params, dy, dh, dc)")
        .Prepares([](Planning& p) -> Status {
          using B = LstmBackward;
          const Args& a = p.args;
          Network net;
          NPU_TRY(PlanLstm(p, a[B::input], a[B::params], a[B::hx], a[B::hasBias], a[B::numLayers], a[B::bidirectional],
                           a[B::batchFirst], a[B::dropout], a[B::train], a[B::batchSizesOptional], &net));
          for (const auto& list : {a[B::i], a[B::g], a[B::f], a[B::o], a[B::h], a[B::c], a[B::tanhc]}) {
            if (static_cast<int64_t>(list.size()) == net.Cells()) continue;
            return p.Refuse("a list of gates has {} tensors.", list.size())
                .Remedy("Pass the {} that aclnnLSTM wrote.", net.Cells());
          }
          return {};
        })
        .Does([](const Call& c) -> Status {
          using B = LstmBackward;
          const Args& a = c.args;
          Network net;
          NPU_TRY(PlanNetwork(c.op.name, a[B::input], a[B::params], a[B::hasBias], a[B::numLayers], a[B::bidirectional],
                              a[B::batchFirst], 4, &net));
          NPU_TRY(ReadSteps(c.op.name, a[B::input], a[B::batchSizesOptional], c.parallel, &net));
          for (const auto& list : {a[B::i], a[B::g], a[B::f], a[B::o], a[B::h], a[B::c], a[B::tanhc]}) {
            for (const Tensor& t : list) {
              if (t.Numel() >= net.steps.rows * net.hidden) continue;
              return Error(Code::kTaskException, "{}: a tensor of gates has shape {} for {} rows of {}.", c.op.name,
                           ShapeText(t.Shape()), net.steps.rows, net.hidden)
                  .Remedy("Pass what aclnnLSTM wrote.");
            }
          }
          return WithFloat(a[B::input].dtype, [&]<class T>() { return RunBackward<T>(c, net); });
        });

using abi::ThnnFusedLstmCell, abi::ThnnFusedLstmCellBackward;
NPU_OP(ThnnFusedLstmCell) =
    Op<ThnnFusedLstmCell>()
        .Rules(FloatTensors(ThnnFusedLstmCell::inputGates, ThnnFusedLstmCell::cx, ThnnFusedLstmCell::hyOut,
                            ThnnFusedLstmCell::cyOut, ThnnFusedLstmCell::storageOut),
               SameShape(ThnnFusedLstmCell::inputGates, ThnnFusedLstmCell::hiddenGates),
               SameShape(ThnnFusedLstmCell::cx, ThnnFusedLstmCell::hyOut),
               SameShape(ThnnFusedLstmCell::cx, ThnnFusedLstmCell::cyOut),
               SameShape(ThnnFusedLstmCell::inputGates, ThnnFusedLstmCell::storageOut))
        .Uses(ThnnFusedLstmCell::inputBiasOptional, ThnnFusedLstmCell::hiddenBiasOptional)
        .Tolerance("accumulated")
        .Like("lstm_cell(inputGates, hiddenGates, cx, inputBiasOptional, hiddenBiasOptional)")
        .Prepares([](Planning& p) -> Status {
          using A = ThnnFusedLstmCell;
          const Tensor &gates = p.args[A::inputGates], &cx = p.args[A::cx];
          bool fits =
              gates.rank == 2 && cx.rank == 2 && gates.shape[0] == cx.shape[0] && gates.shape[1] == 4 * cx.shape[1];
          for (const Tensor* bias : {p.args[A::inputBiasOptional], p.args[A::hiddenBiasOptional]})
            fits = fits && (bias == nullptr || bias->Numel() == gates.shape[1]);
          if (fits) return {};
          return p.Refuse("inputGates has shape {} and cx {}.", ShapeText(gates.Shape()), ShapeText(cx.Shape()))
              .Remedy("Pass [batch, 4 * hidden] and [batch, hidden].");
        })
        .Does([](const Call& c) -> Status {
          using A = ThnnFusedLstmCell;
          return WithFloat(c.args[A::cx].dtype, [&]<class T>() -> Status {
            const Values<T> x(c.args[A::inputGates], c.parallel), h(c.args[A::hiddenGates], c.parallel),
                cx(c.args[A::cx], c.parallel);
            const Tensor *bx = c.args[A::inputBiasOptional], *bh = c.args[A::hiddenBiasOptional];
            std::optional<Values<T>> x_bias, h_bias;
            if (bx != nullptr) x_bias.emplace(*bx, c.parallel);
            if (bh != nullptr) h_bias.emplace(*bh, c.parallel);
            Results<T> hy(c.args[A::hyOut], c.parallel), cy(c.args[A::cyOut], c.parallel),
                kept(c.args[A::storageOut], c.parallel);
            const int64_t n = c.args[A::cx].shape[1];
            for (int64_t b = 0; b < c.args[A::cx].shape[0]; ++b) {
              for (int64_t j = 0; j < n; ++j) {
                T gate[4];
                for (int64_t k = 0; k < 4; ++k) {
                  const int64_t at = k * n + j;
                  const T sum = x[b * 4 * n + at] + h[b * 4 * n + at] + (x_bias ? (*x_bias)[at] : T{0}) +
                                (h_bias ? (*h_bias)[at] : T{0});
                  gate[k] = k == 2 ? std::tanh(sum) : 1 / (1 + std::exp(-sum));
                  kept[b * 4 * n + at] = gate[k];
                }
                const T now = gate[1] * cx[b * n + j] + gate[0] * gate[2];
                cy[b * n + j] = now;
                hy[b * n + j] = gate[3] * std::tanh(now);
              }
            }
            return {};
          });
        });
NPU_OP(ThnnFusedLstmCellBackward) =
    Op<ThnnFusedLstmCellBackward>()
        .Rules(FloatTensors(ThnnFusedLstmCellBackward::cx, ThnnFusedLstmCellBackward::cy,
                            ThnnFusedLstmCellBackward::storage, ThnnFusedLstmCellBackward::gradGatesOut,
                            ThnnFusedLstmCellBackward::gradCxOut, ThnnFusedLstmCellBackward::gradBiasOut),
               SameShape(ThnnFusedLstmCellBackward::cx, ThnnFusedLstmCellBackward::cy),
               SameShape(ThnnFusedLstmCellBackward::storage, ThnnFusedLstmCellBackward::gradGatesOut),
               SameShape(ThnnFusedLstmCellBackward::cx, ThnnFusedLstmCellBackward::gradCxOut),
               AnyShape(ThnnFusedLstmCellBackward::gradBiasOut),
               SameShape(ThnnFusedLstmCellBackward::cx, ThnnFusedLstmCellBackward::gradHyOptional),
               SameShape(ThnnFusedLstmCellBackward::cx, ThnnFusedLstmCellBackward::gradCOptional))
        .Uses(ThnnFusedLstmCellBackward::hasBias)
        .Optional(ThnnFusedLstmCellBackward::gradBiasOut)
        .Tolerance("accumulated")
        .Like("lstm_cell_backward(gradHyOptional, gradCOptional, cx, cy, storage)")
        .Prepares([](Planning& p) -> Status {
          using A = ThnnFusedLstmCellBackward;
          const Tensor &gates = p.args[A::storage], &cx = p.args[A::cx];
          const bool bias = p.args[A::hasBias];
          if (gates.rank == 2 && cx.rank == 2 && gates.shape[0] == cx.shape[0] && gates.shape[1] == 4 * cx.shape[1] &&
              (!bias ||
               (p.args.Maybe(A::gradBiasOut) != nullptr && p.args.Maybe(A::gradBiasOut)->Numel() == gates.shape[1])))
            return {};
          return p.Refuse("storage has shape {} and cx {}.", ShapeText(gates.Shape()), ShapeText(cx.Shape()))
              .Remedy(
                  "Pass [batch, 4 * hidden] and [batch, hidden]; the gradient of the bias has 4 * hidden elements.");
        })
        .Does([](const Call& c) -> Status {
          using A = ThnnFusedLstmCellBackward;
          return WithFloat(c.args[A::cx].dtype, [&]<class T>() -> Status {
            const Values<T> cx(c.args[A::cx], c.parallel), cy(c.args[A::cy], c.parallel),
                kept(c.args[A::storage], c.parallel);
            std::optional<Values<T>> dhy, dcy;
            if (c.args[A::gradHyOptional] != nullptr) dhy.emplace(*c.args[A::gradHyOptional], c.parallel);
            if (c.args[A::gradCOptional] != nullptr) dcy.emplace(*c.args[A::gradCOptional], c.parallel);
            Results<T> dgates(c.args[A::gradGatesOut], c.parallel), dcx(c.args[A::gradCxOut], c.parallel);
            const int64_t n = c.args[A::cx].shape[1], batch = c.args[A::cx].shape[0];
            std::vector<T> bias(U(4 * n));
            for (int64_t b = 0; b < batch; ++b) {
              for (int64_t j = 0; j < n; ++j) {
                const T i = kept[b * 4 * n + j], f = kept[(b * 4 + 1) * n + j], g = kept[(b * 4 + 2) * n + j],
                        o = kept[(b * 4 + 3) * n + j];
                const T wide = std::tanh(cy[b * n + j]), dh = dhy ? (*dhy)[b * n + j] : T{0};
                const T dc = dh * o * (1 - wide * wide) + (dcy ? (*dcy)[b * n + j] : T{0});
                const T grad[4] = {dc * g * i * (1 - i), dc * cx[b * n + j] * f * (1 - f), dc * i * (1 - g * g),
                                   dh * wide * o * (1 - o)};
                for (int64_t k = 0; k < 4; ++k) {
                  dgates[(b * 4 + k) * n + j] = grad[k];
                  bias[U(k * n + j)] += grad[k];
                }
                dcx[b * n + j] = dc * f;
              }
            }
            if (const Tensor* out = c.args.Maybe(A::gradBiasOut); out != nullptr && c.args[A::hasBias])
              simd::Copy(MakeContiguous(bias.data(), TypeOf<T>(), out->Shape()), *out, c.parallel);
            return {};
          });
        });

}  // namespace npu::ops
