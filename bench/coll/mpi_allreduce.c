/* The referee: MPI_Allreduce of fp32 sums, out of place. Prints "BYTES best_us median_us" at rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int Smaller(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  int rank, s;
  static const long sizes[] = {4L << 10, 64L << 10, 1L << 20, 4L << 20, 16L << 20, 32L << 20, 64L << 20};
  static double times[2000];
  float *in = malloc(64L << 20), *out = malloc(64L << 20);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long i = 0; i < (64L << 20) / 4; i++) in[i] = (float)(rank + 1), out[i] = 0;
  for (s = 0; s < 7; s++) {
    long n = (1L << 28) / sizes[s], i;
    n = n > 2000 ? 2000 : n < 8 ? 8 : n;
    for (i = 0; i < n / 8 + 1; i++) MPI_Allreduce(in, out, (int)(sizes[s] / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (i = 0; i < n; i++) {
      const double start = MPI_Wtime();
      MPI_Allreduce(in, out, (int)(sizes[s] / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      times[i] = (MPI_Wtime() - start) * 1e6;
    }
    qsort(times, (size_t)n, sizeof *times, Smaller);
    if (rank == 0) printf("%ld %.2f %.2f\n", sizes[s], times[0], times[n / 2]), fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
