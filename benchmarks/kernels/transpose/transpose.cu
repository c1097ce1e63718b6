// out[c][r] = x[r][c] through a tile of TILE_Y rows and TILE_X columns; BLOCK_X x BLOCK_Y threads pass over it.
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ out, int rows, int columns) {
  __shared__ float tile[TILE_Y][TILE_X + PAD];
#if DIAGONAL
  const int by = blockIdx.x;
  const int bx = (blockIdx.x + blockIdx.y) % gridDim.y;
  const int left = bx * TILE_X, top = by * TILE_Y;
#else
  const int flat = blockIdx.y * gridDim.x + blockIdx.x;
  const int left = (flat % gridDim.y) * TILE_X, top = (flat / gridDim.y) * TILE_Y;
#endif

#pragma unroll
  for (int i = 0; i < TILE_Y; i += BLOCK_Y) {
#pragma unroll
    for (int j = 0; j < TILE_X; j += BLOCK_X) {
      const int row = i + threadIdx.y, column = j + threadIdx.x;
      if (top + row < rows && left + column < columns) {
        tile[row][column] = x[(size_t)(top + row) * columns + left + column];
      }
    }
  }
  __syncthreads();
  // The same threads in another shape: their x runs along the tile's rows now.
  const int flat_thread = threadIdx.y * BLOCK_X + threadIdx.x;
  const int along = flat_thread % TURNED_X, across = flat_thread / TURNED_X;
#pragma unroll
  for (int j = 0; j < TILE_X; j += BLOCK_X * BLOCK_Y / TURNED_X) {
#pragma unroll
    for (int i = 0; i < TILE_Y; i += TURNED_X) {
      const int row = i + along, column = j + across;
      if (row < TILE_Y && column < TILE_X && top + row < rows && left + column < columns) {
        out[(size_t)(left + column) * rows + top + row] = tile[row][column];
      }
    }
  }
}
