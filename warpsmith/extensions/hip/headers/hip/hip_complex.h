#pragma once
#include <cuComplex.h>
typedef cuFloatComplex hipFloatComplex;
typedef cuDoubleComplex hipDoubleComplex;
typedef cuComplex hipComplex;
#define make_hipFloatComplex make_cuFloatComplex
#define make_hipDoubleComplex make_cuDoubleComplex
#define make_hipComplex make_cuComplex
#define hipCreal cuCreal
#define hipCimag cuCimag
#define hipCadd cuCadd
#define hipCsub cuCsub
#define hipCmul cuCmul
#define hipCdiv cuCdiv
#define hipCabs cuCabs
#define hipConj cuConj
#define hipCrealf cuCrealf
#define hipCimagf cuCimagf
#define hipCaddf cuCaddf
#define hipCsubf cuCsubf
#define hipCmulf cuCmulf
#define hipCdivf cuCdivf
#define hipCabsf cuCabsf
#define hipConjf cuConjf
#define hipCfma cuCfma
#define hipCfmaf cuCfmaf
