// Nearest and bilinear resizing of image batches and their gradients, as torch defines them.
#pragma once

#include "kernels/pool/plane.h"

namespace npu::pool {

// Factors as the caller gave them, 0 where he did not: then the sizes decide.
struct Scales {
  double h = 0, w = 0;
};

// `exact` takes the nearest centre (torch's nearest-exact) instead of the floor.
Status Nearest(Parallel& parallel, const Image& x, const Scales& scales, bool exact, const Image& y);
Status NearestBackward(Parallel& parallel, const Image& dy, const Scales& scales, bool exact, const Image& dx);
Status Bilinear(Parallel& parallel, const Image& x, const Scales& scales, bool align_corners, const Image& y);
Status BilinearBackward(Parallel& parallel, const Image& dy, const Scales& scales, bool align_corners, const Image& dx);

}  // namespace npu::pool
