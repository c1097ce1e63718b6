"""Reader of C text: tokens, macros, declarations, kernels, syntax trees."""
