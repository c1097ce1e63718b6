// A product of matrices as it is often first written: one element a work-item, summed in memory.
__kernel void gemm(__global const float *a, __global const float *b, __global float *c,
                   const float alpha, const float beta, const int m, const int n, const int k)
{
    int j = get_global_id(0);
    int i = get_global_id(1);

    if ((i < m) && (j < n)) {
        c[i * n + j] *= beta;
        for (int l = 0; l < k; l++) {
            c[i * n + j] += alpha * a[i * k + l] * b[l * n + j];
        }
    }
}
