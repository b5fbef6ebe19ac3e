// Building and saving models: owed.
#include "shim/ge/ge.h"

namespace ge {

Status aclgrphBuildInitialize(Options&) { return Owed("ge::aclgrphBuildInitialize"); }
void aclgrphBuildFinalize() {}
Status aclgrphBuildModel(const Graph&, const Options&, ModelBufferData&) { return Owed("ge::aclgrphBuildModel"); }
Status aclgrphSaveModel(const char*, const ModelBufferData&) { return Owed("ge::aclgrphSaveModel"); }

}  // namespace ge
