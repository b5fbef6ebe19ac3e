#include "gen/abi/ops.h"
#include "kernels/simd/norm/norm.h"
#include "ops/norm/rules.h"

namespace npu::ops {

using namespace rule;  // NOLINT(google-build-using-namespace)

using abi::LayerNorm, abi::FastLayerNorm, abi::LayerNormBackward;
NPU_OP(LayerNorm) = Op<LayerNorm>()
    .Rules(FloatTensors(LayerNorm::input, LayerNorm::weightOptional, LayerNorm::biasOptional, LayerNorm::out,
                        LayerNorm::meanOutOptional, LayerNorm::rstdOutOptional),
           Suffix(LayerNorm::input, LayerNorm::normalizedShape), Affine(LayerNorm::weightOptional, LayerNorm::normalizedShape),
           Affine(LayerNorm::biasOptional, LayerNorm::normalizedShape), SameShape(LayerNorm::input, LayerNorm::out),
           RowStat(LayerNorm::input, LayerNorm::normalizedShape, LayerNorm::meanOutOptional),
           RowStat(LayerNorm::input, LayerNorm::normalizedShape, LayerNorm::rstdOutOptional))
    .Uses(LayerNorm::eps)
    .Samples(LayerNorm::eps, "[1e-5, 1e-3]")
    .Tolerance("accumulated")
    .Like("torch.native_layer_norm(input, normalizedShape, weightOptional, biasOptional, eps)")
    .Does([](const Call& c) -> Status {
      simd::LayerNorm(c.args[LayerNorm::input], Product(c.args[LayerNorm::normalizedShape]), c.args[LayerNorm::weightOptional],
                      c.args[LayerNorm::biasOptional], c.args[LayerNorm::eps], c.args[LayerNorm::out],
                      c.args[LayerNorm::meanOutOptional], c.args[LayerNorm::rstdOutOptional], c.parallel);
      return {};
    });
NPU_OP(FastLayerNorm) = Op<FastLayerNorm>()
    .Rules(FloatTensors(FastLayerNorm::input, FastLayerNorm::weightOptional, FastLayerNorm::biasOptional, FastLayerNorm::out,
                        FastLayerNorm::meanOutOptional, FastLayerNorm::rstdOutOptional),
           Suffix(FastLayerNorm::input, FastLayerNorm::normalizedShape),
           Affine(FastLayerNorm::weightOptional, FastLayerNorm::normalizedShape),
           Affine(FastLayerNorm::biasOptional, FastLayerNorm::normalizedShape), SameShape(FastLayerNorm::input, FastLayerNorm::out),
           RowStat(FastLayerNorm::input, FastLayerNorm::normalizedShape, FastLayerNorm::meanOutOptional),
           RowStat(FastLayerNorm::input, FastLayerNorm::normalizedShape, FastLayerNorm::rstdOutOptional))
    .Uses(FastLayerNorm::eps)
    .Samples(FastLayerNorm::eps, "[1e-5, 1e-3]")
    .Tolerance("accumulated")
    .Like("torch.native_layer_norm(input, normalizedShape, weightOptional, biasOptional, eps)")
    .Does([](const Call& c) -> Status {
      simd::LayerNorm(c.args[FastLayerNorm::input], Product(c.args[FastLayerNorm::normalizedShape]),
                      c.args[FastLayerNorm::weightOptional], c.args[FastLayerNorm::biasOptional], c.args[FastLayerNorm::eps],
                      c.args[FastLayerNorm::out], c.args[FastLayerNorm::meanOutOptional], c.args[FastLayerNorm::rstdOutOptional],
                      c.parallel);
      return {};
    });
NPU_OP(LayerNormBackward) = Op<LayerNormBackward>()
    .Rules(FloatTensors(LayerNormBackward::gradOut, LayerNormBackward::input, LayerNormBackward::mean, LayerNormBackward::rstd,
                        LayerNormBackward::weightOptional, LayerNormBackward::biasOptional),
           FloatTensors(LayerNormBackward::gradInputOut, LayerNormBackward::gradWeightOut, LayerNormBackward::gradBiasOut),
           Suffix(LayerNormBackward::input, LayerNormBackward::normalizedShape),
           SameShape(LayerNormBackward::input, LayerNormBackward::gradOut),
           SameShape(LayerNormBackward::input, LayerNormBackward::gradInputOut),
           RowStat(LayerNormBackward::input, LayerNormBackward::normalizedShape, LayerNormBackward::mean),
           RowStat(LayerNormBackward::input, LayerNormBackward::normalizedShape, LayerNormBackward::rstd),
           Affine(LayerNormBackward::weightOptional, LayerNormBackward::normalizedShape),
           Affine(LayerNormBackward::gradWeightOut, LayerNormBackward::normalizedShape),
           Affine(LayerNormBackward::gradBiasOut, LayerNormBackward::normalizedShape))
    .Uses(LayerNormBackward::outputMask)
    .Tolerance("accumulated")
    .Like("torch.ops.aten.native_layer_norm_backward(gradOut, input, normalizedShape, mean, rstd, weightOptional, biasOptional, outputMask)")
    .Does([](const Call& c) -> Status {
      simd::LayerNormBackward(c.args[LayerNormBackward::gradOut], c.args[LayerNormBackward::input],
                              Product(c.args[LayerNormBackward::normalizedShape]), c.args[LayerNormBackward::mean],
                              c.args[LayerNormBackward::rstd], c.args[LayerNormBackward::weightOptional],
                              Wanted(c, LayerNormBackward::outputMask, 0, LayerNormBackward::gradInputOut),
                              Wanted(c, LayerNormBackward::outputMask, 1, LayerNormBackward::gradWeightOut),
                              Wanted(c, LayerNormBackward::outputMask, 2, LayerNormBackward::gradBiasOut), c.parallel);
      return {};
    });

}  // namespace npu::ops
