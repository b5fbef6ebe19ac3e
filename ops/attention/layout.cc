#include "ops/attention/layout.h"

#include "tensor/shape.h"

namespace npu::ops {
namespace {

size_t U(int64_t i) { return static_cast<size_t>(i); }

bool IsFloatTensor(DType t) { return t == DType::f32 || IsHalf(t); }

template <class... A>
Status Refuse(std::string_view op, fmt::format_string<A...> format, A&&... a) {
  return Status(Code::kInvalidParam, fmt::format("{}: {}", op, fmt::format(format, std::forward<A>(a)...)));
}

// Sizes of a tensor under a layout; with `heads` given where the layout does not tell.
struct Sizes {
  int64_t batch = 1, heads = 0, rows = 0, dim = 0;
};

bool ReadSizes(const Tensor& t, std::string_view layout, int64_t heads, Sizes* s) {
  const auto& n = t.shape;
  if (layout == "BNSD" && t.rank == 4)
    *s = {n[0], n[1], n[2], n[3]};
  else if (layout == "BSND" && t.rank == 4)
    *s = {n[0], n[2], n[1], n[3]};
  else if (layout == "BSH" && t.rank == 3)
    *s = {n[0], heads, n[1], n[2] / heads};
  else if (layout == "SBH" && t.rank == 3)
    *s = {n[1], heads, n[0], n[2] / heads};
  else if (layout == "TND" && t.rank == 3)
    *s = {1, n[1], n[0], n[2]};
  else
    return false;
  return true;
}

attention::Heads ReadStrides(const Tensor& t, std::string_view layout, int64_t dim) {
  const auto& s = t.strides;
  attention::Heads h{t.data, t.dtype};
  if (layout == "BNSD") h.batch = s[0], h.head = s[1], h.row = s[2], h.col = s[3];
  if (layout == "BSND") h.batch = s[0], h.row = s[1], h.head = s[2], h.col = s[3];
  if (layout == "BSH") h.batch = s[0], h.row = s[1], h.head = dim * s[2], h.col = s[2];
  if (layout == "SBH") h.row = s[0], h.batch = s[1], h.head = dim * s[2], h.col = s[2];
  if (layout == "TND") h.row = s[0], h.head = s[1], h.col = s[2];
  return h;
}

// A mask or bias whose last dimensions are rows and columns, before them heads and batch; sizes of 1 are broadcast.
attention::Heads ReadGrid(const Tensor& t) {
  attention::Heads h{t.data, t.dtype};
  auto stride = [&](int from_end) {
    const int d = t.rank - from_end;
    return d < 0 || t.shape[U(d)] == 1 ? 0 : t.strides[U(d)];
  };
  h.col = stride(1), h.row = stride(2), h.head = stride(3), h.batch = stride(4);
  return h;
}

bool GridFits(const Tensor& t, int64_t batch, int64_t heads, int64_t rows, int64_t cols) {
  if (t.rank < 2 || t.rank > 4) return false;
  const int64_t want[4] = {cols, rows, heads, batch};
  for (int d = 0; d < t.rank; ++d) {
    const int64_t size = t.shape[U(t.rank - 1 - d)];
    if (size != want[d] && !(size == 1 && d >= 2)) return false;
  }
  return true;
}

// What sparseMode makes of the mask: a mask that is read, or a band.
Status ReadMask(std::string_view op, const AttentionCall& call, const AttentionPlan& plan, int64_t rows, int64_t cols,
                attention::Shape* s) {
  const bool packed = call.layout == "TND";
  switch (call.sparse_mode) {
    case 0:
    case 1:
      if (call.mask == nullptr) return {};
      if (call.mask->dtype != DType::b8 && call.mask->dtype != DType::u8 && call.mask->dtype != DType::i8) {
        return Refuse(op, "attenMaskOptional is {}.", Name(call.mask->dtype))
            .Remedy("A mask is bool or uint8; true hides.");
      }
      if (!packed && !GridFits(*call.mask, plan.batch, call.heads, rows, cols)) {
        return Refuse(op, "attenMaskOptional has shape {} for {} rows of queries and {} of keys.",
                      ShapeText(call.mask->Shape()), rows, cols)
            .Remedy(
                "Pass [rows, columns] with 1 or the full number of heads and batches before them, or choose sparseMode "
                "2 to 4.");
      }
      if (packed) {
        for (const attention::Item& item : plan.items) {
          if (call.mask->rank != 2 || item.q_rows > call.mask->shape[0] || item.k_rows > call.mask->shape[1]) {
            return Refuse(op, "attenMaskOptional has shape {} for a sequence of {} queries and {} keys.",
                          ShapeText(call.mask->Shape()), item.q_rows, item.k_rows)
                .Remedy("With layout TND one mask as large as the longest sequence serves all, or sparseMode 2 to 4.");
          }
        }
      }
      s->mask = ReadGrid(*call.mask);
      if (call.sparse_mode == 0) {
        s->before = call.before < 0 ? call.before : call.before >= INT32_MAX ? INT64_MAX : call.before;
        s->after = call.after >= INT32_MAX ? INT64_MAX : call.after;
      }
      return {};
    case 2:
      s->after = 0;
      return {};
    case 3:
      s->after = 0, s->lower_right = true;
      return {};
    case 4:
      s->before = call.before, s->after = call.after, s->lower_right = true;
      return {};
    default:
      return NotYet(op, fmt::format("sparseMode {} is not computed yet; 0 to 4 are.", call.sparse_mode));
  }
}

Status ReadItems(std::string_view op, const AttentionCall& call, const Sizes& q, const Sizes& k, AttentionPlan* plan) {
  if (call.layout != "TND") {
    for (int64_t b = 0; b < q.batch; ++b)
      plan->items.push_back({0, q.rows, 0, k.rows, b * call.heads * q.rows * k.rows});
    return {};
  }
  if (call.q_ends.empty() || call.q_ends.size() != call.k_ends.size() || call.q_ends.back() != q.rows ||
      call.k_ends.back() != k.rows) {
    return Refuse(op, "actualSeqQLenOptional has {} and actualSeqKvLenOptional {} entries for {} and {} tokens.",
                  call.q_ends.size(), call.k_ends.size(), q.rows, k.rows)
        .Remedy("Pass the running sums of the sequences' lengths; the last is the number of tokens.");
  }
  attention::Item item;
  for (size_t i = 0; i < call.q_ends.size(); ++i) {
    item.q_rows = call.q_ends[i] - item.q_begin;
    item.k_rows = call.k_ends[i] - item.k_begin;
    if (item.q_rows < 0 || item.k_rows < 0) {
      return Refuse(op, "the running sums of sequence lengths fall at entry {}.", i).Remedy("They must not decrease.");
    }
    plan->items.push_back(item);
    item.q_begin = call.q_ends[i];
    item.k_begin = call.k_ends[i];
    item.drop_bit += call.heads * item.q_rows * item.k_rows;
  }
  return {};
}

}  // namespace

attention::Heads AttentionPlan::Like(const Tensor& t, int64_t, int64_t dim) const {
  return ReadStrides(t, layout, dim);
}

attention::Heads AttentionPlan::Stat(const Tensor& t) const {
  attention::Heads h{t.data, t.dtype};
  if (t.rank == 4) h.batch = t.strides[0], h.head = t.strides[1], h.row = t.strides[2], h.col = t.strides[3];
  if (t.rank == 3) h.row = t.strides[0], h.head = t.strides[1], h.col = t.strides[2];
  return h;
}

Status PlanAttention(std::string_view op, const AttentionCall& call, AttentionPlan* plan) {
  if (call.heads < 1) return Refuse(op, "headNum is {}.", call.heads).Remedy("It is at least 1.");
  Sizes q, k, v;
  if (!ReadSizes(*call.q, call.layout, call.heads, &q) || q.heads != call.heads || q.dim < 1) {
    return Refuse(op, "query of shape {} is not {} with headNum {}.", ShapeText(call.q->Shape()), call.layout,
                  call.heads)
        .Remedy("inputLayout is BSH, SBH, BSND, BNSD or TND, and must agree with the shapes.");
  }
  // Where heads and columns are one dimension, the columns of k are those of q and the heads follow.
  const bool merged = call.layout == "BSH" || call.layout == "SBH";
  const int64_t kv_heads = merged ? call.k->shape[2] / q.dim : 0;
  if (!ReadSizes(*call.k, call.layout, std::max<int64_t>(1, kv_heads), &k) ||
      !ReadSizes(*call.v, call.layout, std::max<int64_t>(1, kv_heads), &v) || k.dim != q.dim || k.batch != q.batch ||
      v.batch != q.batch || k.rows != v.rows || k.heads != v.heads || k.heads < 1 || q.heads % k.heads != 0) {
    return Refuse(op, "key {} and value {} do not go with query {} in layout {} with headNum {}.",
                  ShapeText(call.k->Shape()), ShapeText(call.v->Shape()), ShapeText(call.q->Shape()), call.layout,
                  call.heads)
        .Remedy(
            "Batches must be equal, keys as long as values and as wide as queries, heads a multiple of the keys' "
            "heads.");
  }
  if (!IsFloatTensor(call.q->dtype) || call.k->dtype != call.q->dtype || call.v->dtype != call.q->dtype) {
    return Refuse(op, "query, key and value are {}, {} and {}.", Name(call.q->dtype), Name(call.k->dtype),
                  Name(call.v->dtype))
        .Remedy("Use float32, float16 or bfloat16 for all three.");
  }
  plan->layout = call.layout;
  plan->batch = q.batch;
  NPU_TRY(ReadItems(op, call, q, k, plan));
  attention::Shape& s = plan->shape;
  s.items = plan->items;
  s.heads = q.heads;
  s.kv_heads = k.heads;
  s.dim = q.dim;
  s.value_dim = v.dim;
  s.scale = call.scale;
  NPU_TRY(ReadMask(op, call, *plan, q.rows, k.rows, &s));
  if (call.bias != nullptr) {
    if (call.layout == "TND" || !GridFits(*call.bias, q.batch, q.heads, q.rows, k.rows) ||
        !IsFloatTensor(call.bias->dtype) || call.bias_type > 1) {
      return NotYet(op, fmt::format("a position bias of shape {} in layout {} with pseType {} is not computed yet.",
                                    ShapeText(call.bias->Shape()), call.layout, call.bias_type));
    }
    s.bias = ReadGrid(*call.bias);
    s.scale_after_bias = call.bias_type == 1;
  }
  if (call.sink != nullptr) {
    if (call.sink->dtype != DType::f32 || !call.sink->Contiguous() || call.sink->Numel() != q.heads)
      return Refuse(op, "the sink is {} of shape {}.", Name(call.sink->dtype), ShapeText(call.sink->Shape())).Remedy("It is float32 with one value for each head.");
    s.sink = call.sink->As<const float>();
  }
  if (call.keep <= 0 || call.keep > 1)
    return Refuse(op, "keepProb is {}.", call.keep).Remedy("It is above 0 and at most 1.");
  if (call.keep < 1 && call.drop != nullptr && call.drop->Numel() > 0) {
    const attention::Item last = plan->items.empty() ? attention::Item{} : plan->items.back();
    const int64_t bits = last.drop_bit + q.heads * last.q_rows * last.k_rows;
    if (!call.drop->Contiguous() || call.drop->Numel() * 8 < bits) {
      return Refuse(op, "dropMaskOptional has {} bytes for {} weights.", call.drop->Numel(), bits)
          .Remedy("Pass one bit for each weight.");
    }
    s.drop = call.drop->As<const uint8_t>();
    s.keep = call.keep;
  }
  plan->q = ReadStrides(*call.q, call.layout, q.dim);
  plan->k = ReadStrides(*call.k, call.layout, k.dim);
  plan->v = ReadStrides(*call.v, call.layout, v.dim);
  return {};
}

}  // namespace npu::ops
