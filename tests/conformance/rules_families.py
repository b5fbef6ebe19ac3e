"""Samples for the rules of reductions, softmax, norms, indexing, shapes, sorting, random numbers, losses and optimizers.

ELSEWHERE and ELSEWHERE_BY_RULE name the tests of operators whose arguments hang together in ways that no rule says; the generated
tests leave them to those files, and test_every_operator.py sees that they were called there.
"""
from __future__ import annotations

import pathlib
import re

import torch

import rules
from rules import sampler, violator


def shape_of(case, name, choices=None):
    if name not in case.shapes:
        case.shapes[name] = case.rng.choice(choices or [s for s in rules.SHAPES if len(s) <= 5])
    return case.shapes[name]


def without_zeros(case, name):
    case.shapes[name] = tuple(max(1, n) for n in shape_of(case, name))


def some_dim(case, rank):
    return case.rng.randrange(-max(1, rank), max(1, rank))


@sampler("reduced")
def _(case, rule):
    self, dims, _, _ = rule["params"]
    rank = len(shape_of(case, self))
    if dims not in case.values:
        picked = case.rng.sample(range(rank), case.rng.randint(0, rank))
        case.values[dims] = [d - rank if case.rng.random() < 0.5 else d for d in picked]


@sampler("reduced_dim")
def _(case, rule):
    self, dim, _, _ = rule["params"]
    case.values.setdefault(dim, some_dim(case, len(shape_of(case, self))))


@violator("reduced")
def _(case, rule):
    self, dims, _, _ = rule["params"]
    case.values[dims] = [case.values[self].dim() + 1]
    return [dims]


@violator("reduced_dim")
def _(case, rule):
    self, dim, _, _ = rule["params"]
    case.values[dim] = case.values[self].dim() + 1
    return [dim]


@sampler("reduced_all")
def _(case, rule):
    shape_of(case, rule["params"][0])


@sampler("not_empty_dims")
@sampler("not_empty_dim")
@sampler("not_empty")
def _(case, rule):
    without_zeros(case, rule["params"][0])


@sampler("float_tensors")
def _(case, rule):
    known = [case.dtypes[p] for p in case.params if p in case.dtypes]
    dtype = known[0] if known else case.rng.choice(rules.FLOATS)
    for p in rule["params"]:
        case.dtypes.setdefault(p, dtype)


@violator("float_tensors")
def _(case, rule):
    p = rule["params"][0]
    if not isinstance(case.values.get(p), torch.Tensor):
        return None
    case.values[p] = case.values[p].to(torch.int32)
    return [p]


@sampler("any_shapes")
def _(case, rule):
    pass


@sampler("suffix")
def _(case, rule):
    x, normal = rule["params"]
    shape = shape_of(case, x, [s for s in rules.SHAPES if 1 <= len(s) <= 5 and 0 not in s])
    case.values[normal] = list(shape[case.rng.randrange(len(shape)):])


@violator("suffix")
def _(case, rule):
    case.values[rule["params"][1]] = [case.values[rule["params"][0]].shape[-1] + 1]
    return [rule["params"][1], rule["params"][0]]


@sampler("affine")
def _(case, rule):
    t, normal = rule["params"]
    case.shapes[t] = tuple(case.values[normal])


@sampler("row_stat")
def _(case, rule):
    x, normal, stat = rule["params"]
    n = len(case.values[normal])
    case.shapes[stat] = case.shapes[x][:-n] + (1,) * n


@sampler("suffix_of")
def _(case, rule):
    t, x = rule["params"]
    shape = shape_of(case, x, [s for s in rules.SHAPES if 1 <= len(s) <= 5 and 0 not in s])
    case.shapes[t] = shape[case.rng.randrange(len(shape)):]


@sampler("has_channels")
def _(case, rule):
    shape_of(case, rule["params"][0], [s for s in rules.SHAPES if 2 <= len(s) <= 5 and 0 not in s and s[0] * s[-1] > 1])


@sampler("per_channel")
def _(case, rule):
    x, stat = rule["params"]
    case.shapes[stat] = (shape_of(case, x)[1],)


@violator("per_channel")
def _(case, rule):
    stat = rule["params"][1]
    if not isinstance(case.values.get(stat), torch.Tensor):
        return None
    case.values[stat] = torch.zeros(case.values[stat].numel() + 1, dtype=case.values[stat].dtype)
    return [stat]


FAMILIES = "test_simd_families.py"
RANDOM = "test_random.py"
TABLE = "test_more_operators.py"
ELSEWHERE = {name: file for file, names in {
    FAMILIES: """Equal Cumprod Cummax Cummin Embedding EmbeddingDenseBackward Index IndexPutImpl IndexFillTensor InplaceIndexFillTensor Take
        SearchSorted SearchSorteds Bucketize OneHot Nonzero NonzeroV2 MaskedSelect InplaceMaskedScatter Unique Unique2 UniqueConsecutive Cat
        Stack SplitWithSize Repeat Flip Roll ConstantPadNd Tril Triu InplaceTril InplaceTriu RepeatInterleave RepeatInterleaveInt
        RepeatInterleaveIntWithDim RepeatInterleaveWithDim RepeatInterleaveTensor RepeatInterleaveGrad Sort Topk TopkV2 Kthvalue GroupNorm
        GroupNormBackward BatchNorm BatchNormBackward BatchNormGatherStatsWithCounts BatchNormElemtBackward BatchNormReduceBackward
        SyncBatchNormGatherStats BatchNormElemt LayerNormBackward RmsNormGrad RmsNorm MseLoss MseLossBackward L1Loss L1LossBackward SmoothL1Loss
        SmoothL1LossBackward BinaryCrossEntropy BinaryCrossEntropyBackward BinaryCrossEntropyWithLogits BinaryCrossEntropyWithLogitsBackward
        KlDiv KlDivBackward KlDivTargetBackward NLLLoss NLLLoss2d NLLLossBackward NLLLoss2dBackward ApplyAdamWV2 FusedAdam FusedSgd
        LogSumExp SoftmaxBackward LogSoftmaxBackward""",
    RANDOM: """InplaceUniform InplaceUniformTensor InplaceNormal InplaceNormalTensor NormalFloatFloat NormalFloatTensor NormalTensorFloat
        NormalTensorTensor InplaceRandom InplaceRandomTensor InplaceRandomWithoutFromTo InplaceRandomWithoutFromToTensor InplaceBernoulli
        InplaceBernoulliTensor Randperm Multinomial MultinomialTensor SimThreadExponential DropoutGenMaskV2 DropoutGenMaskV2Tensor DropoutDoMask
        DropoutV3 DropoutV3Grad""",
    TABLE: """ReflectionPad1d ReflectionPad1dBackward ReflectionPad2d ReflectionPad2dBackward ReflectionPad3d ReflectionPad3dBackward
        ReplicationPad1d ReplicationPad1dBackward ReplicationPad2d ReplicationPad2dBackward ReplicationPad3d
        ReplicationPad3dBackward UpsampleNearest1d UpsampleNearest1dV2 UpsampleNearestExact1d UpsampleNearestExact1dBackward
        UpsampleLinear1d UpsampleNearest3d UpsampleNearest3dBackward UpsampleNearestExact3d UpsampleNearestExact3dBackward
        UpsampleTrilinear3d UpsampleTrilinear3dBackward UpsampleBicubic2d UpsampleBicubic2dBackward UpsampleBicubic2dAA
        UpsampleBicubic2dAAGrad UpsampleBilinear2dAA UpsampleBilinear2dAABackward Median NanMedian MedianDim NanMedianDim Svd
        UniqueDim StatelessExponentialTensor DropoutV3Tensor RReluWithNoise InplaceRReluWithNoise LSTM LstmBackward GRU
        GRUBackward GridSampler2D GridSampler3D GridSampler2DBackward GridSampler3DBackward FusedInferAttentionScoreV2
        FusedInferAttentionScoreV3 FusedInferAttentionScoreV4 FusedInferAttentionScoreV5
        PromptFlashAttentionV3 IncreFlashAttentionV4""",
    "test_language_models.py": "CoalesceSparse GroupedMatmulAdd QuantMatmulV5 QuantMatmulWeightNz",
    "test_formats.py": "NpuFormatCast MatmulWeightNz BatchMatMulWeightNz AddmmWeightNz",
}.items() for name in names.split()} | {name.removeprefix("aclnn"): table for table in (TABLE, "test_language_models.py", "test_complex.py") for name in re.findall(
    r'case\("(acl\w+)"', (pathlib.Path(__file__).parent / table).read_text(encoding="utf-8"))}
PRODUCTS, ATTENTION = "test_products.py", "test_attention.py"
ELSEWHERE_BY_RULE = {"matrix_product": PRODUCTS, "convolution": PRODUCTS, "image": PRODUCTS, "attention": ATTENTION,
                     "gather_shape": FAMILIES, "index_vector": FAMILIES, "select_shape": FAMILIES, "scatter_shape": FAMILIES}


def elsewhere(op: dict) -> str | None:
    """The file that tests an operator by hand, if one does."""
    by_rule = (ELSEWHERE_BY_RULE.get(rule["rule"]) for rule in op["rules"])
    return ELSEWHERE.get(op["name"].removeprefix("aclnn")) or next(filter(None, by_rule), None)
