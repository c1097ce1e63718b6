"""Rules that make the sizes of the launch searchable: tiles, block and grid."""
