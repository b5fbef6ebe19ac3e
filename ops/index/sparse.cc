// Entries of a sparse tensor that name the same place become one.
#include <vector>

#include "gen/abi/ops.h"
#include "ops/common/dims.h"
#include "ops/common/values.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)
using abi::CoalesceSparse;

namespace {

// Whether entries are the rows of an index matrix (else its columns).
bool ByRows(const Tensor& from, const Tensor& to, int64_t entries, int64_t places) {
  return from.shape[0] == entries && to.shape[0] == places && from.shape[1] == to.shape[1];
}
bool ByColumns(const Tensor& from, const Tensor& to, int64_t entries, int64_t places) {
  return from.shape[1] == entries && to.shape[1] == places && from.shape[0] == to.shape[0];
}

}  // namespace

// uniqueIndices names the place of each entry among the uniqueLen different ones.
NPU_OP(CoalesceSparse) = Op<CoalesceSparse>()
                             .Rules(RankIs(CoalesceSparse::indices, 2), DtypeIn(CoalesceSparse::indices, kIndexTypes),
                                    DtypeIn(CoalesceSparse::uniqueIndices, kIndexTypes),
                                    DtypeIn(CoalesceSparse::values, kReals),
                                    AnyShapes(CoalesceSparse::newIndices, CoalesceSparse::newValues),
                                    DtypeIn(CoalesceSparse::newIndices, kIndexTypes),
                                    SameDtype(CoalesceSparse::values, CoalesceSparse::newValues))
                             .Uses(CoalesceSparse::uniqueLen)
                             .Tolerance("accumulated")
                             .Like("coalesce(uniqueIndices, indices, values)")
                             .Prepares([](Planning& p) -> Status {
                               using A = CoalesceSparse;
                               const Tensor &values = p.args[A::values], &to = p.args[A::newValues];
                               const int64_t entries = p.args[A::uniqueIndices].Numel();
                               if (values.rank < 1 || to.rank != values.rank || values.shape[0] != entries ||
                                   !npu::SameShape(values.Shape().subspan(1), to.Shape().subspan(1)))
                                 return p
                                     .Refuse("values has shape {}, newValues {} and there are {} entries.",
                                             ShapeText(values.Shape()), ShapeText(to.Shape()), entries)
                                     .Remedy("They have one value for each entry and place.");
                               const Tensor &from = p.args[A::indices], &made = p.args[A::newIndices];
                               if (made.rank == 2 && (ByRows(from, made, entries, to.shape[0]) ||
                                                      ByColumns(from, made, entries, to.shape[0])))
                                 return {};
                               return p
                                   .Refuse("indices has shape {} and newIndices {} for {} entries in {} places.",
                                           ShapeText(from.Shape()), ShapeText(made.Shape()), entries, to.shape[0])
                                   .Remedy("Both have one row, or one column, for each entry and place.");
                             })
                             .Does([](const Call& c) -> Status {
                               using A = CoalesceSparse;
                               const Tensor &from = c.args[A::indices], &to = c.args[A::newIndices],
                                            &values = c.args[A::values], &sums = c.args[A::newValues];
                               const Values<int64_t> place(c.args[A::uniqueIndices], c.parallel),
                                   indices(from, c.parallel);
                               const int64_t entries = place.size(), places = sums.shape[0];
                               const bool rows = ByRows(from, to, entries, places);
                               const int64_t width = rows ? from.shape[1] : from.shape[0];
                               for (int64_t i = 0; i < entries; ++i) {
                                 if (place[i] >= 0 && place[i] < places) continue;
                                 return Error(Code::kTaskException,
                                              "{}: uniqueIndices[{}] is {}, but there are {} places.", c.op.name, i,
                                              place[i], places)
                                     .Remedy("Pass the inverse of the unique indices.");
                               }
                               Results<int64_t> made(to, c.parallel);
                               for (int64_t i = 0; i < entries; ++i)
                                 for (int64_t d = 0; d < width; ++d)
                                   made[rows ? place[i] * width + d : d * places + place[i]] =
                                       indices[rows ? i * width + d : d * entries + i];
                               return WithNumber(values.dtype, [&]<class T>() -> Status {
                                 const Values<T> x(values, c.parallel);
                                 Results<T> out(sums, c.parallel);
                                 std::fill(out.data(), out.data() + out.size(), T{0});
                                 const int64_t n = entries == 0 ? 0 : x.size() / entries;
                                 for (int64_t i = 0; i < entries; ++i)
                                   for (int64_t e = 0; e < n; ++e) out[place[i] * n + e] += x[i * n + e];
                                 return {};
                               });
                             });

}  // namespace npu::ops
