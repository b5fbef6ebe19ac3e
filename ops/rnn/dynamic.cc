// DynamicRNN and DynamicGRUV2, what torch_npu sends by type name for LSTM and GRU networks with several layers, both
// directions or no biases: one direction of one layer a call. Weights are [features (and hidden), gates * hidden].
#include "ops/rnn/dynamic.h"

#include <algorithm>

#include "ops/common/dims.h"
#include "ops/rnn/layers.h"

namespace npu::ops {

using recurrent::U;

namespace {

using A = DynamicRnn;
using B = DynamicRnnGrad;
using G = DynamicGru;
using H = DynamicGruGrad;

// Blocks of the gates by a text such as "ijfo": input, forget, cell (j, c or g) and output; "zrh": reset, update and
// new.
template <class T>
bool ReadOrder(std::string_view order, std::initializer_list<std::string_view> names, rnn::Cell<T>* cell) {
  size_t at = 0;
  for (std::string_view letters : names) {
    const size_t found = order.find_first_of(letters);
    if (found == order.npos) return false;
    cell->block[at++] = static_cast<int>(found);
  }
  return order.size() == names.size();
}

// Steps of x [time, batch, features]; sequences of one length only.
Status StepsOf(const Call& c, const Tensor& x, const Tensor* lengths, bool reverse, rnn::Steps* steps) {
  *steps = rnn::Steps::Even(x.shape[0], x.shape[1]);
  steps->reverse = reverse;
  if (lengths == nullptr || lengths->Numel() == 0 || IsFloat(lengths->dtype)) return {};
  const Values<int64_t> given(*lengths, c.parallel);
  for (int64_t i = 0; i < given.size(); ++i)
    if (given[i] < x.shape[0])
      return NotYet(c.op.name,
                    fmt::format("a sequence of {} steps among {} is not computed yet.", given[i], x.shape[0]));
  return {};
}

template <class T>
std::vector<T> Start(const Tensor* state, int64_t size, Parallel& parallel) {
  std::vector<T> v(U(size));
  if (state != nullptr && state->Numel() == size) {
    const Values<T> given(*state, parallel);
    v.assign(given.data(), given.data() + size);
  }
  return v;
}

template <class T>
void Store(std::vector<T>& values, const Tensor& to, Parallel& parallel) {
  simd::Copy(MakeContiguous(values.data(), TypeOf<T>(), to.Shape()), to, parallel);
}
// [gates, columns] written as [columns, gates] into rows `first` … of `to`.
template <class T>
void StoreTurned(std::vector<T>& values, int64_t gates, int64_t columns, int64_t first, const Tensor& to,
                 Parallel& parallel) {
  Tensor turned = MakeContiguous(values.data(), TypeOf<T>(), std::array<int64_t, 2>{columns, gates});
  turned.strides[0] = 1, turned.strides[1] = columns;
  Tensor part = to;
  part.data = simd::At(to.data, to.dtype, first * to.strides[0]);
  part.shape[0] = columns;
  simd::Copy(turned, part, parallel);
}

Status WantWeights(const Planning& p, const Tensor& x, const Tensor& w, int64_t gates, int64_t rows, const char* name) {
  if (x.rank == 3 && w.rank == 2 && w.shape[1] % gates == 0 && w.shape[0] == rows && IsFloat(x.dtype) &&
      IsFloat(w.dtype))
    return {};
  return p.Refuse("x has shape {} and {} {}.", ShapeText(x.Shape()), name, ShapeText(w.Shape()))
      .Remedy("Pass [time, batch, features] and [{}, {} times the hidden size].", rows, gates);
}

Status WantSize(const Planning& p, std::initializer_list<const Tensor*> list, int64_t size) {
  for (const Tensor* t : list)
    if (t == nullptr || t->Numel() != size || !IsFloat(t->dtype))
      return p.Refuse("a tensor of states or gates has shape {}.", t == nullptr ? "(null)" : ShapeText(t->Shape()))
          .Remedy("It has {} elements.", size);
  return {};
}

template <class T>
Status Forward(const Call& c) {
  const Args& a = c.args;
  const Tensor &x = a[A::x], &w = a[A::w];
  const Values<T> input(x, c.parallel), weight(w, c.parallel);
  std::optional<Values<T>> bias;
  if (a[A::b] != nullptr) bias.emplace(*a[A::b], c.parallel);
  rnn::Cell<T> cell;
  cell.input = x.shape[2], cell.hidden = w.shape[1] / 4;
  cell.wx = {weight.data(), 1, w.shape[1]};
  cell.wh = {weight.data() + cell.input * w.shape[1], 1, w.shape[1]};
  cell.bx = bias ? bias->data() : nullptr;
  cell.forget_bias = static_cast<T>(a[A::forgetBias]);
  if (!ReadOrder(a[A::gateOrder], {"i", "f", "jcg", "o"}, &cell))
    return Error(Code::kTaskException, "{}: gate_order is {}.", c.op.name, a[A::gateOrder]).Remedy("Use ijfo.");
  rnn::Steps steps;
  NPU_TRY(StepsOf(c, x, a[A::seqLength], a[A::reverse], &steps));
  const int64_t size = steps.sequences * cell.hidden;
  std::vector<T> h = Start<T>(a[A::initH], size, c.parallel), state = Start<T>(a[A::initC], size, c.parallel);
  Results<T> y(a[A::y], c.parallel), hs(a[A::outH], c.parallel), cs(a[A::outC], c.parallel), i(a[A::i], c.parallel),
      j(a[A::j], c.parallel), f(a[A::f], c.parallel), o(a[A::o], c.parallel), tanh_c(a[A::tanhC], c.parallel);
  NPU_TRY(rnn::LstmForward<T>(c.parallel, steps, cell, input.data(), h.data(), state.data(),
                              {i.data(), f.data(), j.data(), o.data(), hs.data(), cs.data(), tanh_c.data()}));
  std::copy(hs.data(), hs.data() + hs.size(), y.data());
  return {};
}

template <class T>
Status Backward(const Call& c) {
  const Args& a = c.args;
  const Tensor &x = a[B::x], &w = a[B::w];
  const Values<T> input(x, c.parallel), weight(w, c.parallel), h(a[B::h], c.parallel), cs(a[B::c], c.parallel),
      i(a[B::i], c.parallel), j(a[B::j], c.parallel), f(a[B::f], c.parallel), o(a[B::o], c.parallel),
      tanh_c(a[B::tanhC], c.parallel);
  std::optional<Values<T>> dy;
  if (a[B::dy] != nullptr && a[B::dy]->Numel() > 0) dy.emplace(*a[B::dy], c.parallel);
  rnn::Cell<T> cell;
  cell.input = x.shape[2], cell.hidden = w.shape[1] / 4;
  cell.wx = {weight.data(), 1, w.shape[1]};
  cell.wh = {weight.data() + cell.input * w.shape[1], 1, w.shape[1]};
  if (!ReadOrder(a[B::gateOrder], {"i", "f", "jcg", "o"}, &cell))
    return Error(Code::kTaskException, "{}: gate_order is {}.", c.op.name, a[B::gateOrder]).Remedy("Use ijfo.");
  rnn::Steps steps;
  NPU_TRY(StepsOf(c, x, a[B::seqLength], a[B::reverse], &steps));
  const int64_t size = steps.sequences * cell.hidden, gates = 4 * cell.hidden;
  const std::vector<T> h0 = Start<T>(a[B::initH], size, c.parallel), c0 = Start<T>(a[B::initC], size, c.parallel);
  std::vector<T> dh = Start<T>(a[B::dh], size, c.parallel), dc = Start<T>(a[B::dc], size, c.parallel);
  std::vector<T> dx(U(input.size())), dwx(U(gates * cell.input)), dwh(U(gates * cell.hidden)), db(U(gates));
  auto gate = [](const Values<T>& v) { return const_cast<T*>(v.data()); };
  NPU_TRY(rnn::LstmBackward<T>(c.parallel, steps, cell, input.data(), h0.data(), c0.data(),
                               {gate(i), gate(f), gate(j), gate(o), gate(h), gate(cs), gate(tanh_c)},
                               dy ? dy->data() : nullptr, dh.data(), dc.data(),
                               {dx.data(), dwx.data(), dwh.data(), db.data(), nullptr}));
  StoreTurned(dwx, gates, cell.input, 0, a[B::dw], c.parallel);
  StoreTurned(dwh, gates, cell.hidden, cell.input, a[B::dw], c.parallel);
  Store(db, a[B::db], c.parallel);
  Store(dx, a[B::dx], c.parallel);
  Store(dh, a[B::dht], c.parallel);
  Store(dc, a[B::dct], c.parallel);
  return {};
}

template <class T>
Status GruRun(const Call& c) {
  const Args& a = c.args;
  const Tensor &x = a[G::x], &w = a[G::wx];
  const Values<T> input(x, c.parallel), wx(w, c.parallel), wh(a[G::wh], c.parallel);
  std::optional<Values<T>> bx, bh;
  if (a[G::bx] != nullptr) bx.emplace(*a[G::bx], c.parallel);
  if (a[G::bh] != nullptr) bh.emplace(*a[G::bh], c.parallel);
  rnn::Cell<T> cell;
  cell.input = x.shape[2], cell.hidden = w.shape[1] / 3;
  cell.wx = {wx.data(), 1, w.shape[1]}, cell.wh = {wh.data(), 1, w.shape[1]};
  cell.bx = bx ? bx->data() : nullptr, cell.bh = bh ? bh->data() : nullptr;
  if (!ReadOrder(a[G::gateOrder], {"r", "z", "hn"}, &cell))
    return Error(Code::kTaskException, "{}: gate_order is {}.", c.op.name, a[G::gateOrder]).Remedy("Use zrh or rzh.");
  rnn::Steps steps;
  NPU_TRY(StepsOf(c, x, a[G::seqLength], a[G::reverse], &steps));
  std::vector<T> h = Start<T>(a[G::initH], steps.sequences * cell.hidden, c.parallel);
  Results<T> y(a[G::y], c.parallel), hs(a[G::outH], c.parallel), z(a[G::update], c.parallel),
      r(a[G::reset], c.parallel), n(a[G::fresh], c.parallel), hn(a[G::hiddenNew], c.parallel);
  NPU_TRY(rnn::GruForward<T>(c.parallel, steps, cell, input.data(), h.data(),
                             {r.data(), z.data(), n.data(), hn.data(), hs.data()}));
  std::copy(hs.data(), hs.data() + hs.size(), y.data());
  return {};
}

template <class T>
Status GruRunBackward(const Call& c) {
  const Args& a = c.args;
  const Tensor &x = a[H::x], &w = a[H::wx];
  const Values<T> input(x, c.parallel), wx(w, c.parallel), wh(a[H::wh], c.parallel), hs(a[H::h], c.parallel),
      z(a[H::update], c.parallel), r(a[H::reset], c.parallel), n(a[H::fresh], c.parallel),
      hn(a[H::hiddenNew], c.parallel);
  std::optional<Values<T>> dy;
  if (a[H::dy] != nullptr && a[H::dy]->Numel() > 0) dy.emplace(*a[H::dy], c.parallel);
  rnn::Cell<T> cell;
  cell.input = x.shape[2], cell.hidden = w.shape[1] / 3;
  cell.wx = {wx.data(), 1, w.shape[1]}, cell.wh = {wh.data(), 1, w.shape[1]};
  if (!ReadOrder(a[H::gateOrder], {"r", "z", "hn"}, &cell))
    return Error(Code::kTaskException, "{}: gate_order is {}.", c.op.name, a[H::gateOrder]).Remedy("Use zrh or rzh.");
  rnn::Steps steps;
  NPU_TRY(StepsOf(c, x, a[H::seqLength], a[H::reverse], &steps));
  const int64_t size = steps.sequences * cell.hidden, gates = 3 * cell.hidden;
  const std::vector<T> h0 = Start<T>(a[H::initH], size, c.parallel);
  std::vector<T> dh = Start<T>(a[H::dh], size, c.parallel), dx(U(input.size())), dwx(U(gates * cell.input)),
                 dwh(U(gates * cell.hidden)), dbx(U(gates)), dbh(U(gates));
  auto gate = [](const Values<T>& v) { return const_cast<T*>(v.data()); };
  NPU_TRY(rnn::GruBackward<T>(c.parallel, steps, cell, input.data(), h0.data(),
                              {gate(r), gate(z), gate(n), gate(hn), gate(hs)}, dy ? dy->data() : nullptr, dh.data(),
                              {dx.data(), dwx.data(), dwh.data(), dbx.data(), dbh.data()}));
  StoreTurned(dwx, gates, cell.input, 0, a[H::dwx], c.parallel);
  StoreTurned(dwh, gates, cell.hidden, 0, a[H::dwh], c.parallel);
  Store(dbx, a[H::dbx], c.parallel);
  Store(dbh, a[H::dbh], c.parallel);
  Store(dx, a[H::dx], c.parallel);
  Store(dh, a[H::dhPrev], c.parallel);
  return {};
}

// Everything is bound: Prepares() checks shapes by itself.
template <class P>
consteval Builder Whole() {
  Builder b = Op<P>();
  for (uint8_t i = 0; i < std::size(P::kParams); ++i) b = b.Uses(Token{i});
  return b.Tolerance("accumulated").Like("recurrent");
}

}  // namespace

constinit const OpDef op_named_DynamicRNN =
    Whole<A>()
        .Rules(rule::Bind(recurrent::kAnyLists, 0, A::y, A::outH, A::outC, A::i, A::j, A::f),
               rule::Bind(recurrent::kAnyLists, 0, A::o, A::tanhC))
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor &x = a[A::x], &w = a[A::w];
          const int64_t hidden = w.rank == 2 ? w.shape[1] / 4 : 0;
          NPU_TRY(WantWeights(p, x, w, 4, SizeAt(x, 0) + hidden, "w"));
          return WantSize(p, {&a[A::y], &a[A::outH], &a[A::outC], &a[A::i], &a[A::j], &a[A::f], &a[A::o], &a[A::tanhC]},
                          x.shape[0] * x.shape[1] * hidden);
        })
        .Does([](const Call& c) { return WithFloat(c.args[A::x].dtype, [&]<class T>() { return Forward<T>(c); }); });
constinit const OpDef op_named_DynamicRNNGrad =
    Whole<B>()
        .Rules(rule::Bind(recurrent::kAnyLists, 0, B::dw, B::db, B::dx, B::dht, B::dct))
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor &x = a[B::x], &w = a[B::w];
          const int64_t hidden = w.rank == 2 ? w.shape[1] / 4 : 0;
          NPU_TRY(WantWeights(p, x, w, 4, SizeAt(x, 0) + hidden, "w"));
          NPU_TRY(WantSize(p, {&a[B::h], &a[B::c], &a[B::i], &a[B::j], &a[B::f], &a[B::o], &a[B::tanhC]},
                           x.shape[0] * x.shape[1] * hidden));
          NPU_TRY(WantSize(p, {&a[B::dht], &a[B::dct]}, x.shape[1] * hidden));
          NPU_TRY(WantSize(p, {&a[B::db]}, 4 * hidden));
          if (npu::SameShape(a[B::dw].Shape(), w.Shape()) && a[B::dx].Numel() == x.Numel()) return {};
          return p.Refuse("dw has shape {} and dx {}.", ShapeText(a[B::dw].Shape()), ShapeText(a[B::dx].Shape()))
              .Remedy("They are like w and x.");
        })
        .Does([](const Call& c) { return WithFloat(c.args[B::x].dtype, [&]<class T>() { return Backward<T>(c); }); });
constinit const OpDef op_named_DynamicGRUV2 =
    Whole<G>()
        .Rules(rule::Bind(recurrent::kAnyLists, 0, G::y, G::outH, G::update, G::reset, G::fresh, G::hiddenNew))
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor &x = a[G::x], &w = a[G::wx];
          const int64_t hidden = w.rank == 2 ? w.shape[1] / 3 : 0;
          NPU_TRY(WantWeights(p, x, w, 3, SizeAt(x, 0), "weight_input"));
          NPU_TRY(WantWeights(p, x, a[G::wh], 3, hidden, "weight_hidden"));
          return WantSize(p, {&a[G::y], &a[G::outH], &a[G::update], &a[G::reset], &a[G::fresh], &a[G::hiddenNew]},
                          x.shape[0] * x.shape[1] * hidden);
        })
        .Does([](const Call& c) { return WithFloat(c.args[G::x].dtype, [&]<class T>() { return GruRun<T>(c); }); });
constinit const OpDef op_named_DynamicGRUV2Grad =
    Whole<H>()
        .Rules(rule::Bind(recurrent::kAnyLists, 0, H::dwx, H::dwh, H::dbx, H::dbh, H::dx, H::dhPrev))
        .Prepares([](Planning& p) -> Status {
          const Args& a = p.args;
          const Tensor &x = a[H::x], &w = a[H::wx];
          const int64_t hidden = w.rank == 2 ? w.shape[1] / 3 : 0;
          NPU_TRY(WantWeights(p, x, w, 3, SizeAt(x, 0), "weight_input"));
          NPU_TRY(WantWeights(p, x, a[H::wh], 3, hidden, "weight_hidden"));
          NPU_TRY(WantSize(p, {&a[H::h], &a[H::update], &a[H::reset], &a[H::fresh], &a[H::hiddenNew]},
                           x.shape[0] * x.shape[1] * hidden));
          NPU_TRY(WantSize(p, {&a[H::dbx], &a[H::dbh]}, 3 * hidden));
          NPU_TRY(WantSize(p, {&a[H::dhPrev]}, x.shape[1] * hidden));
          if (npu::SameShape(a[H::dwx].Shape(), w.Shape()) && npu::SameShape(a[H::dwh].Shape(), a[H::wh].Shape()) &&
              a[H::dx].Numel() == x.Numel())
            return {};
          return p
              .Refuse("the gradients have shapes {}, {} and {}.", ShapeText(a[H::dwx].Shape()),
                      ShapeText(a[H::dwh].Shape()), ShapeText(a[H::dx].Shape()))
              .Remedy("They are like the weights and x.");
        })
        .Does([](const Call& c) {
          return WithFloat(c.args[H::x].dtype, [&]<class T>() { return GruRunBackward<T>(c); });
        });

}  // namespace npu::ops
