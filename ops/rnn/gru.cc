// GRU networks. Products are matrix products, gates are plain loops. Dropout between layers of a network that trains is
// refused.
#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/rnn/layers.h"

namespace npu::ops {

using namespace rule;       // NOLINT(google-build-using-namespace)
using namespace recurrent;  // NOLINT(google-build-using-namespace)

namespace {

using abi::GRU, abi::GRUBackward;

template <class T>
std::vector<T> FirstState(const Tensor* hx, const Network& net, Parallel& parallel) {
  std::vector<T> state(U(net.Cells() * net.steps.sequences * net.hidden));
  if (hx != nullptr && hx->Numel() == static_cast<int64_t>(state.size())) {
    const Values<T> given(*hx, parallel);
    state.assign(given.data(), given.data() + given.size());
  }
  return state;
}

template <class T>
Status Run(const Call& c, Network net) {
  const Tensor x = TimeMajor(c.args[GRU::input], net.batch_first);
  const Values<T> input(x, c.parallel);
  const Lists<T> params(c.args[GRU::params], c.parallel);
  const int64_t rows = net.steps.rows, n = net.hidden, cells = net.Cells(), state_size = net.steps.sequences * n;
  std::vector<T> h = FirstState<T>(c.args[GRU::hx], net, c.parallel);
  using L = ResultLists<T>;
  L r(c.args[GRU::rOut], cells, rows * n, c.parallel), z(c.args[GRU::zOut], cells, rows * n, c.parallel),
      fresh(c.args[GRU::nOut], cells, rows * n, c.parallel), hn(c.args[GRU::hnOut], cells, rows * n, c.parallel),
      hs(c.args[GRU::hOut], cells, rows * n, c.parallel);
  std::vector<T> below;
  const T* from = input.data();
  int64_t features = SizeAt(x, 0);
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    std::vector<const T*> states;
    for (int64_t d = 0; d < net.directions; ++d) {
      const int64_t k = layer * net.directions + d;
      rnn::Steps steps = net.steps;
      steps.reverse = d == 1;
      std::fill(hs[k], hs[k] + rows * n, T{0});
      NPU_TRY(rnn::GruForward<T>(c.parallel, steps, CellOf(net, params, k, features), from, h.data() + k * state_size,
                                 {r[k], z[k], fresh[k], hn[k], hs[k]}));
      states.push_back(hs[k]);
    }
    below = SideBySide(net, states);
    from = below.data();
    features = net.directions * n;
  }
  const Tensor y = TimeMajor(c.args[GRU::output], net.batch_first);
  simd::Copy(MakeContiguous(below.data(), TypeOf<T>(), y.Shape()), y, c.parallel);
  const Tensor& hy = c.args[GRU::hy];
  simd::Copy(MakeContiguous(h.data(), TypeOf<T>(), hy.Shape()), hy, c.parallel);
  return {};
}

Status CheckState(const Planning& p, const Network& net, const Tensor* hx) {
  if (hx == nullptr || hx->Numel() == 0 || (hx->rank == 3 && hx->shape[0] == net.Cells() && hx->shape[2] == net.hidden))
    return {};
  return p.Refuse("hx has shape {}.", ShapeText(hx->Shape()))
      .Remedy("Its sizes are {}, the batch and {}.", net.Cells(), net.hidden);
}

}  // namespace

NPU_OP(GRU) =
    Op<GRU>()
        .Rules(AnyShapes(GRU::output, GRU::hy), FloatTensors(GRU::input, GRU::output, GRU::hy),
               Bind(kAnyLists, 0, GRU::rOut, GRU::zOut, GRU::nOut, GRU::hnOut, GRU::hOut))
        .Uses(GRU::params, GRU::hx, GRU::batchSizes, GRU::hasBias, GRU::numLayers, GRU::dropout, GRU::train,
              GRU::bidirection, GRU::batchFirst)
        .Tolerance("accumulated")
        .Like("gru(input, params, hx)")
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          Network net;
          if (a[GRU::dropout] > 0 && a[GRU::train] && a[GRU::numLayers] > 1)
            return NotYet(p.op.name, "dropout between layers is not computed yet.");
          NPU_TRY(PlanNetwork(p.op.name, a[GRU::input], a[GRU::params], a[GRU::hasBias], a[GRU::numLayers],
                              a[GRU::bidirection], a[GRU::batchFirst], 3, &net));
          NPU_TRY(CheckState(p, net, a[GRU::hx]));
          if (a[GRU::batchSizes] == nullptr && a[GRU::input].rank != 3)
            return p.Refuse("input has {} dimensions.", a[GRU::input].rank).Remedy("Pass [steps, batch, features].");
          Dims want = DimsOf(a[GRU::input]);
          want.size[U(want.rank - 1)] = net.directions * net.hidden;
          NPU_TRY(WantShape(p, GRU::output, want, "that is not the shape of the states of the last layer"));
          const Tensor& hy = a[GRU::hy];
          want = {3,
                  {net.Cells(),
                   a[GRU::batchSizes] == nullptr ? TimeMajor(a[GRU::input], net.batch_first).shape[1]
                   : hy.rank == 3                ? hy.shape[1]
                                                 : 0,
                   net.hidden}};
          return WantShape(p, GRU::hy, want, "it is the state of each direction of each layer");
        })
        .Does([](const Call& c) -> Status {
          const Args& a = c.args;
          Network net;
          NPU_TRY(PlanNetwork(c.op.name, a[GRU::input], a[GRU::params], a[GRU::hasBias], a[GRU::numLayers],
                              a[GRU::bidirection], a[GRU::batchFirst], 3, &net));
          NPU_TRY(ReadSteps(c.op.name, a[GRU::input], a[GRU::batchSizes], c.parallel, &net));
          if (net.Cells() * net.steps.sequences * net.hidden != a[GRU::hy].Numel()) {
            return Error(Code::kTaskException, "{}: hy has shape {} for {} sequences.", c.op.name,
                         ShapeText(a[GRU::hy].Shape()), net.steps.sequences)
                .Remedy("batchSizes begins with the number of sequences.");
          }
          return WithFloat(a[GRU::input].dtype, [&]<class T>() { return Run<T>(c, net); });
        });

namespace {

template <class T>
Status RunBackward(const Call& c, Network net) {
  using B = GRUBackward;
  const Args& a = c.args;
  const Tensor x = TimeMajor(a[B::input], net.batch_first);
  const Values<T> input(x, c.parallel);
  const Lists<T> params(a[B::params], c.parallel), r(a[B::r], c.parallel), z(a[B::z], c.parallel),
      fresh(a[B::n], c.parallel), hn(a[B::hn], c.parallel), hs(a[B::h], c.parallel);
  const int64_t rows = net.steps.rows, n = net.hidden, state_size = net.steps.sequences * n, wide = net.directions * n;
  const std::vector<T> h0 = FirstState<T>(a.Maybe(B::hx), net, c.parallel);
  std::vector<T> dh(h0.size()), above(U(rows * wide));
  auto load = [&](const Tensor& t, std::vector<T>* to) {
    if (t.Numel() != static_cast<int64_t>(to->size())) return;
    const Values<T> v(t, c.parallel);
    to->assign(v.data(), v.data() + v.size());
  };
  // A gradient that nothing asked for is null.
  if (const Tensor* t = a.Maybe(B::dh)) load(*t, &dh);
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
      std::vector<T> dy(U(rows * n)), dwx(U(3 * n * features)), dwh(U(3 * n * n)), dbx(U(3 * n)), dbh(U(3 * n));
      for (int64_t row = 0; row < rows; ++row)
        std::copy(&above[U(row * wide + d * n)], &above[U(row * wide + d * n)] + n, &dy[U(row * n)]);
      const rnn::GruTrace<T> trace{const_cast<T*>(r[k]), const_cast<T*>(z[k]), const_cast<T*>(fresh[k]),
                                   const_cast<T*>(hn[k]), const_cast<T*>(hs[k])};
      NPU_TRY(rnn::GruBackward<T>(c.parallel, steps, CellOf(net, params, k, features),
                                  layer > 0 ? below.data() : input.data(), h0.data() + k * state_size, trace, dy.data(),
                                  dh.data() + k * state_size,
                                  {dx.data(), dwx.data(), dwh.data(), dbx.data(), dbh.data()}));
      std::vector<T>* parts[4] = {&dwx, &dwh, &dbx, &dbh};
      for (int64_t part = 0; part < net.PerCell() && k * net.PerCell() + part < static_cast<int64_t>(out.size());
           ++part) {
        const Tensor& to = out[U(k * net.PerCell() + part)];
        if (to.dtype == DType::none || to.Numel() == 0) continue;
        simd::Copy(MakeContiguous(parts[part]->data(), TypeOf<T>(), to.Shape()), to, c.parallel);
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
  return {};
}

}  // namespace

NPU_OP(GRUBackward) = Op<GRUBackward>()
                          .Rules(SameShape(GRUBackward::input, GRUBackward::dxOut), AnyShape(GRUBackward::dhPrevOut),
                                 FloatTensors(GRUBackward::input, GRUBackward::dy, GRUBackward::dh, GRUBackward::dxOut,
                                              GRUBackward::dhPrevOut),
                                 AnyShape(GRUBackward::dparamsOut), AnyDtype(GRUBackward::dparamsOut))
                          .Uses(GRUBackward::params, GRUBackward::hx, GRUBackward::r, GRUBackward::z, GRUBackward::n,
                                GRUBackward::hn, GRUBackward::h, GRUBackward::batchSizes, GRUBackward::hasBias,
                                GRUBackward::numLayers, GRUBackward::bidirection, GRUBackward::batchFirst)
                          .Optional(GRUBackward::dy, GRUBackward::dh, GRUBackward::hx, GRUBackward::dxOut,
                                    GRUBackward::dhPrevOut)
                          .Tolerance("accumulated")
                          .Like("gru_backward(input, hx, params, dy, dh)")
                          .Prepares([](Planning& p) -> Status {
                            using B = GRUBackward;
                            const Args& a = p.args;
                            Network net;
                            NPU_TRY(PlanNetwork(p.op.name, a[B::input], a[B::params], a[B::hasBias], a[B::numLayers],
                                                a[B::bidirection], a[B::batchFirst], 3, &net));
                            NPU_TRY(CheckState(p, net, a.Maybe(B::hx)));
                            for (const auto& list : {a[B::r], a[B::z], a[B::n], a[B::hn], a[B::h]}) {
                              if (static_cast<int64_t>(list.size()) == net.Cells()) continue;
                              return p.Refuse("a list of gates has {} tensors.", list.size())
                                  .Remedy("Pass the {} that aclnnGRU wrote.", net.Cells());
                            }
                            return {};
                          })
                          .Does([](const Call& c) -> Status {
                            using B = GRUBackward;
                            const Args& a = c.args;
                            Network net;
                            NPU_TRY(PlanNetwork(c.op.name, a[B::input], a[B::params], a[B::hasBias], a[B::numLayers],
                                                a[B::bidirection], a[B::batchFirst], 3, &net));
                            NPU_TRY(ReadSteps(c.op.name, a[B::input], a[B::batchSizes], c.parallel, &net));
                            for (const auto& list : {a[B::r], a[B::z], a[B::n], a[B::hn], a[B::h]}) {
                              for (const Tensor& t : list) {
                                if (t.Numel() >= net.steps.rows * net.hidden) continue;
                                return Error(Code::kTaskException,
                                             "{}: a tensor of gates has shape {} for {} rows of {}.", c.op.name,
                                             ShapeText(t.Shape()), net.steps.rows, net.hidden)
                                    .Remedy("Pass what aclnnGRU wrote.");
                              }
                            }
                            return WithFloat(a[B::input].dtype, [&]<class T>() { return RunBackward<T>(c, net); });
                          });

}  // namespace npu::ops
