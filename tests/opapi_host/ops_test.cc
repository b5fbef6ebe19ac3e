// One operator of each family through its exported functions, on host memory, against plain loops. Needs no Python, so
// it also runs where only our code runs: cross-compiled, under an emulator. Values of every operator are compared with
// torch elsewhere (tests/conformance).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_arange.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_embedding.h"
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_nll_loss.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "aclnnop/aclnn_s_where.h"
#include "aclnnop/aclnn_softmax.h"

extern "C" const char* host_error_text();

namespace {

using Shape = std::vector<int64_t>;

template <class T>
constexpr aclDataType kType = std::is_same_v<T, float>     ? ACL_FLOAT
                              : std::is_same_v<T, double>  ? ACL_DOUBLE
                              : std::is_same_v<T, int32_t> ? ACL_INT32
                              : std::is_same_v<T, int64_t> ? ACL_INT64
                              : std::is_same_v<T, bool>    ? ACL_BOOL
                                                           : ACL_DT_UNDEFINED;

int64_t Count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// A contiguous tensor with its memory; Transposed() is a second view of the same memory.
template <class T>
class Value {
 public:
  explicit Value(Shape shape) : shape_(std::move(shape)), data_(new T[static_cast<size_t>(Count(shape_)) + 1]()) {
    Shape strides(shape_.size(), 1);
    for (size_t d = shape_.size(); d-- > 1;) strides[d - 1] = strides[d] * shape_[d];
    handle_ = View(shape_, strides);
  }
  Value(Shape shape, std::mt19937& random) : Value(std::move(shape)) {
    std::uniform_real_distribution<double> number(-3, 3);
    for (T& v : *this) v = static_cast<T>(number(random));
  }
  ~Value() {
    for (aclTensor* view : views_) aclDestroyTensor(view);
  }
  Value(const Value&) = delete;

  aclTensor* operator*() const { return handle_; }
  aclTensor* Transposed() { return View({shape_[1], shape_[0]}, {1, shape_[1]}); }
  T* begin() const { return data_.get(); }
  T* end() const { return data_.get() + Count(shape_); }
  T& operator[](int64_t i) const { return data_[static_cast<size_t>(i)]; }

 private:
  aclTensor* View(const Shape& shape, const Shape& strides) {
    const int64_t storage = Count(shape_);
    views_.push_back(aclCreateTensor(shape.data(), shape.size(), kType<T>, strides.data(), 0, ACL_FORMAT_ND, &storage,
                                     1, data_.get()));
    return views_.back();
  }
  Shape shape_;
  std::unique_ptr<T[]> data_;
  std::vector<aclTensor*> views_;
  aclTensor* handle_ = nullptr;
};

class Ints {
 public:
  explicit Ints(const Shape& values) : handle_(aclCreateIntArray(values.data(), values.size())) {}
  ~Ints() { aclDestroyIntArray(handle_); }
  Ints(const Ints&) = delete;
  const aclIntArray* operator*() const { return handle_; }

 private:
  aclIntArray* handle_;
};

// Both phases, with the scratch memory that the first asks for.
template <class Plan, class Run, class... A>
void Call(Plan plan, Run run, A... arguments) {
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(plan(arguments..., &bytes, &executor), 0) << host_error_text();
  const std::unique_ptr<char[]> scratch(bytes > 0 ? new char[bytes] : nullptr);
  ASSERT_EQ(run(scratch.get(), bytes, executor, nullptr), 0) << host_error_text();
}

class Ops : public testing::Test {
 protected:
  Ops() {
    const char* given = std::getenv("ANYNPU_SEED");
    const auto seed = given != nullptr ? static_cast<uint32_t>(std::atoi(given)) : std::random_device()();
    RecordProperty("seed", std::to_string(seed));
    random_.seed(seed);
  }
  int64_t Between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  template <class V>
  void Near(const V& got, const std::vector<double>& want, double tolerance) {
    ASSERT_EQ(static_cast<size_t>(got.end() - got.begin()), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const auto value = static_cast<double>(got[static_cast<int64_t>(i)]);
      ASSERT_NEAR(value, want[i], tolerance * std::max(1.0, std::fabs(want[i]))) << "element " << i;
    }
  }
  std::mt19937 random_;
};

TEST_F(Ops, AddBroadcastsAndScales) {
  const int64_t m = Between(1, 40), n = Between(1, 70);
  Value<float> a({m, n}, random_), b({n}, random_), out({m, n});
  float factor = 0.75f;
  aclScalar* alpha = aclCreateScalar(&factor, ACL_FLOAT);
  Call(aclnnAddGetWorkspaceSize, aclnnAdd, *a, *b, alpha, *out);
  aclDestroyScalar(alpha);
  std::vector<double> want;
  for (int64_t i = 0; i < m * n; ++i) want.push_back(a[i] + 0.75 * b[i % n]);
  Near(out, want, 1e-6);
}

TEST_F(Ops, AddRefusesShapesThatDoNotFit) {
  Value<float> a({3, 4}, random_), b({3}, random_), out({3, 4});
  float one = 1;
  aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_NE(aclnnAddGetWorkspaceSize(*a, *b, alpha, *out, &bytes, &executor), 0);
  aclDestroyScalar(alpha);
  EXPECT_NE(std::strstr(host_error_text(), "aclnnAdd"), nullptr);
}

TEST_F(Ops, CastRoundsTowardsZero) {
  const int64_t n = Between(1, 300);
  Value<float> a({n}, random_);
  Value<int32_t> out({n});
  Call(aclnnCastGetWorkspaceSize, aclnnCast, *a, ACL_INT32, *out);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], static_cast<int32_t>(a[i]));
}

TEST_F(Ops, GeluIsTheErrorFunctionsForm) {
  const int64_t n = Between(1, 300);
  Value<float> a({n}, random_), out({n});
  Call(aclnnGeluGetWorkspaceSize, aclnnGelu, *a, *out);
  std::vector<double> want;
  for (const double x : a) want.push_back(x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))));
  Near(out, want, 2e-6);
}

TEST_F(Ops, CopyTransposes) {
  const int64_t m = Between(1, 50), n = Between(1, 50);
  Value<int64_t> a({m, n}, random_), out({n, m});
  Call(aclnnInplaceCopyGetWorkspaceSize, aclnnInplaceCopy, *out, a.Transposed());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) ASSERT_EQ(out[j * m + i], a[i * n + j]);
  }
}

TEST_F(Ops, ReduceSumOverTheFirstDimension) {
  const int64_t m = Between(1, 200), n = Between(1, 40);
  Value<float> a({m, n}, random_), out({n});
  Ints dims({0});
  Call(aclnnReduceSumGetWorkspaceSize, aclnnReduceSum, *a, *dims, false, ACL_FLOAT, *out);
  std::vector<double> want(static_cast<size_t>(n));
  for (int64_t i = 0; i < m * n; ++i) want[static_cast<size_t>(i % n)] += a[i];
  Near(out, want, 3e-5);
}

TEST_F(Ops, MatmulTakesATransposedOperand) {
  const int64_t m = Between(1, 60), n = Between(1, 60), k = Between(1, 90);
  Value<float> a({m, k}, random_), b({n, k}, random_), out({m, n});
  Call(aclnnMatmulGetWorkspaceSize, aclnnMatmul, *a, b.Transposed(), *out, int8_t{0});
  std::vector<double> want;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += double{a[i * k + l]} * b[j * k + l];
      want.push_back(sum);
    }
  }
  Near(out, want, 1e-4);
}

TEST_F(Ops, SoftmaxOfRows) {
  const int64_t m = Between(1, 20), n = Between(1, 100);
  Value<float> a({m, n}, random_), out({m, n});
  Call(aclnnSoftmaxGetWorkspaceSize, aclnnSoftmax, *a, int64_t{-1}, *out);
  std::vector<double> want;
  for (int64_t i = 0; i < m; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::exp(double{a[i * n + j]});
    for (int64_t j = 0; j < n; ++j) want.push_back(std::exp(double{a[i * n + j]}) / sum);
  }
  Near(out, want, 1e-6);
}

TEST_F(Ops, LayerNormGivesMeanAndDeviation) {
  const int64_t m = Between(1, 20), n = Between(2, 100);
  Value<float> a({m, n}, random_), weight({n}, random_), bias({n}, random_), out({m, n}), mean({m, 1}), rstd({m, 1});
  Ints normalized({n});
  const double eps = 1e-5;
  Call(aclnnLayerNormGetWorkspaceSize, aclnnLayerNorm, *a, *normalized, *weight, *bias, eps, *out, *mean, *rstd);
  std::vector<double> want, means, deviations;
  for (int64_t i = 0; i < m; ++i) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < n; ++j) sum += a[i * n + j];
    const double mu = sum / static_cast<double>(n);
    for (int64_t j = 0; j < n; ++j) squares += (a[i * n + j] - mu) * (a[i * n + j] - mu);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    means.push_back(mu), deviations.push_back(scale);
    for (int64_t j = 0; j < n; ++j) want.push_back((a[i * n + j] - mu) * scale * weight[j] + bias[j]);
  }
  Near(out, want, 1e-4);
  Near(mean, means, 1e-5);
  Near(rstd, deviations, 1e-4);
}

TEST_F(Ops, EmbeddingAndIndexSelectTakeRows) {
  const int64_t rows = Between(2, 30), width = Between(1, 40), n = Between(1, 25);
  Value<float> table({rows, width}, random_), taken({n, width}), chosen({n, width});
  Value<int64_t> index({n});
  for (int64_t& i : index) i = Between(0, rows - 1);
  Call(aclnnEmbeddingGetWorkspaceSize, aclnnEmbedding, *table, *index, *taken);
  Call(aclnnIndexSelectGetWorkspaceSize, aclnnIndexSelect, *table, int64_t{0}, *index, *chosen);
  for (int64_t i = 0; i < n * width; ++i) {
    ASSERT_EQ(taken[i], table[index[i / width] * width + i % width]);
    ASSERT_EQ(chosen[i], taken[i]);
  }
}

TEST_F(Ops, CatJoinsColumns) {
  const int64_t m = Between(1, 20), p = Between(1, 20), q = Between(1, 20);
  Value<float> a({m, p}, random_), b({m, q}, random_), out({m, p + q});
  // The list owns its tensors.
  int64_t extent_a[] = {m, p}, stride_a[] = {p, 1}, extent_b[] = {m, q}, stride_b[] = {q, 1};
  const aclTensor* parts[] = {
      aclCreateTensor(extent_a, 2, ACL_FLOAT, stride_a, 0, ACL_FORMAT_ND, extent_a, 2, a.begin()),
      aclCreateTensor(extent_b, 2, ACL_FLOAT, stride_b, 0, ACL_FORMAT_ND, extent_b, 2, b.begin())};
  aclTensorList* list = aclCreateTensorList(parts, 2);
  Call(aclnnCatGetWorkspaceSize, aclnnCat, list, int64_t{1}, *out);
  aclDestroyTensorList(list);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < p + q; ++j) ASSERT_EQ(out[i * (p + q) + j], j < p ? a[i * p + j] : b[i * q + j - p]);
  }
}

TEST_F(Ops, WhereChooses) {
  const int64_t n = Between(1, 200);
  Value<float> a({n}, random_), b({n}, random_), out({n});
  Value<bool> condition({n});
  for (bool& c : condition) c = Between(0, 1) == 1;
  Call(aclnnSWhereGetWorkspaceSize, aclnnSWhere, *condition, *a, *b, *out);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], condition[i] ? a[i] : b[i]);
}

TEST_F(Ops, ArangeCounts) {
  const int64_t n = Between(1, 200);
  int64_t start = Between(-50, 50), step = 3, end = start + step * n;
  aclScalar* words[] = {aclCreateScalar(&start, ACL_INT64), aclCreateScalar(&end, ACL_INT64),
                        aclCreateScalar(&step, ACL_INT64)};
  Value<int64_t> out({n});
  Call(aclnnArangeGetWorkspaceSize, aclnnArange, words[0], words[1], words[2], *out);
  for (aclScalar* word : words) aclDestroyScalar(word);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], start + step * i);
}

TEST_F(Ops, NllLossIsTheMeanOfTheChosen) {
  const int64_t m = Between(1, 30), n = Between(2, 20);
  Value<float> a({m, n}, random_), weight({n}), out(Shape{}), total(Shape{});
  Value<int64_t> target({m});
  for (float& w : weight) w = static_cast<float>(Between(1, 8)) / 4;
  for (int64_t& t : target) t = Between(0, n - 1);
  Call(aclnnNLLLossGetWorkspaceSize, aclnnNLLLoss, *a, *target, *weight, int64_t{1}, int64_t{-100}, *out, *total);
  double sum = 0, weights = 0;
  for (int64_t i = 0; i < m; ++i) sum -= double{a[i * n + target[i]]} * weight[target[i]], weights += weight[target[i]];
  Near(total, {weights}, 1e-5);
  Near(out, {sum / weights}, 1e-5);
}

TEST_F(Ops, ConvolutionSlidesAndPads) {
  const int64_t channels = Between(1, 5), filters = Between(1, 9), size = Between(4, 14), stride = Between(1, 2);
  const int64_t extent = (size + 2 - 3) / stride + 1;
  Value<float> x({2, channels, size, size}, random_), weight({filters, channels, 3, 3}, random_),
      bias({filters}, random_), out({2, filters, extent, extent});
  Ints steps({stride, stride}), padding({1, 1}), dilation({1, 1}), none({0, 0});
  Call(aclnnConvolutionGetWorkspaceSize, aclnnConvolution, *x, *weight, *bias, *steps, *padding, *dilation, false,
       *none, int64_t{1}, *out, int8_t{0});
  std::vector<double> want;
  for (int64_t image = 0; image < 2; ++image) {
    for (int64_t f = 0; f < filters; ++f) {
      for (int64_t i = 0; i < extent; ++i) {
        for (int64_t j = 0; j < extent; ++j) {
          double sum = bias[f];
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t u = 0; u < 3; ++u) {
              for (int64_t v = 0; v < 3; ++v) {
                const int64_t row = i * stride + u - 1, column = j * stride + v - 1;
                if (row < 0 || row >= size || column < 0 || column >= size) continue;
                sum += double{x[((image * channels + c) * size + row) * size + column]} *
                       weight[((f * channels + c) * 3 + u) * 3 + v];
              }
            }
          }
          want.push_back(sum);
        }
      }
    }
  }
  Near(out, want, 1e-4);
}

}  // namespace
