#!/bin/bash
# All-reduce of 2 ranks: this library, the shared-memory bound and the referees that are installed, one after another.
#   bench/coll/run.sh BUILD_DIR [PYTHON_WITH_TORCH]
set -u
build=$(cd "${1:?build directory}" && pwd)
python=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "# $(nproc) cores, $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2), load $(cut -d' ' -f1 /proc/loadavg)"
gcc -O3 -march=native -ffast-math "$here/../baselines/shm_bound.c" -o "$work/bound"
for round in 1 2; do
  echo "## hccl (bytes, best us, median us)"
  LD_LIBRARY_PATH=$build/tree/lib64 "$build/bench/coll/coll_bench" 2
  echo "## shm_bound (bytes, best s)"
  "$work/bound"
done
for mpi in openmpi mpich; do
  command -v mpicc.$mpi >/dev/null && command -v mpirun.$mpi >/dev/null || continue
  mpicc.$mpi -O3 "$here/mpi_allreduce.c" -o "$work/$mpi" || continue
  echo "## $mpi"
  if [ $mpi = openmpi ]; then
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi -n 2 "$work/$mpi"
  else
    mpirun.mpich -n 2 "$work/$mpi"
  fi
done
if [ -n "$python" ]; then
  echo "## gloo"
  "$python" "$here/gloo_allreduce.py" 2
fi
